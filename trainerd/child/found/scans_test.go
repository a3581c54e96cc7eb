//go:build unix

package found

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestScansUntilItCounts has what a program may still be writing: a file counts once two
// scans have found it the same, all else after four.
func TestScansUntilItCounts(t *testing.T) {
	for want, names := range map[int][]string{2: {"ckpt-1"}, 4: {"ckpt-1/w"}, -4: {"ckpt-1.a", "ckpt-1.b"}} {
		dir := childtest.Logdir(t, names...)
		s := openStore(t, dir, "ckpt-*")
		want = max(want, -want)
		for look := 1; look <= want; look++ {
			if added, bad := s.Refresh(false); (len(added) == 1) != (look == want) || bad != nil {
				t.Errorf("%v, look %d: added %v, bad %v; want it at look %d", names, look, added, bad, want)
			}
		}
	}
}

// TestNothingIsOnTrialMeanwhile has a first folder of a program that is alive: as long as
// nothing shows that it is finished, it is not known.
func TestNothingIsOnTrialMeanwhile(t *testing.T) {
	s := openStore(t, childtest.Logdir(t, "ckpt-1/w"), "ckpt-*")
	s.opts.IsPast = func(*Checkpoint) bool { return false }
	for range 9 {
		if added, bad := s.Refresh(false); added != nil || bad != nil || len(s.known) > 0 {
			t.Fatalf("added %v, bad %v, known %v", added, bad, s.known)
		}
	}
	if added, _ := s.Refresh(true); added != nil || len(s.known) != 1 || s.known[0].record != nil {
		t.Errorf("at the end: added %v, known %v", added, s.known)
	}
}

// TestRefusedIsReadAgain has checkpoints that do not count: they are read again only if the
// system was why, and may let it be read by now.
func TestRefusedIsReadAgain(t *testing.T) {
	eio := &fs.PathError{Op: "read", Path: "ckpt-1", Err: syscall.EIO}
	for _, tc := range []struct {
		err  error
		want bool
	}{{errEmpty, false}, {&notDurableError{eio}, false}, {eio, true}} {
		s := openStore(t, childtest.Logdir(t, "ckpt-1"), "ckpt-*")
		c := s.find()[key{step: 1}]
		s.refused[c.key()] = Rejected{Checkpoint: c, err: tc.err}
		if added, bad := s.Refresh(true); (len(added) == 1) != tc.want || bad != nil || len(s.refused) > 0 == tc.want {
			t.Errorf("%v: added %v, bad %v, refused %v", tc.err, added, bad, s.refused)
		}
	}
}

// TestRefusedIsSaidOnce has a checkpoint that cannot be read: that is said again only when
// it was written again.
func TestRefusedIsSaidOnce(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1")
	s := openStore(t, dir, "ckpt-*")
	for i, want := range []int{1, 0, 1, 0} {
		if i == 2 {
			childtest.Write(t, filepath.Join(dir, "ckpt-1"), "other weights")
		}
		c := s.find()[key{step: 1}]
		if _, bad := s.Accept([]Verdict{{Rejected: Rejected{Checkpoint: c, err: errors.New("it cannot be read")}}}); len(bad) != want {
			t.Errorf("look %d: bad %v, want %d", i, bad, want)
		}
	}
}

// TestChangedSinceItWasRead has checkpoints that change while they are verified: the verdict
// is about nothing that is there.
func TestChangedSinceItWasRead(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	for what, change := range map[string]func(name string) error{
		"its size": func(name string) error {
			return errors.Join(os.WriteFile(name, []byte("longer weights"), 0o666), os.Chtimes(name, at, at))
		},
		"its time": func(name string) error { return os.Chtimes(name, at, at.Add(time.Second)) },
		"it goes":  os.Remove,
	} {
		dir := childtest.Logdir(t, "ckpt-1")
		s := openStore(t, dir, "ckpt-*")
		verdicts := s.Verify(t.Context(), s.Candidates(true))
		childtest.Must(t, change(filepath.Join(dir, "ckpt-1")))
		if added, bad := s.Accept(verdicts); added != nil || bad != nil || len(s.known) > 0 {
			t.Errorf("%s: added %v, bad %v, known %v", what, added, bad, s.known)
		}
	}
}

