//go:build unix

package found

import (
	"errors"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// usedUp is a disk that makes no file, or takes no bytes, as it says at once or when the file is closed.
type usedUp struct {
	atomicfile.FS
	create, write, end error
	syncs              *int
}

func (d usedUp) Create(name string) (atomicfile.File, error) {
	if d.create != nil {
		return nil, d.create
	}
	f, err := d.FS.Create(name)
	return usedUpFile{f, d}, err
}

type usedUpFile struct {
	atomicfile.File
	disk usedUp
}

func (f usedUpFile) Write(b []byte) (int, error) {
	if f.disk.write != nil {
		return 0, f.disk.write
	}
	return f.File.Write(b)
}

func (f usedUpFile) Sync() error {
	*f.disk.syncs++
	return f.File.Sync()
}

func (f usedUpFile) Close() error { return errors.Join(f.File.Close(), f.disk.end) }

// TestTakesFile has disks that are full, and others: a scan leaves no file, and waits for nothing that somebody
// else has written.
func TestTakesFile(t *testing.T) {
	for err, want := range map[error]bool{nil: true, syscall.ENOSPC: false, syscall.EDQUOT: false, syscall.EACCES: true} {
		for _, disk := range []usedUp{{create: err}, {write: err}, {end: err}} {
			dir := childtest.Logdir(t)
			s := openStore(t, dir, "ckpt-*")
			disk.FS, disk.syncs = s.disk, new(int)
			s.disk = disk
			if got := s.TakesFile(); got != want || *disk.syncs > 0 {
				t.Errorf("%+v: %v, %d syncs", disk, got, *disk.syncs)
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
