package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// deleting is a disk on which somebody does something when the state file is in place, and on which
// operations may fail.
type deleting struct {
	atomicfile.FS
	published func() error
	fails     func(op, base string) bool
}

func (d *deleting) Rename(from, to string) error {
	if d.fails != nil && d.fails("rename", filepath.Base(to)) {
		return &fs.PathError{Op: "rename", Path: to, Err: syscall.EIO}
	}
	err := d.FS.Rename(from, to)
	if do := d.published; do != nil && filepath.Base(to) == ckptdir.StateName {
		d.published = nil
		return errors.Join(err, do())
	}
	return err
}

func (d *deleting) Remove(name string) error {
	if d.fails != nil && d.fails("remove", filepath.Base(name)) {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.EIO}
	}
	return d.FS.Remove(name)
}

// remove deletes files of the logdir.
func remove(dir string, patterns ...string) func() error {
	return func() (err error) {
		for _, pattern := range patterns {
			names, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, name := range names {
				err = errors.Join(err, os.Remove(name))
			}
		}
		return err
	}
}

// deletedAfter saves a checkpoint, which is deleted as soon as the state file names it.
func deletedAfter(t *testing.T, s *Saver, disk *deleting, r *rotationRig, step int64, delete func() error) {
	t.Helper()
	disk.published = delete
	if prefix, err := s.Save(t.Context(), r.sess, filepath.Join(r.dir, "m"), step); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was announced, %v", prefix, err)
	}
}

// A checkpoint is deleted as soon as it is published, with others that the Saver would delete later
// or keeps permanently: it knows of none of them.
func TestWithdrawnWithOthers(t *testing.T) {
	r, disk := newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
	s := &Saver{FS: disk, Retention: []retention.Policy{retention.Last(1)}}
	r.save(s, 1)
	disk.fails = func(op, base string) bool { return op == "remove" && base == "m-1.index" }
	r.save(s, 2)
	deletedAfter(t, s, disk, r, 3, remove(r.dir, "m-[13]*"))
	if got := r.listed(); !slices.Equal(got, []int64{2, 2}) {
		t.Errorf("the state file names %v", got)
	}

	r, disk = newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
	s = &Saver{FS: disk, MaxToKeep: -1}
	r.save(s, 1, 2)
	if kept := s.Kept(); len(kept) != 2 {
		t.Fatalf("kept are %v", kept)
	}
	deletedAfter(t, s, disk, r, 3, remove(r.dir, "m-[13]*"))
	if kept := s.Kept(); len(kept) != 1 || stepOf(kept[0].Prefix) != 2 {
		t.Errorf("kept are %v", kept)
	}
}

// The training had gone back to an earlier checkpoint before one was saved that is deleted at once:
// it continues from there.
func TestWithdrawnAfterGoingBack(t *testing.T) {
	r, disk := newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
	s := &Saver{FS: disk}
	r.save(s, 1, 2)
	sessiontest.MustNoErr(t, s.Restore(t.Context(), r.sess, filepath.Join(r.dir, "m-1")))
	deletedAfter(t, s, disk, r, 3, remove(r.dir, "m-3*"))
	if got := r.listed(); got[0] != 1 {
		t.Errorf("the state file names %v", got)
	}
}

// The first save of a Saver that knows one checkpoint from before is deleted at once: that one stays
// the current one.
func TestWithdrawnFirst(t *testing.T) {
	r, disk := newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
	r.save(new(Saver), 1)
	s := &Saver{FS: disk}
	s.RecoverLastCheckpoints([]string{filepath.Join(r.dir, "m-1")})
	deletedAfter(t, s, disk, r, 2, remove(r.dir, "m-2*"))
	if got := r.listed(); !slices.Equal(got, []int64{1, 1}) {
		t.Errorf("the state file names %v", got)
	}
}

// A state file that cannot be written, or removed, and so still names a deleted checkpoint, is in
// the log; one that is gone, too, is not.
func TestWithdrawnOnFailingDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		before bool   // there is another checkpoint
		fails  string // the operation on the state file
		delete []string
		said   bool
	}{
		"written":      {before: true, delete: []string{"m-2*"}},
		"not written":  {before: true, fails: "rename", delete: []string{"m-2*"}, said: true},
		"removed":      {delete: []string{"m-2*"}},
		"not removed":  {fails: "remove", delete: []string{"m-2*"}, said: true},
		"gone as well": {delete: []string{"m-2*", ckptdir.StateName}},
	} {
		r, disk := newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
		log, lines := sessiontest.NewLog()
		s := &Saver{FS: disk, Logger: log}
		if tc.before {
			r.save(s, 1)
		}
		deletedAfter(t, s, disk, r, 2, func() error {
			disk.fails = func(op, base string) bool { return op == tc.fails && base == ckptdir.StateName }
			return remove(r.dir, tc.delete...)()
		})
		if said := strings.Contains(lines.String(), "state file still names a deleted checkpoint"); said != tc.said {
			t.Errorf("%s: it is said: %v; log:\n%s", name, said, lines)
		}
	}
}

// A state file names the current checkpoint alone, as one that was written by hand may.
func TestFindByStateWithoutList(t *testing.T) {
	r := newRig(t)
	r.save(new(Saver), 1, 2, 3)
	name := filepath.Join(r.dir, ckptdir.StateName)
	sessiontest.MustNoErr(t, os.WriteFile(name, []byte("model_checkpoint_path: \"m-2\"\n"), 0o666))
	found, err := Find(r.dir, ckptdir.StateName, "m")
	sessiontest.MustNoErr(t, err)
	if !slices.Equal(stepsOf(found.Prefixes), []int64{2, 1}) || !slices.Equal(stepsOf(found.Newer), []int64{3}) {
		t.Errorf("found are %v, newer %v", found.Prefixes, found.Newer)
	}
}

// A save for which the oldest checkpoint is about to go is deleted at once: that one is still kept.
func TestWithdrawnKeepsTheOldest(t *testing.T) {
	r, disk := newRig(t), &deleting{FS: atomicfile.OrOS(nil)}
	s := &Saver{FS: disk, MaxToKeep: 3}
	r.save(s, 1, 2, 3)
	deletedAfter(t, s, disk, r, 4, remove(r.dir, "m-4*"))
	r.check("after the save", s, seq(1, 3), []int64{3, 1, 2, 3}, seq(1, 3))
}