// TestIntactAgain has a damaged checkpoint that is written again: nothing calls it damaged
// any more.
func TestIntactAgain(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "ckpt-*")
	for _, text := range []string{"x", childtest.Tensors()} {
		childtest.Write(t, filepath.Join(dir, "ckpt-1.safetensors"), text)
		s.Refresh(true)
	}
	if c, ok := s.Newest(); !ok || !slices.Equal(c.files, []string{"ckpt-1.safetensors"}) || len(s.refused) > 0 {
		t.Errorf("the newest is %v, refused are %v", c, s.refused)
	}
}

// TestFilesOfBundles has a pattern that means one file of each bundle: the others belong to
// it, and those of other bundles, and files of like names, do not.
func TestFilesOfBundles(t *testing.T) {
	dir := childtest.Logdir(t, "m-1.index", "m-1.meta", "m-1.data-00000-of-00001", "n-1.index", "m-1.txt", "a/m-2.data-00000-of-00001", "a/m-2.index", "m-3.data-00000-of-00001")
	found := openStore(t, dir, "{m-*.index,a/m-*.index}").find()
	for step, want := range map[int64][]string{
		1: {"m-1.data-00000-of-00001", "m-1.index", "m-1.meta"}, 2: {"a/m-2.data-00000-of-00001", "a/m-2.index"},
	} {
		if got := found[key{step: step}]; !slices.Equal(got.files, want) {
			t.Errorf("step %d has %v, want %v", step, got.files, want)
		}
	}
	if len(found) != 2 {
		t.Errorf("found %v", found)
	}
}

// TestLinkIsNoCheckpoint has links, and what is not a file, with names of checkpoints: they are
// none, and nobody's to move aside.
func TestLinkIsNoCheckpoint(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1", "best.bin")
	childtest.Must(t, os.Symlink("best.bin", filepath.Join(dir, "ckpt-2")))
	childtest.Must(t, os.Symlink("nowhere", filepath.Join(dir, "ckpt-3")))
	childtest.Must(t, syscall.Mkfifo(filepath.Join(dir, "ckpt-4"), 0o666))
	s := openStore(t, dir, "ckpt-*")
	if added, bad := s.Refresh(true); !slices.Equal(steps(added), []int64{1}) || bad != nil || len(s.NewestDamaged()) > 0 {
		t.Errorf("added %v, bad %v, damaged %v", added, bad, s.NewestDamaged())
	}
}

// TestTrialDecidesNothingElse has a folder on trial, a file that counts, and one that grows: that
// the file counts may decide about the folder, and not about what is still being written.
func TestTrialDecidesNothingElse(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1/w")
	s := openStore(t, dir, "ckpt-*")
	s.opts.IsPast = func(c *Checkpoint) bool { return c.Step > 1 }
	if s.Refresh(true); len(s.known) != 1 || !s.known[0].OnTrial {
		t.Fatalf("known are %+v", s.known)
	}
	childtest.Write(t, filepath.Join(dir, "ckpt-2"), "weights")
	s.Refresh(false)
	childtest.Write(t, filepath.Join(dir, "ckpt-3"), "wei")
	if added, _ := s.Refresh(false); !slices.Equal(steps(added), []int64{2}) {
		t.Errorf("added %v, and the third is being written", added)
	}
}

// TestScansOfMany: four times as many checkpoints take a scan some four times the work, also
// where all that were there before the first start are found at once.
func TestScansOfMany(t *testing.T) {
	for pattern, files := range map[string][]string{"ckpt-*": {""}, "model.ckpt-*": {".index", ".data-00000-of-00001"}} {
		look := func(n int) (allocs float64) {
			var names []string
			for i := range n {
				for _, suffix := range files {
					names = append(names, fmt.Sprint(pattern[:len(pattern)-1], i, suffix))
				}
			}
			s := openStore(t, childtest.Logdir(t, names...), pattern)
			found := s.find()
			return testing.AllocsPerRun(1, func() {
				s.known = nil
				var verdicts []Verdict
				for _, c := range found {
					verdicts = append(verdicts, Verdict{Rejected: Rejected{Checkpoint: c}})
				}
				if added, bad := s.Accept(verdicts); len(added) != n || bad != nil {
					t.Fatalf("%d added, bad %v", len(added), bad)
				}
				if more := s.Candidates(true); len(more) > 0 {
					t.Fatalf("new: %v", more)
				}
			})
		}
		if few, many := look(60), look(240); many > 8*few {
			t.Errorf("%s: %v allocations with 60, %v with 240", pattern, few, many)
		}
	}
}
