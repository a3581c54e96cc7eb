//go:build unix

package child

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestLook has a look from outside: it finds what is verified, and leaves no trace.
func TestLook(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.safetensors")
	for pattern, want := range map[string][]int64{"ckpt-*": {1, 2}, "": nil, "other-*": nil} {
		found, err := Look(dir, pattern)
		if got := steps(found); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: steps %v, %v; want %v", pattern, got, err, want)
		}
	}
	if left := below(t, dir); len(left) != 3 {
		t.Errorf("it has left %v", left)
	}
	if _, err := os.Stat(filepath.Join(dir, manifest.RecordsDir)); err == nil {
		t.Error("it has recorded what it has found")
	}
	if _, err := Look(filepath.Join(dir, "none"), "ckpt-*"); err == nil {
		t.Error("a logdir that is not there is no error")
	}
	openShelf(t, dir, "ckpt-*").refresh(true)
	writeFile(t, filepath.Join(dir, "ckpt-2.bin"), "CKPT-2.bin") // a changed byte, in a file of the same time
	must(t, os.Chtimes(filepath.Join(dir, "ckpt-2.bin"), time.Time{}, time.Unix(1_000_060, 0)))
	if found, err := Look(dir, "ckpt-*.bin"); err != nil || !slices.Equal(steps(found), []int64{1}) {
		t.Errorf("next to a record: %v, %v", found, err)
	}
	if got := StepOf(filepath.Join(dir, "ckpt-3.safetensors")); got != 3 {
		t.Errorf("StepOf = %d", got)
	}
	if why := CheckPattern(strings.Repeat("{a,b}", 7)); !strings.Contains(why, "more than 64 alternatives") {
		t.Errorf("a pattern of 128 alternatives: %q", why)
	}
	if why := CheckPattern(strings.Repeat("{a,b}", 6)); why != "" {
		t.Errorf("a pattern of 64 alternatives: %q", why)
	}
}

// TestLinksInFolders has a folder with a symbolic link: its checkpoint counts, and the
// target is left alone.
func TestLinksInFolders(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "ckpt-1", "w"), "weights")
	must(t, os.Symlink("w", filepath.Join(dir, "ckpt-1", "model")))
	writeFile(t, filepath.Join(dir, "ckpt-2", "w"), "weights")
	must(t, os.Symlink("../../outside", filepath.Join(dir, "ckpt-2", "model")))
	s := openShelf(t, dir, "ckpt-*", retention.Last(1))
	if added, bad := s.refresh(true); !slices.Equal(steps(added), []int64{1, 2}) || bad != nil {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if _, err := s.rotate(); err != nil {
		t.Error(err)
	}
	if got := below(t, dir); !slices.Equal(got, []string{"ckpt-2/model", "ckpt-2/w"}) {
		t.Errorf("left %v", got)
	}
}

