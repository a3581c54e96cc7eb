//go:build unix

package found

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// syncDisk is a disk on which the sync of files, and that of folders, ends as told.
type syncDisk struct {
	atomicfile.FS
	file, dir error
	log       *[]string // of links that are made, and folders that are synced
}

func (d syncDisk) SyncFile(name string) error {
	return errors.Join(d.file, atomicfile.SyncFile(d.FS, name))
}

func (d syncDisk) SyncDir(name string) error {
	d.note("sync " + filepath.Base(name))
	return errors.Join(d.dir, d.FS.SyncDir(name))
}

func (d syncDisk) Link(from, to string) error {
	d.note("link " + filepath.Base(to))
	return atomicfile.Link(d.FS, from, to)
}

func (d syncDisk) note(what string) {
	if d.log != nil {
		*d.log = append(*d.log, what)
	}
}

// TestCountsOnceSynced has disks that do not sync: where they cannot, a checkpoint counts all the
// same; where that fails, it does not, and is not taken for damaged.
func TestCountsOnceSynced(t *testing.T) {
	cannot, fails := &fs.PathError{Op: "sync", Err: syscall.EINVAL}, &fs.PathError{Op: "sync", Err: syscall.EIO}
	for _, tc := range []struct {
		file, dir error
		counts    bool
	}{{cannot, nil, true}, {nil, cannot, true}, {fails, nil, false}, {nil, fails, false}} {
		dir := childtest.Logdir(t, "c/ckpt-1")
		s := openStore(t, dir, "c/ckpt-*")
		s.disk = syncDisk{FS: s.disk, file: tc.file, dir: tc.dir}
		added, bad := s.Refresh(true)
		if len(added) == 1 != tc.counts || len(bad) == 0 != tc.counts || len(s.NewestDamaged()) > 0 {
			t.Errorf("file %v, folder %v: added %v, bad %v", tc.file, tc.dir, added, bad)
		}
	}
}

// TestBroughtBackIsDurable has a checkpoint that gets its copy: its name is there after a crash.
// On a disk that does not take it, that is said, and the copy stays for the next try.
func TestBroughtBackIsDurable(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "last.safetensors")
	childtest.Write(t, name, childtest.Tensors())
	s := openStore(t, dir, "last*")
	s.Refresh(true)
	c, whole := s.known[0], s.disk
	childtest.Must(t, os.Remove(name))
	s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
	if restored, again, err := s.BringBack(t.Context(), c); restored || !again || err == nil {
		t.Errorf("on a bad disk: %v, again %v, %v", restored, again, err)
	}
	var log []string
	s.disk = syncDisk{FS: whole, log: &log}
	if restored, again, err := s.BringBack(t.Context(), c); !restored || again || err != nil {
		t.Errorf("then: %v, again %v, %v", restored, again, err)
	}
	at := slices.Index(log, "link last.safetensors")
	if got := childtest.Read(t, name); got != childtest.Tensors() || at < 0 || !slices.Contains(log[at:], "sync "+filepath.Base(dir)) {
		t.Errorf("it has %q, after %v", got, log)
	}
	if records, bad := manifest.Records(dir); len(records) > 0 || bad != nil {
		t.Errorf("recorded is %v, %v", records, bad)
	}
}

// TestOnlyOneCannotBeRecorded has the only checkpoint of a program on a disk that does not take
// its record, or no copy of what comes in its place: that is said, no copy is left that nothing
// names, and the one before stays.
func TestOnlyOneCannotBeRecorded(t *testing.T) {
	for _, second := range []bool{false, true} {
		dir := t.TempDir()
		name := filepath.Join(dir, "last.safetensors")
		s := openStore(t, dir, "last*")
		fails := func(op, below string) bool { return op == "create" && strings.HasPrefix(below, manifest.RecordsDir) }
		want := 0
		if second {
			childtest.Write(t, name, childtest.TensorsOf(1))
			s.Refresh(true)
			fails = func(op, below string) bool { return op == "create" && strings.HasPrefix(below, CopiesDir) }
			want = 1
		}
		childtest.Write(t, name, childtest.TensorsOf(2))
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: fails}
		if added, bad := s.Refresh(true); len(added) != 1 || bad != nil || len(s.Unrecorded()) != 1 {
			t.Errorf("second %v: added %v, bad %v", second, added, bad)
		}
		copies, _ := os.ReadDir(filepath.Join(dir, CopiesDir))
		records, bad := manifest.Records(dir)
		if len(copies) != want || len(records) != want || bad != nil {
			t.Errorf("second %v: copies %v, records %v, %v", second, copies, records, bad)
		}
		if second && records[0].VerifyCopy(t.Context(), s.root) != nil {
			t.Error("the copy of the one before is not whole")
		}
	}
}

