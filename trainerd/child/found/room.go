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

func (s *Store) tryFile() error {
	p, err := atomicfile.Create(s.disk, filepath.Join(s.root.Name(), "room"), "") // under a temporary name
	if err != nil {
		return err
	}
	_, err = p.Write(make([]byte, 4096))
	return errors.Join(err, p.Sync(), p.Close())
}
