package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// A pinned checkpoint stays, whatever the rotation says, until it is unpinned.
func TestPin(t *testing.T) {
	for name, policies := range map[string][]retention.Policy{"rotation": nil, "policies": {retention.Last(1)}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
			s := &Saver{MaxToKeep: 1, Retention: policies}
			first := save(t, s, sess, filepath.Join(dir, "m"), 1)
			sessiontest.MustNoErr(t, s.Pin(first))
			save(t, s, sess, filepath.Join(dir, "m"), 2)
			sessiontest.MustNoErr(t, s.Unpin(first))
			sessiontest.MustNoErr(t, s.Pin(first)) // it was not deleted, so it can be pinned
			save(t, s, sess, filepath.Join(dir, "m"), 3)
			if got := sessiontest.Files(t, dir, "*.index"); !cmp.Equal(got, []string{"m-1.index", "m-3.index"}) {
				t.Errorf("checkpoints %v; want the pinned one and the last", got)
			}
			sessiontest.MustNoErr(t, s.Unpin(first))
			sessiontest.MustNoErr(t, s.Unpin(first)) // twice is not an error
			if err := s.Pin(filepath.Join(dir, "m-2")); err == nil {
				t.Error("a checkpoint that is gone can be pinned")
			}
		})
	}
}

// A checkpoint that is unpinned when the rotation has left it behind goes with the next save,
// of the same run or of a later one. Until then it is listed, and called pinned only while it is.
func TestUnpinAfterRotation(t *testing.T) {
	for name, policies := range map[string][]retention.Policy{"rotation": nil, "policies": {retention.Last(1)}} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restarts=%v", name, restarts), func(t *testing.T) {
				dir := t.TempDir()
				sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
				log, lines := sessiontest.NewLog()
				s := &Saver{MaxToKeep: 1, Retention: policies, Logger: log}
				first := save(t, s, sess, filepath.Join(dir, "m"), 1)
				sessiontest.MustNoErr(t, s.Pin(first))
				for step := range int64(3) {
					save(t, s, sess, filepath.Join(dir, "m"), 2+step)
				}
				if got, why := steps(t, dir), whyKept(s); !cmp.Equal(got, []int64{1, 4}) || why[first] != "pinned" {
					t.Fatalf("checkpoints %v, kept because of %v; want the pinned one and the last", got, why)
				}
				if n := strings.Count(lines.String(), "is pinned; not deleted"); n > 1 {
					t.Errorf("the log says %d times that it is pinned", n)
				}
				if restarts {
					s = &Saver{MaxToKeep: 1, Retention: policies}
					state, err := ckptdir.ReadState(dir, nil)
					sessiontest.MustNoErr(t, err)
					s.RecoverLastCheckpoints(state.GetAllModelCheckpointPaths())
				}
				sessiontest.MustNoErr(t, s.Unpin(first))
				if why := whyKept(s); why[first] == "pinned" {
					t.Error("it is called pinned")
				}
				save(t, s, sess, filepath.Join(dir, "m"), 5)
				if got := steps(t, dir); !cmp.Equal(got, []int64{5}) {
					t.Errorf("checkpoints %v; want the last", got)
				}
			})
		}
	}
}

// A pin whose checkpoint somebody has deleted keeps no name in the state file.
func TestPinOfNothing(t *testing.T) {
	dir, sess := t.TempDir(), twoVariables(1)
	s := &Saver{MaxToKeep: 1}
	first := save(t, s, sess, filepath.Join(dir, "m"), 1)
	sessiontest.MustNoErr(t, s.Pin(first))
	save(t, s, sess, filepath.Join(dir, "m"), 2)
	sessiontest.MustNoErr(t, removeCheckpoint(nil, first))
	save(t, s, sess, filepath.Join(dir, "m"), 3)
	state, err := ckptdir.ReadState(dir, nil)
	sessiontest.MustNoErr(t, err)
	if got := stepsOf(state.GetAllModelCheckpointPaths()); !cmp.Equal(got, []int64{3}) {
		t.Errorf("the state file lists %v", got)
	}
}

// A pinned checkpoint is listed when the Saver follows its folder.
func TestPinnedMoves(t *testing.T) {
	from, to, sess := t.TempDir(), filepath.Join(t.TempDir(), "to"), twoVariables(1)
	s := &Saver{MaxToKeep: 1}
	sessiontest.MustNoErr(t, s.Pin(save(t, s, sess, filepath.Join(from, "m"), 1)))
	save(t, s, sess, filepath.Join(from, "m"), 2)
	sessiontest.MustNoErr(t, os.Rename(from, to))
	s.MoveTo(from, to)
	save(t, s, sess, filepath.Join(to, "m"), 3)
	sessiontest.MustNoErr(t, s.Unpin(filepath.Join(to, "m-1")))
	save(t, s, sess, filepath.Join(to, "m"), 4)
	if got := steps(t, to); !cmp.Equal(got, []int64{4}) {
		t.Errorf("checkpoints %v; want the last", got)
	}
}

// whyKept returns the reasons that a Saver has, by prefix.
func whyKept(s *Saver) map[string]string {
	why := make(map[string]string)
	for _, k := range s.Kept() {
		why[k.Prefix] = strings.Join(k.Why, ", ")
	}
	return why
}

