package ckptdir

import (
	"errors"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// fullDisk takes no new file until one was removed.
type fullDisk struct {
	atomicfile.FS
	cause error
}

func (d *fullDisk) Create(name string) (atomicfile.File, error) {
	if d.cause != nil {
		return nil, d.cause
	}
	return d.FS.Create(name)
}

func (d *fullDisk) Remove(name string) error {
	err := d.FS.Remove(name)
	if err == nil {
		d.cause = nil
	}
	return err
}

// Checkpoints are removed from a disk that has no room for the state file, which is what they are
// removed for; the current one is not: the state file would lead to nothing.
func TestRemoveAllOnFullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		for _, withCurrent := range []bool{false, true} {
			dir, list := manyOf(t, "V2", 4)
			gone := list[:3]
			if withCurrent {
				gone = list[1:]
			}
			err := RemoveAll(gone, &ckptfmt.FileOptions{FS: &fullDisk{atomicfile.OrOS(nil), cause}})
			left, listErr := List(dir)
			s, stateErr := ReadState(dir, nil)
			if stateErr != nil || listErr != nil {
				t.Fatal(stateErr, listErr)
			}
			want := 1
			if withCurrent || cause == syscall.EIO {
				want = 4
			}
			if len(left) != want || len(s.AllModelCheckpointPaths) != want || errors.Is(err, cause) != (want == 4) || err != nil && want == 1 {
				t.Errorf("with the current one %v, %v: %v; left are %v, the state file has %v", withCurrent, cause, err, left, s.AllModelCheckpointPaths)
			}
			checkIntact(t, "on a full disk", dir)
		}
	}
}
