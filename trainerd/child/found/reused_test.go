//go:build unix

package found

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

func TestNumbersIn(t *testing.T) {
	for name, want := range map[string][]string{
		"epoch1/step20.pt": {"1", "20"}, "m_e1_s20.pt": {"1", "20"}, "step_20_epoch_1.pt": {"20", "1"}, "slot_3.pt": {"3"}, "epoch_3.pt": {"3"},
		"version_2/m_e1_s20.pt": {"1", "20"}, "2026-11-29/epoch1/20.pt": {"1", "20"}, "e1_s20_rank3.pt": {"1", "20"}, "epoch=3-step=20-loss=0.41.ckpt": {"3", "20"},
		"fold2/epoch_3/model.pt": {"2", "3"}, "last.pt": nil,
	} {
		if got := numbersIn(name); !slices.Equal(got, want) {
			t.Errorf("%s has the numbers %q, want %q", name, got, want)
		}
	}
}

func TestBeginAgain(t *testing.T) {
	for _, tc := range []struct {
		names []string
		want  bool
	}{
		{[]string{"epoch0/step20.pt", "epoch0/step40.pt", "epoch1/step20.pt"}, true},
		{[]string{"m_e0_s60.pt", "m_e1_s60.pt"}, true},
		{[]string{"m_e9_s20.pt", "m_e10_s10.pt"}, true},
		{[]string{"fold0/epoch_3.pt", "fold1/epoch_1.pt"}, true},
		{[]string{"step60_epoch0.pt", "step20_epoch1.pt"}, true},
		{[]string{"stage1_epoch2_step5.pt", "stage2_epoch1_step5.pt"}, true},
		{[]string{"epoch0/step20.pt", "epoch1/step40.pt", "epoch2/step60.pt"}, false},
		{[]string{"epoch=0-step=20.ckpt", "epoch=0-step=40.ckpt", "epoch=1-step=60.ckpt"}, false},
		{[]string{"version_0/epoch=5-step=60.ckpt", "version_1/epoch=0-step=10.ckpt"}, false},
		{[]string{"ep1-ba20-rank0.pt", "ep1-ba20-rank1.pt", "ep2-ba40-rank0.pt"}, false},
		{[]string{"weights_20.npz", "optim_20.npz"}, false}, {[]string{"w1_20.npz", "w2_20.npz"}, false},
		{[]string{"epoch_1.pt", "epoch_2.pt"}, false}, {[]string{"yolov4_last.pt", "yolov4_20.pt"}, false}, {[]string{"ckpt-20.pt", "ckpt-10.pt"}, false},
		{[]string{"epoch=3-val_loss=0.41.ckpt", "epoch=4-val_loss=0.37.ckpt"}, false}, {nil, false},
	} {
		if got := beginAgain(tc.names); got != tc.want {
			t.Errorf("%q: steps begin again: %v", tc.names, got)
		}
	}
}

// writeAt writes a checkpoint that is so many minutes old.
func writeAt(t *testing.T, dir, name, content string, minutes int) {
	t.Helper()
	childtest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
	childtest.Write(t, filepath.Join(dir, name), content)
	at := time.Now().Add(-time.Duration(minutes) * time.Minute).Truncate(time.Second)
	childtest.Must(t, os.Chtimes(filepath.Join(dir, name), at, at))
}

func newestOf(s *Store) string {
	c, ok := s.Newest()
	if !ok {
		return ""
	}
	rel, _ := filepath.Rel(s.root.Name(), c.Path)
	return filepath.ToSlash(rel)
}