// TestFileOfCheckpointIsGone has a checkpoint of two files, one of which was deleted since
// it was recorded.
func TestFileOfCheckpointIsGone(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-2.opt")
	openShelf(t, dir, "ckpt-*").refresh(true)
	must(t, os.Remove(filepath.Join(dir, "ckpt-2.opt")))
	s := openShelf(t, dir, "ckpt-*")
	s.readRecords()
	s.records[key{step: 2}].Parts = []string{"ckpt-2.bin"} // as one of a folder has it
	added, bad := s.refresh(true)
	if !slices.Equal(steps(added), []int64{1}) || len(bad) != 1 || !strings.Contains(bad[0].Error(), "it is gone, and its manifest names it") {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestStopWhileReading has a stop while a checkpoint is read: nothing is found out about it.
func TestStopWhileReading(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.bin", "ckpt-2.bin")
	openShelf(t, dir, "ckpt-*").refresh(true)
	s := openShelf(t, dir, "ckpt-*")
	s.readRecords()
	s.refresh(true)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if c, ok, bad := s.newestRead(ctx, 2); ok || bad != nil {
		t.Errorf("got %v, %v, %v", c, ok, bad)
	}
	if got := s.newestDamaged(); got != nil {
		t.Errorf("damaged are %v", got)
	}
}

// TestMetricsThatComeLate has metrics that are reported while a checkpoint is verified, on
// a disk that does not take them.
func TestMetricsThatComeLate(t *testing.T) {
	dir, reported := logdirOf(t, "ckpt-1.bin"), false
	s := openShelf(t, dir, "ckpt-*")
	writes := 0
	s.disk = pickyDisk{s.disk, dir, func(op, name string) bool {
		if op == "create" && strings.HasPrefix(name, manifest.RecordsDir) {
			writes++
		}
		return writes > 1
	}}
	s.metrics = func(*Checkpoint) checkpoint.Measurements {
		if !reported {
			reported = true
			return nil
		}
		return checkpoint.Measurements{}.With("loss", checkpoint.Measurement{Value: 1, Step: 1})
	}
	if added, _ := s.refresh(true); len(added) != 1 || len(s.unrecorded) != 1 {
		t.Errorf("added %v, unrecorded %v", added, s.unrecorded)
	}
}

// TestRefusedThatGoes has a damaged checkpoint that is deleted before it is moved aside.
func TestRefusedThatGoes(t *testing.T) {
	dir := logdirOf(t, "ckpt-1.safetensors")
	s := openShelf(t, dir, "ckpt-*")
	s.refresh(true)
	if got := s.newestDamaged(); len(got) != 1 {
		t.Fatalf("damaged are %v", got)
	}
	must(t, os.Remove(filepath.Join(dir, "ckpt-1.safetensors")))
	if got := s.newestDamaged(); got != nil {
		t.Errorf("damaged are %v", got)
	}
}

// TestDamagedWithoutStep has damaged checkpoints without a step, of which one is newer than
// the verified one: that alone is moved aside.
func TestDamagedWithoutStep(t *testing.T) {
	for _, verified := range []string{"last.bin", "ckpt-10.bin"} {
		dir := logdirOf(t, "old.safetensors", verified, "new.safetensors")
		s := openShelf(t, dir, "*.*")
		s.refresh(true)
		(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
		got := below(t, dir)
		if !slices.Contains(got, "old.safetensors") || !slices.Contains(got, verified) || slices.Contains(got, "new.safetensors") {
			t.Errorf("left %v", got)
		}
	}
}

// TestOneOfTwoIsBroughtBack has two checkpoints that a program overwrites, one of which is
// damaged.
func TestOneOfTwoIsBroughtBack(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.safetensors", "b.safetensors"} {
		writeFile(t, filepath.Join(dir, name), tensorsFile())
	}
	s := openShelf(t, dir, "*.safetensors")
	s.refresh(true)
	writeFile(t, filepath.Join(dir, "b.safetensors"), "x")
	s.refresh(true)
	(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if got := readFile(t, filepath.Join(dir, "b.safetensors")); got != tensorsFile() {
		t.Errorf("it has %q", got)
	}
}

// TestDeletedStaysDeleted has a checkpoint that the user has deleted, to begin again.
func TestDeletedStaysDeleted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "last.safetensors"), tensorsFile())
	s := openShelf(t, dir, "last*")
	s.refresh(true)
	must(t, os.Remove(filepath.Join(dir, "last.safetensors")))
	s.refresh(true)
	(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if _, err := os.Stat(filepath.Join(dir, "last.safetensors")); err == nil {
		t.Error("it is there again")
	}
}

// TestNothingIsBroughtBack has records of checkpoints that are gone, of which none is the one
// that the program was about to replace: another is there, it is none of the pattern, or it
// has no copy.
func TestNothingIsBroughtBack(t *testing.T) {
	for name, tc := range map[string]struct{ gone, there, pattern string }{
		"another is there":    {"last.safetensors", "last-b.safetensors", "last*"},
		"none of the pattern": {"last.safetensors", "", "ckpt*"},
		"without a copy":      {"ckpt-1.safetensors", "", "ckpt*"},
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, tc.gone), tensorsFile())
		openShelf(t, dir, tc.gone).refresh(true)
		must(t, os.Remove(filepath.Join(dir, tc.gone)))
		if tc.there != "" {
			writeFile(t, filepath.Join(dir, tc.there), tensorsFile())
		}
		log := newScreen()
		r := &run{Supervisor: &Supervisor{}, log: logTo(log), store: openShelf(t, dir, tc.pattern), counts: &counts{}}
		r.store.readRecords()
		r.store.refresh(true)
		r.bringBackGone(t.Context())
		if _, err := os.Stat(filepath.Join(dir, tc.gone)); err == nil || log.String() != "" {
			t.Errorf("%s: it is there again, or that is said: %v\n%s", name, err, log)
		}
	}
}

