//go:build unix

package world

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// A childDefect is planted where the parts of the world of programs meet, to see
// whether the rules find it. A nil defect is none.
type childDefect struct {
	name    string
	seed    uint64 // the first to try
	disk    func(atomicfile.FS) atomicfile.FS
	orphans bool                // what earlier starts have left is not looked for
	result  func(error) error   // of a run
	start   func(cmd *exec.Cmd) // of the program
	silent  bool                // each seventh line of the program is lost
	nodes   bool                // it is one of several nodes
	unlock  bool                // the lock does not hold
}

var childDefects = []*childDefect{
	{name: "files are not synced", seed: 2, disk: faultfs.NoSync.Over},
	{name: "directories are not synced", seed: 3, disk: faultfs.NoDirSync.Over},
	{name: "a rotation removes all", seed: 4, disk: func(fsys atomicfile.FS) atomicfile.FS { return clearing{fsys} }},
	{name: "damaged checkpoints stay in place", seed: 2, disk: func(fsys atomicfile.FS) atomicfile.FS { return resting{fsys} }},
	{name: "a file outside the logdir", seed: 4, disk: func(fsys atomicfile.FS) atomicfile.FS { return littering{fsys} }},
	{name: "processes of an earlier start stay", orphans: true},
	{name: "a lost save is exit code 0", seed: 34, result: func(err error) error {
		if _, lost := errors.AsType[*child.SaveLostError](err); lost {
			return nil
		}
		return err
	}},
	{name: "the program begins at the beginning", seed: 4, start: func(cmd *exec.Cmd) {
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "TRAINERD_CHECKPOINT=") })
	}},
	{name: "the program is not told how to resume", seed: 4, start: func(cmd *exec.Cmd) { cmd.Args = cmd.Args[:2] }},
	{name: "lines are lost", seed: 4, silent: true},
	{name: "on nodes: the lock does not hold", seed: 1, nodes: true, unlock: true},
}

func (d *childDefect) overDisk(fsys atomicfile.FS) atomicfile.FS {
	if d == nil || d.disk == nil {
		return fsys
	}
	return d.disk(fsys)
}

func (d *childDefect) leavesOrphans() bool { return d != nil && d.orphans }

func (d *childDefect) overResult(err error) error {
	if d == nil || d.result == nil {
		return err
	}
	return d.result(err)
}

func (d *childDefect) overStart(cmd *exec.Cmd) {
	if d != nil && d.start != nil {
		d.start(cmd)
	}
}

// overLock has a node that comes find the logdir unlocked.
func (d *childDefect) overLock(n *childNode) {
	if d != nil && d.unlock {
		os.Remove(filepath.Join(n.dir, logdir.LockFile))
	}
}

// losesLine reports whether the line of a step is lost.
func (d *childDefect) losesLine(step int64) bool { return d != nil && d.silent && step%7 == 0 }

// clearing is a disk on which a rotation removes all checkpoints.
type clearing struct{ atomicfile.FS }

func (d clearing) Rename(from, to string) error {
	if atomicfile.IsTemp(filepath.Base(to)) && !atomicfile.IsTemp(filepath.Base(from)) {
		others, _ := filepath.Glob(filepath.Join(filepath.Dir(from), "c*-*"))
		for _, name := range others {
			if name != from {
				removeTree(d.FS, name)
			}
		}
	}
	return d.FS.Rename(from, to)
}

// resting is a disk on which nothing is moved aside.
type resting struct{ atomicfile.FS }

func (d resting) Rename(from, to string) error {
	if strings.Contains(to, "/damaged/") {
		return &fs.PathError{Op: "rename", Path: from, Err: os.ErrPermission}
	}
	return d.FS.Rename(from, to)
}

// Each planted defect of programs is found.
func TestChildDefectsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("a second or two")
	}
	const most = 200
	for _, d := range childDefects {
		t.Run(d.name, func(t *testing.T) {
			plan := firstChildPlan
			if d.nodes {
				plan = newChildPlan
			}
			for seed := d.seed; seed < d.seed+most; seed++ {
				_, err := plan(seed).run(t, d, nil)
				if err == nil {
					continue
				}
				t.Logf("seed %d: %v", seed, err)
				if _, err := plan(seed).run(t, nil, nil); err != nil {
					t.Errorf("seed %d breaks a rule without the defect too: %v", seed, err)
				}
				return
			}
			t.Errorf("not found in %d histories", most)
		})
	}
}
