//go:build unix

package found

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestScan has a scan from outside: it finds what is verified, and leaves no trace.
func TestScan(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1.bin", "ckpt-2.bin", "ckpt-3.safetensors")
	for pattern, want := range map[string][]int64{"ckpt-*": {1, 2}, "": nil, "other-*": nil} {
		found, err := Scan(dir, pattern)
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
	if _, err := Scan(filepath.Join(dir, "none"), "ckpt-*"); err == nil {
		t.Error("a logdir that is not there is no error")
	}
	openStore(t, dir, "ckpt-*").Refresh(true)
	childtest.Write(t, filepath.Join(dir, "ckpt-2.bin"), "CKPT-2.bin") // a changed byte, in a file of the same time
	childtest.Must(t, os.Chtimes(filepath.Join(dir, "ckpt-2.bin"), time.Time{}, time.Unix(1_000_060, 0)))
	if found, err := Scan(dir, "ckpt-*.bin"); err != nil || !slices.Equal(steps(found), []int64{1}) {
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

// TestFolderThatCannotBeSynced: a folder whose sync fails once loses nothing by that, so its checkpoint counts; one
// whose sync fails again is not durable.
func TestFolderThatCannotBeSynced(t *testing.T) {
	for lasting, want := range map[bool][]int64{false: {7}, true: nil} {
		dir := childtest.Logdir(t, "ckpt-7.bin")
		fsys := faultfs.New(0)
		root, err := os.OpenRoot(dir)
		childtest.Must(t, err)
		defer root.Close()
		s := New(root, "ckpt-*", Options{FS: fsys})
		fsys.Break(2, faultfs.Fault{Err: syscall.ENOSPC, Lasting: lasting}) // after the sync of the file
		added, bad := s.Refresh(true)
		if got := steps(added); !slices.Equal(got, want) || !strings.HasPrefix(fsys.Failed(), "sync directory") || len(bad) != 1-len(want) {
			t.Errorf("lasting %v: steps %v, bad %v, want %v; %q failed", lasting, got, bad, want, fsys.Failed())
		}
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
	if c, ok, bad := s.BeforeRead(ctx, &Checkpoint{Step: 2}); ok || bad != nil {
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
// scan that has found it. Of one, no step is known.
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

// TestDamagedWithoutStep has damaged checkpoints without a step, one newer than the verified
// one: that alone is moved aside.
func TestDamagedWithoutStep(t *testing.T) {
	for _, verified := range []string{"last.bin", "ckpt-10.bin"} {
		dir := childtest.Logdir(t, "old.safetensors", verified, "new.safetensors")
		s := openStore(t, dir, "*.*")
		s.Refresh(true)
		clearDamaged(t.Context(), s)
		got := childtest.Below(t, dir)
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
		childtest.Write(t, filepath.Join(dir, name), childtest.Tensors())
	}
	s := openStore(t, dir, "*.safetensors")
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "b.safetensors"), "x")
	s.Refresh(true)
	clearDamaged(t.Context(), s)
	if got := childtest.Read(t, filepath.Join(dir, "b.safetensors")); got != childtest.Tensors() {
		t.Errorf("it has %q", got)
	}
}

// TestDeletedStaysDeleted has a checkpoint that the user has deleted, to begin again.
func TestDeletedStaysDeleted(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.Tensors())
	s := openStore(t, dir, "last*")
	s.Refresh(true)
	childtest.Must(t, os.Remove(filepath.Join(dir, "last.safetensors")))
	s.Refresh(true)
	clearDamaged(t.Context(), s)
	if _, err := os.Stat(filepath.Join(dir, "last.safetensors")); err == nil {
		t.Error("it is there again")
	}
}

// TestNothingIsBroughtBack has records of checkpoints that are gone, and that the program was
// not about to replace: another is there, it is none of the pattern, or it has no copy.
func TestNothingIsBroughtBack(t *testing.T) {
	for name, tc := range map[string]struct{ gone, there, pattern string }{
		"another is there":    {"last.safetensors", "last-b.safetensors", "last*"},
		"none of the pattern": {"last.safetensors", "", "ckpt*"},
		"without a copy":      {"ckpt-1.safetensors", "", "ckpt*"},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, tc.gone), childtest.Tensors())
		openStore(t, dir, tc.gone).Refresh(true)
		childtest.Must(t, os.Remove(filepath.Join(dir, tc.gone)))
		if tc.there != "" {
			childtest.Write(t, filepath.Join(dir, tc.there), childtest.Tensors())
		}
		s := openStore(t, dir, tc.pattern)
		s.ReadRecords()
		s.Refresh(true)
		if gone := s.Gone(); gone != nil {
			t.Errorf("%s: to be brought back are %v", name, gone)
		}
	}
}

// TestLinkToNoSuchFile has a link to a file of a damaged folder that the one before does
// not have: it goes. A hard link that cannot be made leaves the old one.
func TestLinkToNoSuchFile(t *testing.T) {
	dir, st := t.TempDir(), childtest.Tensors()
	for name, text := range map[string]string{"epoch_1/a.safetensors": st, "epoch_2/a.safetensors": st[:20], "epoch_2/b.json": "{}"} {
		childtest.Write(t, filepath.Join(dir, name), text)
	}
	childtest.Must(t, os.Symlink("epoch_2/b.json", filepath.Join(dir, "b")))
	childtest.Must(t, os.Link(filepath.Join(dir, "epoch_2/a.safetensors"), filepath.Join(dir, "hard")))
	s := storeOn(t, childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: dir, Fails: func(op, name string) bool {
		return op == "create" && strings.HasPrefix(name, ".trainerd-") // where links are not known
	}}, dir, "epoch_*")
	s.Refresh(true)
	failed := clearDamaged(t.Context(), s)
	if _, err := os.Lstat(filepath.Join(dir, "b")); !os.IsNotExist(err) {
		t.Errorf("the link is still there: %v", err)
	}
	if got := childtest.Read(t, filepath.Join(dir, "hard")); got != st[:20] || !errors.Is(failed, syscall.EIO) {
		t.Errorf("the hard link has %q; the error is %v", got, failed)
	}
}

// TestWrittenAgainAfterQuarantine has a damaged checkpoint that was moved aside, and an
// intact one of the same name, size and time, as a copy that is brought back may be.
func TestWrittenAgainAfterQuarantine(t *testing.T) {
	dir, text := t.TempDir(), childtest.Tensors()
	name, at := filepath.Join(dir, "ckpt-1.safetensors"), time.Unix(1_700_000_000, 0)
	s := openStore(t, dir, "ckpt-*")
	for _, text := range []string{strings.Replace(text, "{", "x", 1), text} {
		childtest.Write(t, name, text)
		childtest.Must(t, os.Chtimes(name, at, at))
		s.Refresh(true)
		clearDamaged(t.Context(), s)
	}
	if c, ok := s.Newest(); !ok || c.Step != 1 {
		t.Errorf("the newest is %v", c)
	}
}
