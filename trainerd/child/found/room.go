package found

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// FreeSpace returns how many bytes the disk of the checkpoints has left.
func (s *Store) FreeSpace() (int64, error) { return checkpoint.FreeSpace(s.disk, s.root.Name()) }

// TakesFile reports whether the disk of the checkpoints takes another small file: bytes may be
// free where a quota or the number of files is used up.
func (s *Store) TakesFile() bool {
	err := s.tryFile()
	return !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT)
}

// tryFile syncs nothing: a disk to which a program has just saved gigabytes would write these first, and the next
// start would wait for that. What it does not take it says before, or when the file is closed.
func (s *Store) tryFile() error {
	name := atomicfile.TempName(filepath.Join(s.root.Name(), "room"))
	f, err := s.disk.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Close(), s.disk.Remove(name))
}
