package child

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// pointers are files next to checkpoints that name the one to continue from, with
// how they name it: those of DeepSpeed, of Megatron-LM, and of detectron2. The file `checkpoint` of
// TensorFlow is another.
var pointers = map[string]func(c Checkpoint) string{
	"latest":                            func(c Checkpoint) string { return filepath.Base(c.Path) },
	"last_checkpoint":                   func(c Checkpoint) string { return filepath.Base(c.Path) },
	"latest_checkpointed_iteration.txt": func(c Checkpoint) string { return strconv.FormatInt(c.Step, 10) },
}

// maxPointer bounds what is read of a pointer.
const maxPointer = 4 << 10

// repoint has the files that name a checkpoint which was moved aside name the
// newest verified one of the same folder. Where there is none they are removed, so
// that the program starts from the beginning.
func (s *checkpointStore) repoint(gone Checkpoint) error {
	dir := path.Dir(gone.files[0])
	var errs []error
	for base, nameOf := range pointers {
		name := path.Join(dir, base)
		if text, err := s.readPointer(name); err != nil || text != nameOf(gone) {
			continue // it is not there, or names another
		}
		to, ok := s.newestIn(dir)
		if !ok {
			errs = append(errs, s.disk.Remove(s.abs(name)), s.disk.SyncDir(s.abs(dir)))
			continue
		}
		errs = append(errs, atomicfile.WriteFile(s.disk, s.abs(name), []byte(nameOf(to))))
	}
	return errors.Join(append(errs, ckptdir.Forget(gone.Path, &ckptfmt.FileOptions{FS: s.disk}))...)
}

// readPointer returns what a pointer names.
func (s *checkpointStore) readPointer(name string) (string, error) {
	info, err := s.root.Lstat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPointer {
		return "", &fs.PathError{Op: "read", Path: name, Err: os.ErrInvalid}
	}
	b, err := s.root.ReadFile(name)
	return strings.TrimSpace(string(b)), err
}

// newestIn returns the newest verified checkpoint of a folder.
func (s *checkpointStore) newestIn(dir string) (newest Checkpoint, ok bool) {
	for _, c := range s.known {
		if c.Step != NoStep && path.Dir(c.files[0]) == dir {
			newest, ok = c, true
		}
	}
	return newest, ok
}
