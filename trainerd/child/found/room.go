package found

import "github.com/trainerd/trainerd/trainerd/logdir"

// FreeSpace returns how many bytes the disk of the checkpoints has left.
func (s *Store) FreeSpace() (int64, error) {
	if sp, ok := s.disk.(interface {
		FreeSpace(dir string) (int64, error)
	}); ok {
		return sp.FreeSpace(s.root.Name())
	}
	return logdir.FreeSpace(s.root.Name())
}
