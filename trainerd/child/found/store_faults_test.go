//go:build unix

package found

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestLook has a look from outside: it finds what is verified, and leaves no trace.
func TestLook(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.safetensors")
	for pattern, want := range map[string][]int64{"ckpt-*": {1, 2}, "": nil, "other-*": nil} {
		found, err := Look(dir, pattern)
		if got := steps(found); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: steps %v, %v; want %v", pattern, got, err, want)
		}
	}
	if left := childtest.Below(t, dir); len(left) != 3 {
		t.Errorf("it has left %v", left)
	}
	if _, err := os.Stat(filepath.Join(dir, manifest.RecordsDir)); err == nil {
		t.Error("it has recorded what it has found")
	}
	if _, err := Look(filepath.Join(dir, "none"), "ckpt-*"); err == nil {
		t.Error("a logdir that is not there is no error")
	}
	openStore(t, dir, "ckpt-*").Refresh(true)
	childtest.Write(t, filepath.Join(dir, "ckpt-2.bin"), "CKPT-2.bin") // a changed byte, in a file of the same time
	childtest.Must(t, os.Chtimes(filepath.Join(dir, "ckpt-2.bin"), time.Time{}, time.Unix(1_000_060, 0)))
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
	childtest.Write(t, filepath.Join(dir, "ckpt-1", "w"), "weights")
	childtest.Must(t, os.Symlink("w", filepath.Join(dir, "ckpt-1", "model")))
	childtest.Write(t, filepath.Join(dir, "ckpt-2", "w"), "weights")
	childtest.Must(t, os.Symlink("../../outside", filepath.Join(dir, "ckpt-2", "model")))
	s := openStore(t, dir, "ckpt-*", retention.Last(1))
	if added, bad := s.Refresh(true); !slices.Equal(steps(added), []int64{1, 2}) || bad != nil {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if _, err := s.Rotate(); err != nil {
		t.Error(err)
	}
	if got := childtest.Below(t, dir); !slices.Equal(got, []string{"ckpt-2/model", "ckpt-2/w"}) {
		t.Errorf("left %v", got)
	}
}

// TestFileOfCheckpointIsGone has a checkpoint of two files, one of which was deleted since
// it was recorded.
func TestFileOfCheckpointIsGone(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-2.opt")
	openStore(t, dir, "ckpt-*").Refresh(true)
	childtest.Must(t, os.Remove(filepath.Join(dir, "ckpt-2.opt")))
	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	s.records[key{step: 2}].Parts = []string{"ckpt-2.bin"} // as one of a folder has it
	added, bad := s.Refresh(true)
	if !slices.Equal(steps(added), []int64{1}) || len(bad) != 1 || !strings.Contains(bad[0].Error(), "it is gone, and its manifest names it") {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestStopWhileReading has a stop while a checkpoint is read: nothing is found out about it.
func TestStopWhileReading(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin")
	openStore(t, dir, "ckpt-*").Refresh(true)
	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	s.Refresh(true)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if c, ok, bad := s.NewestRead(ctx, 2); ok || bad != nil {
		t.Errorf("got %v, %v, %v", c, ok, bad)
	}
	if got := s.NewestDamaged(); got != nil {
		t.Errorf("damaged are %v", got)
	}
}

// TestMetricsThatComeLate has metrics that are reported while a checkpoint is verified, on
// a disk that does not take them.
func TestMetricsThatComeLate(t *testing.T) {
	dir, reported := childtest.Logdir(t, "ckpt-1.bin"), false
	s := openStore(t, dir, "ckpt-*")
	writes := 0
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, name string) bool {
		if op == "create" && strings.HasPrefix(name, manifest.RecordsDir) {
			writes++
		}
		return writes > 1
	}}
	s.opts.Metrics = func(*Checkpoint) checkpoint.Measurements {
		if !reported {
			reported = true
			return nil
		}
		return checkpoint.Measurements{}.With("loss", checkpoint.Measurement{Value: 1, Step: 1})
	}
	if added, _ := s.Refresh(true); len(added) != 1 || len(s.unrecorded) != 1 {
		t.Errorf("added %v, unrecorded %v", added, s.unrecorded)
	}
}