// TestForgottenOnBadDisk has a record forgotten on a disk that does not delete its copy: that is
// said, and the record stays, which names it. A copy that is gone is none to delete.
func TestForgottenOnBadDisk(t *testing.T) {
	for _, gone := range []bool{false, true} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.Tensors())
		s := openStore(t, dir, "last*")
		s.Refresh(true)
		c := s.known[0]
		if gone {
			childtest.Must(t, os.RemoveAll(filepath.Join(dir, CopiesDir)))
		}
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, below string) bool { return op == "remove" && strings.HasPrefix(below, CopiesDir) }}
		err := s.forget(c)
		if records, bad := manifest.Records(dir); (err == nil) != gone || (len(records) == 0) != gone || bad != nil {
			t.Errorf("the copy is gone: %v; %v; records %v, %v", gone, err, records, bad)
		}
	}
}

// TestLost has the only checkpoint of a program, which has a copy, overwritten: it is lost if the
// disk has not taken what it was overwritten with, and is so still.
func TestLost(t *testing.T) {
	for _, tc := range []struct {
		why   error
		again bool // written since, and looked at
		want  int
	}{{&notDurableError{syscall.EIO}, false, 1}, {&notDurableError{syscall.EIO}, true, 0}, {errEmpty, false, 0}} {
		dir := t.TempDir()
		name := filepath.Join(dir, "last.safetensors")
		childtest.Write(t, name, childtest.TensorsOf(1))
		s := openStore(t, dir, "last*")
		s.Refresh(true)
		childtest.Write(t, name, childtest.TensorsOf(2)+"2")
		c := s.Candidates(true)[0]
		s.refused[c.key()] = Rejected{Checkpoint: c, err: tc.why}
		if tc.again {
			childtest.Write(t, name, childtest.TensorsOf(3)+"33")
			s.Candidates(true)
		}
		if got := s.Lost(); len(got) != tc.want {
			t.Errorf("%v, written again %v: lost are %v", tc.why, tc.again, got)
		}
	}
}

// TestNotSetAside has a checkpoint with which the program fails, and a disk that does not take it
// among the damaged ones: what named it does so again.
func TestNotSetAside(t *testing.T) {
	dir := childtest.Logdir(t, "s-10.bin", "s-20.bin")
	childtest.Write(t, filepath.Join(dir, "latest"), "s-20.bin")
	s := openStore(t, dir, "s-*")
	s.Refresh(true)
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, below string) bool { return op == "rename" && strings.HasPrefix(below, checkpoint.DamagedDir) }}
	if _, err := s.QuarantineSuspect(t.Context(), s.known[1], time.Now()); err == nil || len(s.known) != 2 {
		t.Errorf("QuarantineSuspect = %v; known are %v", err, s.known)
	}
	if got := childtest.Read(t, filepath.Join(dir, "latest")); got != "s-20.bin" {
		t.Errorf("latest has %q", got)
	}
}

// TestForgottenRecord has the record itself: one that is gone is forgotten, and one that the disk
// does not delete is said.
func TestForgottenRecord(t *testing.T) {
	for _, gone := range []bool{false, true} {
		dir := childtest.Logdir(t, "ckpt-1")
		s := openStore(t, dir, "ckpt-*")
		s.Refresh(true)
		if gone {
			childtest.Must(t, os.Remove(filepath.Join(dir, manifest.RecordName("ckpt-1", 1))))
		}
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, _ string) bool { return !gone && op == "remove" }}
		if err := s.forget(s.known[0]); (err == nil) != gone {
			t.Errorf("it is gone: %v; %v", gone, err)
		}
	}
}

// TestCopyThatIsNeeded has the copy of the only checkpoint: it is needed while it is intact, and
// while the system does not let it be read, which may be over soon.
func TestCopyThatIsNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		harm   func(t *testing.T, file string)
		needed bool
	}{
		"whole":   {func(*testing.T, string) {}, true},
		"gone":    {func(t *testing.T, file string) { childtest.Must(t, os.Remove(file)) }, false},
		"damaged": {func(t *testing.T, file string) { childtest.Write(t, file, "x") }, false},
		"of a bad disk": {func(t *testing.T, file string) {
			childtest.Must(t, errors.Join(os.Remove(file), os.Symlink(filepath.Base(file), file)))
		}, true},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.Tensors())
		s := openStore(t, dir, "last*")
		s.Refresh(true)
		r := s.records[keyOf("last.safetensors", false)]
		tc.harm(t, filepath.Join(dir, r.Copy, "last.safetensors"))
		restored, needed, err := s.restore(t.Context(), r)
		if has := s.hasCopy(t.Context(), r); has != tc.needed || (restored || needed) != tc.needed || restored != (name == "whole") || (err == nil) != restored {
			t.Errorf("%s: it has a copy: %v; restored %v, needed %v, %v", name, has, restored, needed, err)
		}
	}
}

// TestLinkDoesNotEndTheSync has a folder with a link before a file that the disk does not take.
func TestLinkDoesNotEndTheSync(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-1/w")
	childtest.Must(t, os.Symlink("w", filepath.Join(dir, "ckpt-1", "a")))
	s := openStore(t, dir, "ckpt-*")
	s.disk = syncDisk{FS: s.disk, file: &fs.PathError{Op: "sync", Err: syscall.EIO}}
	if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
		t.Errorf("added %v, bad %v", added, bad)
	}
}