// TestStepsBeginAgain has steps that begin with each epoch, in folders and in names: each file is a
// checkpoint of its own, the one written last is the newest, and the oldest go first.
func TestStepsBeginAgain(t *testing.T) {
	for pattern, names := range map[string][]string{
		"epoch*/step*": {"epoch0/step20.safetensors", "epoch0/step40.safetensors", "epoch1/step20.safetensors", "epoch1/step40.safetensors"},
		"m_e*":         {"m_e0_s20.safetensors", "m_e0_s40.safetensors", "m_e1_s20.safetensors", "m_e1_s40.safetensors"},
	} {
		dir := t.TempDir()
		for i, name := range names[:3] {
			writeAt(t, dir, name, childtest.TensorsOf(i), 10-i)
		}
		s := openStore(t, dir, pattern, retention.Last(2))
		added, bad := s.Refresh(true)
		if len(added) != 3 || bad != nil || newestOf(s) != names[2] || !s.Reuses() {
			t.Fatalf("%s: %d checkpoints, bad: %v, the newest is %s", pattern, len(added), bad, newestOf(s))
		}
		second, _ := s.Newest()
		if c, ok := s.Before(&second); !ok || path.Base(c.Path) != path.Base(names[1]) {
			t.Errorf("%s: before it is %v, %v", pattern, c.Path, ok)
		}
		deleted, err := s.Rotate()
		if err != nil || len(deleted) != 1 || deleted[0].files[0] != names[0] {
			t.Errorf("%s: deleted %v, %v", pattern, deleted, err)
		}
		childtest.Must(t, os.Remove(filepath.Join(dir, names[1])))
		writeAt(t, dir, names[3], childtest.TensorsOf(3)[:100], 1) // a kill within the save
		s = openStore(t, dir, pattern, retention.Last(2))
		s.ReadRecords()
		s.Refresh(true)
		if damaged := s.NewestDamaged(); newestOf(s) != names[2] || !s.Reuses() || len(damaged) != 1 || damaged[0].files[0] != names[3] {
			t.Errorf("%s, later: the newest is %s, damaged: %v", pattern, newestOf(s), damaged)
		}
		if records, _ := manifest.Records(dir); len(records) != 2 || records[1].Numbers != manifest.NumbersBegin || records[1].Step != NoStep {
			t.Errorf("%s: recorded are %v", pattern, records)
		}
	}
}

// TestJoinedBefore has a record of what was taken for one checkpoint of two files.
func TestJoinedBefore(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"epoch0/step20.safetensors", "epoch1/step20.safetensors"} {
		writeAt(t, dir, name, childtest.TensorsOf(i), 10-i)
	}
	r := manifest.Record{Name: "epoch0/step20.safetensors", Step: 20, Parts: []string{"epoch0/step20.safetensors", "epoch1/step20.safetensors"}}
	childtest.Must(t, r.Write(nil, dir))
	s := openStore(t, dir, "epoch*/step*")
	s.ReadRecords()
	if added, _ := s.Refresh(true); len(added) != 2 {
		t.Errorf("%d checkpoints", len(added))
	}
	if records, bad := manifest.Records(dir); len(records) != 2 || bad != nil || slices.ContainsFunc(records, func(r *manifest.Record) bool { return len(r.Parts) != 1 }) {
		t.Errorf("recorded are %v, %v", records, bad)
	}
}