// TestRefusedThatGoes has a damaged checkpoint that is deleted before it is moved aside.
func TestRefusedThatGoes(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.safetensors")
	s := openStore(t, dir, "ckpt-*")
	s.Refresh(true)
	if got := s.NewestDamaged(); len(got) != 1 {
		t.Fatalf("damaged are %v", got)
	}
	childtest.Must(t, os.Remove(filepath.Join(dir, "ckpt-1.safetensors")))
	if got := s.NewestDamaged(); got != nil {
		t.Errorf("damaged are %v", got)
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
		"cut meanwhile": {childtest.Tensors(), func(t *testing.T, file string) { childtest.Must(t, os.Truncate(file, 20)) }},
		"changed meanwhile": {childtest.Tensors(), func(t *testing.T, file string) {
			childtest.Write(t, file, childtest.Flip(childtest.Tensors(), len(childtest.Tensors())-1))
		}},
		"gone meanwhile": {childtest.Tensors(), func(t *testing.T, file string) { childtest.Must(t, os.Remove(file)) }},
	} {
		dir, done := t.TempDir(), false
		childtest.Write(t, filepath.Join(dir, name), tc.text)
		s := openStore(t, dir, name)
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, below string) bool {
			if op == "mkdir" && strings.HasPrefix(below, CopiesDir+"/") != (what == "gone meanwhile") && !done {
				done = true
				tc.harm(t, filepath.Join(dir, name))
			}
			return false
		}}
		s.Refresh(true)
		if len(s.unrecorded) > 1 {
			t.Errorf("%s: %v", what, s.unrecorded)
		}
		if copies, err := os.ReadDir(filepath.Join(dir, CopiesDir)); err != nil || len(copies) != 0 {
			t.Errorf("%s: copies %v, %v", what, copies, err)
		}
	}
	s := openStore(t, t.TempDir(), name)
	free, err := logdir.FreeSpace(s.root.Name())
	childtest.Must(t, err)
	if _, err := s.copyAside(t.Context(), Checkpoint{Size: free / 3 * 2}, &manifest.Record{}); err == nil || !strings.Contains(err.Error(), "are left") {
		t.Errorf("without the space: %v", err)
	}
}

// TestKeptWhy has what `ckpt ls` and the report of a run say of checkpoints that no policy
// decides about.
func TestKeptWhy(t *testing.T) {
	dir := childtest.Logdir(t, "c-1.bin", "c.bin", "c-10/w")
	s := openStore(t, dir, "c*")
	s.opts.IsPast = func(c *Checkpoint) bool { return c.Step == 1 || c.Step == NoStep }
	s.Refresh(true)
	var got []string
	for _, k := range s.Retained() {
		got = append(got, strings.Join(k.Why, ", "))
	}
	if want := []string{"its name has no step", "all are kept", "the program has not continued from it yet"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAtOfEpoch has checkpoints of epochs: the step is that of its record, or else of the
// look that has found it. Of one, no step is known.
func TestAtOfEpoch(t *testing.T) {
	for _, tc := range []struct{ epoch, recorded, found, want int64 }{
		{1, 40, 50, 40}, {1, 2, 0, 2}, {1, 0, 50, 50}, {1, 0, 0, NoStep}, {0, 1, 0, 1}, {0, 0, 1, 1},
	} {
		c := &Checkpoint{Step: tc.epoch, files: []string{"epoch_1"}, record: &manifest.Record{Reported: tc.recorded}, first: Moment{Step: tc.found}}
		if got := c.At(); got != tc.want {
			t.Errorf("%+v: it is of step %d", tc, got)
		}
	}
	c := &Checkpoint{Step: 10, files: []string{"epoch_010"}}
	if got := c.At(); got != NoStep {
		t.Errorf("it is of step %d", got)
	}

}