// A V1 checkpoint of several files is pinned by its pattern, and by its name without.
func TestPinShardsOfV1(t *testing.T) {
	for _, name := range []string{"m-1", "m-1-?????-of-00002"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1), "w": sessiontest.Vector[float32](2)})
			s := &Saver{MaxToKeep: 1, Format: FormatV1, Shards: 2}
			save(t, s, sess, filepath.Join(dir, "m"), 1)
			sessiontest.MustNoErr(t, s.Pin(filepath.Join(dir, name)))
			save(t, s, sess, filepath.Join(dir, "m"), 2)
			save(t, s, sess, filepath.Join(dir, "m"), 3)
			want := []string{"m-1-00000-of-00002", "m-1-00001-of-00002", "m-3-00000-of-00002", "m-3-00001-of-00002"}
			if got := sessiontest.Files(t, dir, "*-of-00002"); !cmp.Equal(got, want) {
				t.Errorf("checkpoints %v; want the pinned one and the last", got)
			}
			sessiontest.MustNoErr(t, s.Unpin(filepath.Join(dir, name)))
			if got := sessiontest.Files(t, dir, "*.pin"); len(got) > 0 {
				t.Errorf("%v after Unpin", got)
			}
		})
	}
}

// A checkpoint that is pinned while it is deleted is gone, and one that is deleted while it
// is pinned stays.
func TestPinWhileDeleted(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"v": sessiontest.Vector[float32](1)})
	dir := t.TempDir()
	disk := &pinDisk{FS: atomicfile.OrOS(nil)}
	s := &Saver{MaxToKeep: 1, FS: disk}
	first := save(t, s, sess, filepath.Join(dir, "m"), 1)
	var err error
	disk.removing = func() { err = s.Pin(first) }
	second := save(t, s, sess, filepath.Join(dir, "m"), 2)
	if !errors.Is(err, fs.ErrNotExist) || IsPinned(first) {
		t.Errorf("a checkpoint that is being deleted was pinned: %v", err)
	}
	disk.pinning = func() { save(t, s, sess, filepath.Join(dir, "m"), 3) }
	sessiontest.MustNoErr(t, s.Pin(second))
	save(t, s, sess, filepath.Join(dir, "m"), 4)
	if got := sessiontest.Files(t, dir, "*.index"); !cmp.Equal(got, []string{"m-2.index", "m-4.index"}) {
		t.Errorf("checkpoints %v; want the pinned one and the last", got)
	}
}

// A checkpoint that a save leaves alone because it is being pinned goes with the next save,
// if it could not be pinned.
func TestDeletedAfterPinFails(t *testing.T) {
	dir, sess := t.TempDir(), twoVariables(1)
	disk := &pinDisk{FS: atomicfile.OrOS(nil), err: faultfs.ErrInjected}
	log, lines := sessiontest.NewLog()
	s := &Saver{MaxToKeep: 1, FS: disk, Logger: log}
	first := save(t, s, sess, filepath.Join(dir, "m"), 1)
	disk.pinning = func() { save(t, s, sess, filepath.Join(dir, "m"), 2) }
	if err := s.Pin(first); !errors.Is(err, disk.err) {
		t.Errorf("pinned: %v", err)
	}
	sessiontest.WantLog(t, lines, "could not be deleted", "it is being pinned")
	if got := steps(t, dir); !cmp.Equal(got, []int64{1, 2}) {
		t.Errorf("checkpoints %v", got)
	}
	save(t, s, sess, filepath.Join(dir, "m"), 3)
	if got := steps(t, dir); !cmp.Equal(got, []int64{3}) {
		t.Errorf("checkpoints %v after the next save", got)
	}
}

// What a training goes back to while a save deletes old checkpoints stays until the next save.
func TestGoneBackToWhileDeleting(t *testing.T) {
	dir, sess := t.TempDir(), twoVariables(1)
	disk := &pinDisk{FS: atomicfile.OrOS(nil)}
	two := &Saver{MaxToKeep: 2}
	first, second := save(t, two, sess, filepath.Join(dir, "m"), 1), save(t, two, sess, filepath.Join(dir, "m"), 2)
	s := &Saver{MaxToKeep: 1, FS: disk}
	s.RecoverLastCheckpoints([]string{first, second})
	disk.removing = func() { sessiontest.MustNoErr(t, s.Restore(t.Context(), sess, second)) }
	save(t, s, sess, filepath.Join(dir, "m"), 3)
	if got := steps(t, dir); !cmp.Equal(got, []int64{2, 3}) {
		t.Errorf("checkpoints %v", got)
	}
	save(t, s, sess, filepath.Join(dir, "m"), 4)
	if got := steps(t, dir); !cmp.Equal(got, []int64{4}) {
		t.Errorf("checkpoints %v after the next save", got)
	}
}

// pinDisk calls a function, once, before it removes a file of step 1, and before there is
// a pin, which may fail.
type pinDisk struct {
	atomicfile.FS
	removing, pinning func()
	err               error // of pins
}

func (d *pinDisk) Remove(name string) error {
	if stepOf(strings.TrimSuffix(name, ".index")) == 1 {
		once(&d.removing)
	}
	return d.FS.Remove(name)
}

func (d *pinDisk) Rename(from, to string) error {
	if IsPin(to) {
		once(&d.pinning)
		if d.err != nil {
			return d.err
		}
	}
	return d.FS.Rename(from, to)
}

func once(f *func()) {
	if call := *f; call != nil {
		*f = nil
		call()
	}
}
