package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// pinSuffix ends the name of the empty file that pins a checkpoint. It may as
// well be made by hand.
const pinSuffix = ".pin"

// Pin protects a checkpoint: no Saver deletes it, in this run or a later one,
// until [Saver.Unpin]. It makes the file PREFIX.pin, which may as well be made
// and removed by hand.
func (s *Saver) Pin(prefix string) error {
	if _, err := checkpointTime(prefix); err != nil {
		return err
	}
	return Pin(s.FS, prefix)
}

// Pin protects a checkpoint of any source, named by its prefix, file or folder,
// as [Saver.Pin] does.
func Pin(fsys ckptfmt.FS, name string) error { return atomicfile.WriteFile(fsys, name+pinSuffix, nil) }

// Unpin takes the protection of [Saver.Pin] away. That there is none is no
// error.
func (s *Saver) Unpin(prefix string) error {
	fsys := atomicfile.OrOS(s.FS)
	if err := fsys.Remove(prefix + pinSuffix); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return fsys.SyncDir(filepath.Dir(prefix))
}

// IsPin reports whether a file is one that pins a checkpoint, by its name.
func IsPin(name string) bool { return strings.HasSuffix(name, pinSuffix) }

// isPinned errs on the side of keeping: only a file that is not there for
// certain is no pin.
func isPinned(prefix string) bool {
	_, err := os.Lstat(prefix + pinSuffix)
	return !errors.Is(err, fs.ErrNotExist)
}