// TestNamesTakeTurns has a program that saves under a few names in turn: at the first name that comes again it
// is known, and the newest is not deleted. What was written last and is damaged goes out of the way before that, too.
func TestNamesTakeTurns(t *testing.T) {
	for _, everyStart := range []bool{false, true} { // a new start of the program for each save
		dir := t.TempDir()
		var now Moment
		s := openStore(t, dir, "slot_*", retention.Last(3))
		s.opts.Now = func() Moment { return now }
		save := func(slot string, step int) []Checkpoint {
			now = Moment{Step: int64(step), Attempt: 1, At: time.Now()}
			if everyStart {
				now.Attempt = step
			}
			writeAt(t, dir, slot, childtest.TensorsOf(step), 1000-step)
			added, _ := s.Refresh(true)
			_, err := s.Rotate()
			childtest.Must(t, err)
			return added
		}
		for i, slot := range []string{"slot_0", "slot_1", "slot_2", "slot_3"} {
			save(slot, 20*(i+1))
		}
		writeAt(t, dir, "slot_0", "{", 1)
		s.Refresh(true)
		if damaged := s.NewestDamaged(); len(damaged) != 1 || damaged[0].files[0] != "slot_0" {
			t.Errorf("damaged: %v", damaged)
		}
		added := save("slot_0", 100)
		if newestOf(s) != "slot_0" || !s.Reuses() || len(added) != 1 || added[0].Step != NoStep || added[0].At() != 100 {
			t.Fatalf("the newest is %s; added: %v", newestOf(s), added)
		}
		save("slot_1", 120)
		if got := childtest.Below(t, dir); newestOf(s) != "slot_1" || !slices.Contains(got, "slot_0") || !slices.Contains(got, "slot_2") {
			t.Errorf("the newest is %s of %q", newestOf(s), got)
		}
		s = openStore(t, dir, "slot_*", retention.Last(3))
		s.ReadRecords()
		s.Refresh(true)
		records, _ := manifest.Records(dir)
		if len(records) != 4 || records[3].Name != "slot_1" || records[0].Reported != 60 || newestOf(s) != "slot_1" {
			t.Errorf("later, the newest is %s; recorded are %v", newestOf(s), records)
		}
	}
}

// TestNumbersRise has what does not show that numbers are used again: a training from scratch
// in an old logdir, a save that took long, and reports of steps that are repeated.
func TestNumbersRise(t *testing.T) {
	at := func(step, reported int64, attempt, minutes int) Checkpoint {
		return Checkpoint{Step: step, files: []string{"w-x"}, first: Moment{Step: reported, Attempt: attempt}, Saved: time.Unix(int64(60*minutes), 0)}
	}
	for name, known := range map[string][]Checkpoint{
		"scratch":  {at(20, 50, 2, 9), at(100, 100, 1, 1)},
		"long":     {at(100, 150, 1, 3), at(120, 125, 1, 2)},
		"repeated": {at(20, 95, 1, 3), at(40, 100, 1, 2)},
		"rising":   {at(1, 100, 1, 1), at(2, 200, 1, 2), at(3, 300, 1, 3)},
	} {
		s := &Store{known: known}
		if s.learnTurns() {
			t.Errorf("%s: names take turns", name)
		}
	}
}

// TestContinuedFrom has names that take turns, first of another run: the step of the one that the program
// continues from is that of its first report.
func TestContinuedFrom(t *testing.T) {
	dir := t.TempDir()
	for i, slot := range []string{"slot_0", "slot_1", "slot_2"} {
		writeAt(t, dir, slot, childtest.TensorsOf(i), 10-i)
	}
	s := openStore(t, dir, "slot_*")
	s.Refresh(true)
	from, _ := s.Newest()
	s.RecordContinued(&from, 60)
	s.opts.Now = func() Moment { return Moment{Step: 80, Attempt: 1} }
	writeAt(t, dir, "slot_0", childtest.TensorsOf(3), 1)
	if s.Refresh(true); newestOf(s) != "slot_0" || !s.Reuses() {
		t.Errorf("the newest is %s", newestOf(s))
	}
}

// TestOneNameWithANumber has a program that always saves under one name, which has a number: from the second save on,
// it is known that this is no step, and there is a copy from the first on. So it is in the next run.
func TestOneNameWithANumber(t *testing.T) {
	const name = "resnet18_cifar10.safetensors"
	dir := t.TempDir()
	var now Moment
	open := func() *Store {
		s := openStore(t, dir, "*.safetensors", retention.Last(1))
		s.opts.Now = func() Moment { return now }
		return s
	}
	s := open()
	for i, step := range []int64{20, 40, 60} {
		now = Moment{Step: step, Attempt: 1}
		writeAt(t, dir, name, childtest.TensorsOf(i), 10-i)
		s.Refresh(false)
		added, _ := s.Refresh(false)
		if len(added) != 1 || s.Reuses() != (i > 0) {
			t.Fatalf("save %d: %v; reused: %v", i, added, s.Reuses())
		}
		if r := s.known[0].record; copied(r) == "" {
			t.Errorf("save %d: there is no copy", i)
		}
	}
	s = open()
	s.ReadRecords()
	writeAt(t, dir, name, childtest.TensorsOf(3)[:100], 1)
	if s.Refresh(true); !s.Reuses() || len(s.NewestDamaged()) != 1 {
		t.Fatalf("reused: %v; damaged are %v", s.Reuses(), s.NewestDamaged())
	}
	childtest.Must(t, clearDamaged(t.Context(), s))
	if got := childtest.Read(t, filepath.Join(dir, name)); got != childtest.TensorsOf(2) {
		t.Errorf("it has %d bytes", len(got))
	}
}

