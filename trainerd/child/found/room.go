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

// isFull reports whether the disk has no room for a file of that size.
func (s *Store) isFull(bytes int64) bool {
	free, err := s.FreeSpace()
	return err == nil && free < bytes || !s.TakesFile()
}

// lacksRoom reports whether the disk has no room for a checkpoint like the newest.
func (s *Store) lacksRoom() bool {
	newest, ok := s.Newest()
	return ok && s.isFull(newest.Size)
}

// TakesFile reports whether another small file can be written to the disk of the checkpoints: bytes
// may be free although a quota or the inodes are used up.
func (s *Store) TakesFile() bool {
	err := s.tryFile()
	return !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT)
}

// tryFile syncs nothing: a disk to which a program has just saved gigabytes would write these
// first, and the next start would wait for that. The disk reports a refusal earlier, or when the
// file is closed.
func (s *Store) tryFile() error {
	name := atomicfile.TempName(filepath.Join(s.root.Name(), "room"))
	f, err := s.disk.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Close(), s.disk.Remove(name))
}
