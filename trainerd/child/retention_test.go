//go:build unix

package child

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// TestRotateOnBadDisk has each operation of the removal of a checkpoint fail: that is an
// error, and it is removed with the next try.
func TestRotateOnBadDisk(t *testing.T) {
	for what, fails := range map[string]func(op, name string) bool{
		"a new name":            func(op, name string) bool { return op == "rename" && name != "." },
		"the new name, durably": func(op, name string) bool { return op == "sync" && name == "." },
		"the file":              func(op, name string) bool { return op == "remove" && !strings.Contains(name, "/") },
		"the record":            func(op, name string) bool { return op == "remove" && strings.Contains(name, "/") },
		"the record, durably":   func(op, name string) bool { return op == "sync" && name == manifest.RecordsDir },
	} {
		dir := logdirOf(t, "ckpt-1", "ckpt-2", "ckpt-3")
		s := openShelf(t, dir, "ckpt-*", retention.Last(1))
		s.refresh(true)
		whole, failed := s.disk, 0
		s.disk = pickyDisk{whole, dir, func(op, name string) bool {
			if !fails(op, name) || failed > 0 {
				return false
			}
			failed++
			return true
		}}
		if deleted, err := s.rotate(); err == nil || failed != 1 || !slices.Equal(steps(deleted), []int64{2}) {
			t.Errorf("%s: deleted %v, %v", what, deleted, err)
		}
		if s.refresh(true); what == "the record" { // nobody knows it any more, but the next start
			s = openShelf(t, dir, "ckpt-*", retention.Last(1))
			s.readRecords()
			s.refresh(true)
		}
		if _, err := s.rotate(); err != nil {
			t.Errorf("%s: again: %v", what, err)
		}
		must(t, s.sweep())
		if got := below(t, dir); !slices.Equal(got, []string{"ckpt-3"}) || len(s.records) != 1 {
			t.Errorf("%s: left %v, and records %v", what, got, s.records)
		}
		if left, bad := manifest.Records(dir); len(left) != 1 || bad != nil {
			t.Errorf("%s: left are records %v, %v", what, left, bad)
		}
	}
}

// TestSweep has what a killed run may have left: it goes, and what is named stays.
func TestSweep(t *testing.T) {
	dir := logdirOf(t, "last.bin", "c/other.bin")
	s := openShelf(t, dir, "{last.bin,c/other.bin}")
	s.refresh(true)
	want := append(below(t, dir), "note")
	for _, name := range []string{"note", copiesDir + "/left/last.bin", rel(t, dir, atomicfile.TempName(filepath.Join(dir, "x"))), rel(t, dir, atomicfile.TempName(filepath.Join(dir, "c/x")))} {
		writeFile(t, filepath.Join(dir, name), "left")
	}
	whole := s.disk
	s.disk = pickyDisk{whole, dir, func(op, name string) bool { return op == "remove" && strings.Contains(name, "left") }}
	if err := s.sweep(); err == nil {
		t.Error("a copy that cannot be removed is no error")
	}
	s.disk = whole
	must(t, s.sweep())
	if got := below(t, dir); !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("left %v, want %v", got, want)
	}
	if err := s.removeAll(s.abs("none")); !isGoneFile(err) {
		t.Errorf("what is not there is removed: %v", err)
	}
}

func rel(t *testing.T, dir, name string) string {
	t.Helper()
	below, err := filepath.Rel(dir, name)
	must(t, err)
	return below
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

// TestSparedStays has a checkpoint that a rewind may need, and that no policy keeps.
func TestSparedStays(t *testing.T) {
	dir := logdirOf(t, "ckpt-1", "ckpt-2", "ckpt-3")
	s := openShelf(t, dir, "ckpt-*", retention.Last(1))
	s.refresh(true)
	s.spared = func() []string { return []string{s.abs("ckpt-1")} }
	if deleted, err := s.rotate(); err != nil || !slices.Equal(steps(deleted), []int64{2}) {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	if why := s.kept()[0].Why; !slices.Equal(why, []string{"the loss was finite after it"}) {
		t.Errorf("it is kept because %q", why)
	}
}

// TestSpared has the checkpoints that a rewind may need: the newest that is good, and the
// one before as long as nothing has shown that.
func TestSpared(t *testing.T) {
	r := &run{store: &checkpointStore{}}
	for step := range int64(6) {
		r.store.known = append(r.store.known, Checkpoint{Path: string(rune('0' + step)), Step: step, files: []string{"ckpt"}, onTrial: step == 3})
	}
	for _, tc := range []struct {
		rewinds
		want string
	}{
		{rewinds{good: 4}, "4 2"}, {rewinds{good: 4, proven: true}, "4"}, {rewinds{good: 9}, "5 4"}, {rewinds{good: 0}, "0"}, {rewinds{good: -1}, ""},
	} {
		r.rewinds = tc.rewinds
		if got := strings.Join(r.spared(), " "); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.rewinds, got, tc.want)
		}
	}
}