// TestCopyOfTheFirstSave has a kill within the second save under one name with a number, twice: nothing shows yet that
// the number is no step, and each time the copy of the first save is back, and stays.
func TestCopyOfTheFirstSave(t *testing.T) {
	const name = "resnet18_cifar10.safetensors"
	dir := t.TempDir()
	now := Moment{Step: 20, Attempt: 1}
	writeAt(t, dir, name, childtest.TensorsOf(1), 10)
	for minute := range 3 {
		s := openStore(t, dir, "*.safetensors")
		s.opts.Now = func() Moment { return now }
		s.ReadRecords()
		s.Refresh(true)
		childtest.Must(t, clearDamaged(t.Context(), s))
		if got := childtest.Read(t, filepath.Join(dir, name)); got != childtest.TensorsOf(1) || copied(s.known[0].record) == "" {
			t.Fatalf("%d: it has %d bytes, and its record %+v", minute, len(got), s.known[0].record)
		}
		now = Moment{} // before a start
		writeAt(t, dir, name, childtest.TensorsOf(2)[:100], 9-minute)
	}
}

// TestReachedBefore has a checkpoint whose number begins again, and that was written when nobody looked: the program had
// come further than at the one before, also where only the record of that is left.
func TestReachedBefore(t *testing.T) {
	dir := t.TempDir()
	r := manifest.Record{Name: "m_e0_s40.safetensors", Step: 40, Parts: []string{"m_e0_s40.safetensors"}, WallTime: time.Now().Add(-time.Hour)}
	childtest.Must(t, r.Write(nil, dir))
	writeAt(t, dir, "m_e0_s60.safetensors", childtest.TensorsOf(1), 10)
	writeAt(t, dir, "m_e1_s20.safetensors", childtest.TensorsOf(2), 9)
	s := openStore(t, dir, "m_e*")
	s.ReadRecords()
	s.Refresh(true)
	c, _ := s.Newest()
	if got := s.ReachedBefore(&c); got != 40 || c.Reached() != NoStep || s.ReachedBefore(nil) != NoStep {
		t.Errorf("before %s it had reached %d", c.Path, got)
	}
}

// TestPlaceWithoutNumber has an epoch that no number can hold.
func TestPlaceWithoutNumber(t *testing.T) {
	if p, ok := placeOf("epoch99999999999999999999/step20.pt"); ok {
		t.Errorf("its place is %+v", p)
	}
}

// TestRecordsAreRenamed has records that are named by steps of a program whose numbers turn out to be used again:
// each gets a name without, once, and one of a logdir that is only looked at stays.
func TestRecordsAreRenamed(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		dir := t.TempDir()
		r := manifest.Record{Name: "slot_3.pt", Step: 3, Parts: []string{"slot_3.pt"}}
		r.Metrics, r.Measured = checkpoint.Measurements{"loss": {Value: 0.5, Step: 3, Source: "report"}}.InManifest()
		childtest.Must(t, r.Write(nil, dir))
		s := openStore(t, dir, "slot_*")
		s.readOnly = readOnly
		now := s.renamed(&r)
		if now.Step != NoStep || now.Reported != 3 || now.Numbers != manifest.NumbersTurn || r.Step != 3 {
			t.Errorf("it is renamed to %+v", now)
		}
		if m := metricsOf(now)["loss"]; m.Value != 0.5 || m.Step != NoStep || m.Source != "report" {
			t.Errorf("its loss is %+v", m)
		}
		if again := s.renamed(now); again != now {
			t.Errorf("it is renamed once more, to %+v", again)
		}
		s.unname(nil)
		s.unname(now)
		s.unname(&r)
		records, _ := manifest.Records(dir)
		want := int64(NoStep)
		if readOnly {
			want = r.Step
		}
		if len(records) != 1 || records[0].Step != want {
			t.Errorf("only looked at: %v; the records are %v", readOnly, records)
		}
	}
}