// TestNoCopy has copies that cannot be made, or that are not what was verified: none is
// left, and the checkpoint counts.
func TestNoCopy(t *testing.T) {
	const name = "last.safetensors"
	for what, tc := range map[string]struct {
		text string
		harm func(t *testing.T, file string) // when the copy is begun
	}{
		"cut meanwhile":     {tensorsFile(), func(t *testing.T, file string) { must(t, os.Truncate(file, 20)) }},
		"changed meanwhile": {tensorsFile(), func(t *testing.T, file string) { writeFile(t, file, flip(tensorsFile(), len(tensorsFile())-1)) }},
		"gone meanwhile":    {tensorsFile(), func(t *testing.T, file string) { must(t, os.Remove(file)) }},
	} {
		dir, done := t.TempDir(), false
		writeFile(t, filepath.Join(dir, name), tc.text)
		s := openShelf(t, dir, name)
		s.disk = pickyDisk{s.disk, dir, func(op, below string) bool {
			if op == "mkdir" && strings.HasPrefix(below, copiesDir+"/") != (what == "gone meanwhile") && !done {
				done = true
				tc.harm(t, filepath.Join(dir, name))
			}
			return false
		}}
		s.refresh(true)
		if len(s.unrecorded) > 1 {
			t.Errorf("%s: %v", what, s.unrecorded)
		}
		if copies, err := os.ReadDir(filepath.Join(dir, copiesDir)); err != nil || len(copies) != 0 {
			t.Errorf("%s: copies %v, %v", what, copies, err)
		}
	}
	s := openShelf(t, t.TempDir(), name)
	free, err := logdir.FreeSpace(s.root.Name())
	must(t, err)
	if _, err := s.copyAside(t.Context(), Checkpoint{Size: free / 3 * 2}, &manifest.Record{}); err == nil || !strings.Contains(err.Error(), "are left") {
		t.Errorf("without the space: %v", err)
	}
}

// TestCopyIsBroughtBack has a damaged checkpoint that the program overwrites, whose copy is
// intact, or damaged too: then neither is given to the program, and no record is left.
func TestCopyIsBroughtBack(t *testing.T) {
	const name, done, failed = "last.safetensors", "brought back the last verified copy", "cannot bring back the copy"
	for _, intact := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			given := ""
			sv, log := simulate(t, func(p *simProgram) int {
				given = p.variable("TRAINERD_CHECKPOINT")
				return 0
			})
			sv.Checkpoints = "last*"
			file := filepath.Join(sv.Logdir, name)
			writeFile(t, file, tensorsFile())
			openShelf(t, sv.Logdir, "last*").refresh(true)
			copies, err := filepath.Glob(filepath.Join(sv.Logdir, copiesDir, "*", name))
			if err != nil || len(copies) != 1 {
				t.Fatal(copies, err)
			}
			want := file
			if writeFile(t, file, "x"); !intact {
				writeFile(t, copies[0], "x")
				want = ""
			}
			if _, err := sv.Run(t.Context()); err != nil || given != want {
				t.Errorf("Run = %v; the program was given %q, want %q", err, given, want)
			}
			if strings.Contains(log.String(), done) != intact || strings.Contains(log.String(), failed) == intact {
				t.Errorf("intact: %v; log:\n%s", intact, log)
			}
			if records, bad := manifest.Records(sv.Logdir); (len(records) == 1) != intact || bad != nil {
				t.Errorf("intact: %v; records %v, %v", intact, records, bad)
			}
		})
	}
}

// TestDiskTakesCopyLater has a disk that refuses to sync the logdir for an hour, just after the
// program has overwritten its only checkpoint, and a program that fails then: it is not started
// from the beginning, but from the copy, once the disk takes that.
func TestDiskTakesCopyLater(t *testing.T) {
	const name = "last.safetensors"
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		full, given := time.Time{}, ""
		save := func(text string) {
			file := filepath.Join(sv.Logdir, name)
			writeFile(t, file, text)
			must(t, os.Chtimes(file, time.Now(), time.Now()))
		}
		sv, log := simulate(t, func(p *simProgram) int {
			if given = p.variable("TRAINERD_CHECKPOINT"); given != "" {
				return 0
			}
			p.say("step=1")
			save(tensorsFile())
			p.sleep(10 * time.Minute)
			full = time.Now()
			p.say("step=2")
			save(flip(tensorsFile(), len(tensorsFile())-1))
			p.sleep(10 * time.Minute)
			return 1
		})
		sv.Checkpoints = name
		picky(sv, func(op, below string) bool {
			return op == "sync" && below == "." && !full.IsZero() && time.Since(full) < time.Hour
		})
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 || time.Since(full) < time.Hour || given == "" {
			t.Errorf("Run = %+v, %v; it was given %q\n%s", exit, err, given, log)
		}
	})
}