// TestRewindsBegin has a start without a checkpoint: nothing is good yet, nor shown to be.
func TestRewindsBegin(t *testing.T) {
	b := &rewinds{good: 7, proven: true}
	if b.begin(nil); b.proven || b.trusts(&Checkpoint{Step: 0, files: []string{"ckpt-0"}}) {
		t.Errorf("it begins with %+v", b)
	}
}

// TestGotPastTheFault has finite losses after rewinds in a row: the count begins again once
// the program has got past the step of the fault.
func TestGotPastTheFault(t *testing.T) {
	r := &run{Supervisor: &Supervisor{MaxRewinds: 3}, rewinds: rewinds{count: 2, further: 2, failed: 10}}
	for _, tc := range []struct {
		step int64
		want int
	}{{9, 2}, {10, 2}, {11, 0}} {
		r.watchLoss(&Report{Step: tc.step, Values: []Value{{"loss", 1}}}, time.Now())
		if b := r.rewinds; b.count != tc.want || b.further != tc.want || b.good != tc.step || !b.proven {
			t.Errorf("step %d: %+v", tc.step, b)
		}
	}
}

// TestRewindOfPointers has a file that names a checkpoint from after the fault, and a disk
// that does not let it be changed: the program would continue from there.
func TestRewindOfPointers(t *testing.T) {
	dir := logdirOf(t, "ckpt-1", "ckpt-2")
	writeFile(t, filepath.Join(dir, "latest"), "ckpt-2")
	s := openShelf(t, dir, "ckpt-*")
	s.refresh(true)
	s.disk = pickyDisk{s.disk, dir, func(op, name string) bool { return op == "create" && strings.HasSuffix(name, ".tmp") }}
	if err := (&run{log: discard, store: s}).moveAside(s.known[1]); err == nil {
		t.Error("no error")
	}
}

// TestChooseForRewind has the checkpoint to go back to: with each rewind in a row an
// earlier one, and not the one that the program was given and that gave no finite loss.
func TestChooseForRewind(t *testing.T) {
	at := func(step int64) *Checkpoint {
		return &Checkpoint{Step: step, files: []string{"ckpt-" + string(rune('0'+step))}}
	}
	all := []Checkpoint{*at(1), *at(2), *at(3)}
	for _, tc := range []struct {
		rewinds
		intact []Checkpoint
		given  *Checkpoint
		want   int64
	}{
		{rewinds{}, all, nil, 3}, {rewinds{further: 1}, all, nil, 2}, {rewinds{further: 9}, all, nil, 1},
		{rewinds{}, all, at(3), 2}, {rewinds{proven: true}, all, at(3), 3}, {rewinds{}, all, at(2), 3},
		{rewinds{further: 1}, all, at(2), 1}, {rewinds{further: 2}, all, at(1), 1}, {rewinds{}, all[:1], at(1), 1},
	} {
		if got := tc.rewinds.choose(tc.intact, tc.given); got.Step != tc.want {
			t.Errorf("%+v of %d, given %v: step %d, want %d", tc.rewinds, len(tc.intact), tc.given, got.Step, tc.want)
		}
	}
}

// TestSavedIsRecorded has a checkpoint whose files got a new time since it was recorded:
// policies see that of the record.
func TestSavedIsRecorded(t *testing.T) {
	old := time.Unix(1_000_000, 0)
	c := Checkpoint{Saved: time.Now(), record: &manifest.Record{WallTime: old}}
	if got := c.stored().Saved; !got.Equal(old) {
		t.Errorf("it was saved at %v", got)
	}
}

// TestPinOnBadDisk: a pin that cannot be made is an error.
func TestPinOnBadDisk(t *testing.T) {
	dir := logdirOf(t, "ckpt-1")
	s := openShelf(t, dir, "ckpt-*")
	s.refresh(true)
	must(t, s.pin(s.known[0]))
	if _, err := os.Stat(filepath.Join(dir, "ckpt-1.pin")); err != nil {
		t.Error(err)
	}
	s.disk = pickyDisk{s.disk, dir, func(string, string) bool { return true }}
	if s.pin(s.known[0]) == nil {
		t.Error("no error")
	}
}

// TestKeepsTheProgramsBest has checkpoints of transformers. The newest one names the
// one that is loaded at the end.
func TestKeepsTheProgramsBest(t *testing.T) {
	dir := t.TempDir()
	s := openShelf(t, dir, "checkpoint-*", retention.Last(1))
	for _, step := range []string{"1", "2", "3"} {
		folder := filepath.Join(dir, "checkpoint-"+step)
		writeFile(t, filepath.Join(folder, "model.safetensors"), tensorsFile())
		writeFile(t, filepath.Join(folder, "trainer_state.json"), `{"best_model_checkpoint": "`+filepath.Join(dir, "checkpoint-1")+`", "log_history": []}`)
		if added, bad := s.refresh(true); len(added) != 1 || bad != nil {
			t.Fatalf("added %v, bad %v", added, bad)
		}
		if _, err := s.rotate(); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for _, c := range s.known {
		left = append(left, filepath.Base(c.Path))
	}
	if !slices.Equal(left, []string{"checkpoint-1", "checkpoint-3"}) {
		t.Errorf("left are %v", left)
	}
}
