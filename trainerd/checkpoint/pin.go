package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// pinSuffix ends the name of the empty file that pins a checkpoint. It may as
// well be made by hand.
const pinSuffix = ".pin"

// Pin protects a checkpoint: no Saver deletes it, in this run or a later one,
// until [Saver.Unpin]. It makes the file PREFIX.pin, which may also be made and
// removed by hand. The pattern of a sharded V1 checkpoint is not part of that
// name.
func (s *Saver) Pin(prefix string) error {
	if _, err := checkpointTime(prefix); err != nil {
		return err
	}
	return Pin(s.FS, unsharded(prefix))
}

// Pin protects a checkpoint of any source, named by its prefix, file or folder,
// like [Saver.Pin].
func Pin(fsys ckptfmt.FS, name string) error { return atomicfile.WriteFile(fsys, name+pinSuffix, nil) }

// Unpin removes the protection of [Saver.Pin], if there is any.
func (s *Saver) Unpin(prefix string) error {
	fsys := atomicfile.OrOS(s.FS)
	removed := false
	for _, name := range pinNames(prefix) {
		if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		} else if err == nil {
			removed = true
		}
	}
	if !removed {
		return nil
	}
	return fsys.SyncDir(filepath.Dir(prefix))
}

// pinNames returns the files any of which pins a checkpoint.
func pinNames(prefix string) []string {
	if short := unsharded(prefix); short != prefix {
		return []string{short + pinSuffix, prefix + pinSuffix}
	}
	return []string{prefix + pinSuffix}
}

// IsPin reports whether a file pins a checkpoint, judging by its name.
func IsPin(name string) bool { return strings.HasSuffix(name, pinSuffix) }

// isPinned errs on the side of keeping: only a file that is not there for
// certain is no pin.
func isPinned(prefix string) bool {
	return slices.ContainsFunc(pinNames(prefix), func(name string) bool {
		_, err := os.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