// TestLinkToNoSuchFile has a link to a file of a damaged folder that the one before does
// not have: it goes. A hard link that cannot be made leaves the old one.
func TestLinkToNoSuchFile(t *testing.T) {
	dir, st := t.TempDir(), tensorsFile()
	for name, text := range map[string]string{"epoch_1/a.safetensors": st, "epoch_2/a.safetensors": st[:20], "epoch_2/b.json": "{}"} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	must(t, os.Symlink("epoch_2/b.json", filepath.Join(dir, "b")))
	must(t, os.Link(filepath.Join(dir, "epoch_2/a.safetensors"), filepath.Join(dir, "hard")))
	s := openShelf(t, dir, "epoch_*")
	s.disk = pickyDisk{s.disk, dir, func(op, name string) bool {
		return op == "create" && strings.HasPrefix(name, ".trainerd-") // where links are not known
	}}
	s.refresh(true)
	log := newScreen()
	(&run{Supervisor: &Supervisor{}, log: logTo(log), store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	if _, err := os.Lstat(filepath.Join(dir, "b")); !os.IsNotExist(err) {
		t.Errorf("the link is still there: %v", err)
	}
	if got := readFile(t, filepath.Join(dir, "hard")); got != st[:20] || !strings.Contains(log.String(), "cannot correct what names the damaged checkpoint") {
		t.Errorf("the hard link has %q; log:\n%s", got, log)
	}
}

// TestAtOfEpoch has checkpoints of epochs: the step is that of its record, or else of the
// look that has found it. Of one, no step is known.
func TestAtOfEpoch(t *testing.T) {
	for _, tc := range []struct{ epoch, recorded, found, want int64 }{
		{1, 40, 50, 40}, {1, 2, 0, 2}, {1, 0, 50, 50}, {1, 0, 0, NoStep}, {0, 1, 0, 1}, {0, 0, 1, 1},
	} {
		c := &Checkpoint{Step: tc.epoch, files: []string{"epoch_1"}, record: &manifest.Record{Reported: tc.recorded}, first: moment{step: tc.found}}
		if got := c.at(); got != tc.want {
			t.Errorf("%+v: it is of step %d", tc, got)
		}
	}
	c := &Checkpoint{Step: 10, files: []string{"epoch_010"}}
	if got := c.at(); got != NoStep {
		t.Errorf("it is of step %d", got)
	}
	b := &rewinds{good: 1000}
	if c.Saved = b.goodAt.Add(1); b.trusts(c) {
		t.Error("it is trusted, and came after the last finite loss")
	}
	if c.Saved = b.goodAt; !b.trusts(c) {
		t.Error("it is not trusted, and came before the last finite loss")
	}
}

// TestMeasuredIsLimited has more reports than are remembered: the newest are.
func TestMeasuredIsLimited(t *testing.T) {
	var m measured
	for step := range int64(maxRemembered + 10) {
		m.add(&Report{Step: step, Values: []Value{{"loss", float64(step)}}})
	}
	for step, want := range map[int64]int{5: 0, maxRemembered + 9: 1, 100: 1} {
		if got := m.of(&Checkpoint{Step: step, files: []string{"ckpt"}}); len(got) != want {
			t.Errorf("step %d has %v", step, got)
		}
	}
}

// TestWrittenAgainAfterQuarantine has a damaged checkpoint that was moved aside, and an
// intact one of the same name, size and time, as a copy that is brought back may be.
func TestWrittenAgainAfterQuarantine(t *testing.T) {
	dir, text := t.TempDir(), tensorsFile()
	name, at := filepath.Join(dir, "ckpt-1.safetensors"), time.Unix(1_700_000_000, 0)
	s := openShelf(t, dir, "ckpt-*")
	for _, text := range []string{strings.Replace(text, "{", "x", 1), text} {
		writeFile(t, name, text)
		must(t, os.Chtimes(name, at, at))
		s.refresh(true)
		(&run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}).quarantineDamaged(t.Context())
	}
	if c, ok := s.newest(noCeiling); !ok || c.Step != 1 {
		t.Errorf("the newest is %v", c)
	}
}

// TestKeptWhy has what `ckpt ls` and the report of a run say of checkpoints that no policy
// decides about.
func TestKeptWhy(t *testing.T) {
	dir := logdirOf(t, "c-1.bin", "c.bin", "c-10/w")
	s := openShelf(t, dir, "c*")
	s.isPast = func(c *Checkpoint) bool { return c.Step == 1 || c.Step == NoStep }
	s.refresh(true)
	var got []string
	for _, k := range s.kept() {
		got = append(got, strings.Join(k.Why, ", "))
	}
	if want := []string{"its name has no step", "all are kept", "the program has not continued from it yet"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