// TestRecordsThatCannotBeRenamed has a disk that takes no record and removes none: both are said, and
// the checkpoints count all the same.
func TestRecordsThatCannotBeRenamed(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"slot_0.safetensors", "slot_1.safetensors"} {
		writeAt(t, dir, name, childtest.TensorsOf(i), 10-i)
	}
	s := openStore(t, dir, "slot_*")
	s.Refresh(true)
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(string, string) bool { return true }}
	s.records[key{name: "gone"}] = nil
	s.records[key{name: "without files"}] = &manifest.Record{Step: 7}
	s.tellByTime()
	if got := s.Unrecorded(); len(got) != 4 || len(s.known) != 2 || newestOf(s) != "slot_1.safetensors" {
		t.Errorf("%d failures: %v; known: %v", len(got), got, s.known)
	}
}

// TestVerifiedWhileNumbersTurn has a checkpoint that was verified under its number, when that turns out to be
// used again: it is left to the next scan, and its record does not stay.
func TestVerifiedWhileNumbersTurn(t *testing.T) {
	dir := t.TempDir()
	writeAt(t, dir, "slot_1.safetensors", childtest.TensorsOf(1), 5)
	s := openStore(t, dir, "slot_*")
	verdicts := s.Verify(t.Context(), s.Candidates(true))
	s.tellByTime()
	if added, bad := s.Accept(verdicts); added != nil || bad != nil {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if records, _ := manifest.Records(dir); len(records) != 0 {
		t.Errorf("there are records: %v", records)
	}
	if added, bad := s.Refresh(true); len(added) != 1 || bad != nil || added[0].Step != NoStep {
		t.Errorf("the next look has added %v, bad %v", added, bad)
	}
}

// TestOutdatedCopyStaysAway has names in turn, the first with a copy from when it was the only checkpoint, and
// a kill in the next save under that name. The copy, which a disk has given another time, is not what comes next.
func TestOutdatedCopyStaysAway(t *testing.T) {
	for what, tc := range map[string]struct {
		others []string
		want   string // what is given next
	}{"it is the only name": {nil, "slot_1"}, "others are newer": {[]string{"slot_2", "slot_0"}, "slot_0"}} {
		dir := t.TempDir()
		var now Moment
		s := openStore(t, dir, "slot_*")
		s.opts.Now = func() Moment { return now }
		save := func(slot string, step int) {
			now = Moment{Step: int64(step), Attempt: 1, At: time.Now()}
			writeAt(t, dir, slot, childtest.TensorsOf(step), 1000-step)
			s.Refresh(true)
		}
		save("slot_1", 20)
		for i, slot := range tc.others {
			save(slot, 40+20*i)
		}
		c := copied(recordOf(t, dir, "slot_1"))
		childtest.Must(t, os.Chtimes(filepath.Join(dir, c, "slot_1"), time.Now(), time.Now()))
		writeAt(t, dir, "slot_1", "{", 1)
		s = openStore(t, dir, "slot_*")
		s.ReadRecords()
		s.Refresh(true)
		childtest.Must(t, clearDamaged(t.Context(), s))
		if got := newestOf(s); got != tc.want {
			t.Errorf("%s: the newest is %s of %q", what, got, childtest.Below(t, dir))
		}
		if _, err := os.Stat(filepath.Join(dir, c)); !os.IsNotExist(err) {
			t.Errorf("%s: the copy is left: %v", what, err)
		}
	}
}

// TestTurnsOnNodes has names in turn, and a program that reports on another node: what it had reported at a save comes
// only when that is verified, or later.
func TestTurnsOnNodes(t *testing.T) {
	for _, late := range []bool{false, true} {
		dir := t.TempDir()
		s := openStore(t, dir, "slot_*")
		now := Moment{Attempt: 1}
		s.opts.Now = func() Moment { return now }
		reached := func(saved time.Time) int64 { return 300 - int64(time.Since(saved)/time.Minute) }
		verify := func(slot string, minutes int) (verdicts []Verdict) {
			writeAt(t, dir, slot, childtest.TensorsOf(minutes), minutes)
			return s.Verify(t.Context(), s.Candidates(true))
		}
		verdicts := verify("slot_1", 60)
		if !late {
			s.RecordReported(reached)
			now.Step = 270 // as reported from then on
		}
		s.Accept(verdicts)
		s.Accept(verify("slot_0", 30))
		if late {
			s.RecordReported(reached)
		}
		if !s.Reuses() || newestOf(s) != "slot_0" {
			t.Errorf("late: %v; the newest is %s", late, newestOf(s))
		}
		if r := recordOf(t, dir, "slot_1"); r.Numbers == "" || r.Reported < 230 || r.Reported > 240 {
			t.Errorf("late: %v; the record is %+v", late, r)
		}
	}
}

// TestTurnsShownByDamage has names in turn, and a save that does not count before the first that does, or after it.
func TestTurnsShownByDamage(t *testing.T) {
	for _, damaged := range []string{"slot_1", "slot_0"} {
		dir := t.TempDir()
		s := openStore(t, dir, "slot_*")
		for i, slot := range []string{"slot_1", "slot_0"} {
			s.opts.Now = func() Moment { return Moment{Step: int64(56 + 4*i), Attempt: 1} }
			text := childtest.TensorsOf(i)
			if slot == damaged {
				text = "{"
			}
			writeAt(t, dir, slot+".safetensors", text, 2-i)
			if _, bad := s.Refresh(true); (len(bad) == 1) != (slot == damaged) {
				t.Fatal(bad)
			}
		}
		if s.Refresh(true); !s.Reuses() || newestOf(s) == damaged+".safetensors" {
			t.Errorf("%s is damaged; reused: %v; the newest is %s", damaged, s.Reuses(), newestOf(s))
		}
	}
}

// TestFirstTurn has the save that shows how the numbers are used: it is announced without one.
func TestFirstTurn(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "slot_*")
	for i, slot := range []string{"slot_1", "slot_0"} {
		s.opts.Now = func() Moment { return Moment{Step: int64(56 + 4*i), Attempt: 1} }
		writeAt(t, dir, slot, childtest.TensorsOf(i), 2-i)
		added, _ := s.Refresh(true)
		if want := []int64{1, NoStep}[i]; !slices.Equal(steps(added), []int64{want}) {
			t.Errorf("%s is announced as %v, want step %d", slot, steps(added), want)
		}
	}
}

// TestTurnsOfTheSameStart has names in turn whose first two were saved in an earlier start, when their numbers looked
// like steps: that says nothing about those of this start.
func TestTurnsOfTheSameStart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "slot_*")
	for i, save := range []struct {
		slot     string
		reported int64
		start    int
	}{{"slot_1", 3, 1}, {"slot_2", 4, 1}, {"slot_3", 6, 2}, {"slot_0", 7, 2}} {
		s.opts.Now = func() Moment { return Moment{Step: save.reported, Attempt: save.start} }
		writeAt(t, dir, save.slot, childtest.TensorsOf(i), 9-i)
		s.Refresh(true)
	}
	if !s.Reuses() || newestOf(s) != "slot_0" {
		t.Errorf("reused: %v; the newest is %s", s.Reuses(), newestOf(s))
	}
}
