//go:build unix

package found

import (
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// usedUp is a disk that makes no file, or takes no bytes.
type usedUp struct {
	atomicfile.FS
	create, write error
}

func (d usedUp) Create(name string) (atomicfile.File, error) {
	if d.create != nil {
		return nil, d.create
	}
	f, err := d.FS.Create(name)
	return usedUpFile{f, d.write}, err
}

type usedUpFile struct {
	atomicfile.File
	err error
}

func (f usedUpFile) Write(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.File.Write(b)
}

// TestTakesFile has disks that are full, and others: a look leaves no file.
func TestTakesFile(t *testing.T) {
	for err, want := range map[error]bool{nil: true, syscall.ENOSPC: false, syscall.EDQUOT: false, syscall.EACCES: true} {
		for _, disk := range []usedUp{{create: err}, {write: err}} {
			dir := childtest.Logdir(t)
			s := openStore(t, dir, "ckpt-*")
			disk.FS = s.disk
			s.disk = disk
			if got := s.TakesFile(); got != want {
				t.Errorf("%+v: %v", disk, got)
			}
			if left := childtest.Below(t, dir); len(left) > 0 {
				t.Errorf("%+v: left are %v", disk, left)
			}
		}
	}
}

// TestWrittenAgainOnTrial has a checkpoint on trial that is written on, next to one that counts: it
// is still the same save. One that counts is another.
func TestWrittenAgainOnTrial(t *testing.T) {
	begun := Moment{Step: 5, Attempt: 1}
	s := &Store{opts: Options{Now: func() Moment { return Moment{Step: 9, Attempt: 1} }}}
	s.known = []Checkpoint{{Step: 1}, {Step: 2, OnTrial: true}}
	s.seen = map[key]Checkpoint{{step: 1}: {Step: 1, Size: 1, begun: begun}, {step: 2}: {Step: 2, Size: 1, begun: begun}}
	found := map[key]Checkpoint{{step: 1}: {Step: 1, Size: 2}, {step: 2}: {Step: 2, Size: 2}}
	s.date(found)
	if counts, trial := found[key{step: 1}].begun.Step, found[key{step: 2}].begun.Step; counts != 9 || trial != 5 {
		t.Errorf("begun at step %d and %d, want 9 and 5", counts, trial)
	}
}
