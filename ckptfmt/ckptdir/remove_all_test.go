package ckptdir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Many checkpoints are removed with one change of the state file, and the directory is made
// durable as often as for one of them; one that cannot be removed keeps its data.
func TestRemoveAll(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		dir, list := manyOf(t, "V2", 20)
		disk := &countingDisk{FS: atomicfile.OrOS(nil)}
		if stuck {
			disk.stuck = list[3].Files[0]
		}
		if err := RemoveAll(list[:18], &ckptfmt.FileOptions{FS: disk}); errors.Is(err, fs.ErrPermission) != stuck || err != nil && !stuck {
			t.Errorf("stuck %v: %v", stuck, err)
		}
		if disk.states != 1 || disk.syncs > 3 {
			t.Errorf("stuck %v: the state file was written %d times, the directory synced %d times", stuck, disk.states, disk.syncs)
		}
		checkIntact(t, "after RemoveAll", dir)
		left, err := List(dir)
		if want := map[bool]int{false: 2, true: 3}[stuck]; err != nil || len(left) != want {
			t.Errorf("stuck %v: left are %v, %v", stuck, left, err)
		}
		if s, err := ReadState(dir, nil); err != nil || len(s.AllModelCheckpointPaths) != 2 {
			t.Errorf("stuck %v: the state file has %v, %v", stuck, s, err)
		}
	}
	if err := RemoveAll(nil, nil); err != nil {
		t.Errorf("none: %v", err)
	}
}

// A removal of many that is killed after any of its operations leaves no checkpoint that lacks
// a part, and a state file that leads to one.
func TestRemoveAllKilled(t *testing.T) {
	for kind := range kinds {
		for n := 1; ; n++ {
			dir, list := manyOf(t, kind, 4)
			fsys := faultfs.NewFault(faultfs.Fault{At: n, Kill: true})
			err := RemoveAll(list[:3], &ckptfmt.FileOptions{FS: fsys})
			if fsys.Failed() == "" {
				if left, _ := List(dir); err != nil || len(left) != 1 {
					t.Errorf("%s: %v; left are %v", kind, err, left)
				}
				break
			}
			if !errors.Is(err, faultfs.ErrKilled) {
				t.Errorf("%s, %s: %v", kind, fsys.Failed(), err)
			}
			checkIntact(t, kind+", "+fsys.Failed(), dir)
		}
	}
}

// manyOf saves checkpoints of a kind, which the state file lists.
func manyOf(t *testing.T, kind string, n int) (dir string, list []Checkpoint) {
	t.Helper()
	dir = t.TempDir()
	var paths []string
	for step := range n {
		paths = append(paths, filepath.Join(dir, fmt.Sprint("m-", step)))
		kinds[kind](t, paths[step])
	}
	if err := UpdateState(dir, &tfpb.CheckpointState{ModelCheckpointPath: paths[n-1], AllModelCheckpointPaths: paths}, nil); err != nil {
		t.Fatal(err)
	}
	list, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, list
}

// countingDisk counts what is slow, and does not remove one of its files.
type countingDisk struct {
	atomicfile.FS
	states, syncs int
	stuck         string
}

func (d *countingDisk) Rename(from, to string) error {
	if filepath.Base(to) == StateName {
		d.states++
	}
	return d.FS.Rename(from, to)
}

func (d *countingDisk) SyncDir(name string) error { d.syncs++; return d.FS.SyncDir(name) }

func (d *countingDisk) Remove(name string) error {
	if name == d.stuck {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Remove(name)
}
