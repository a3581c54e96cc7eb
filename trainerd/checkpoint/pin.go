package checkpoint

import (
	"errors"
	"fmt"
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
	name := unsharded(prefix)
	s.mu.Lock()
	if name == s.deleting {
		s.mu.Unlock()
		return fmt.Errorf("%s is being deleted: %w", prefix, fs.ErrNotExist)
	}
	if s.pinning == nil {
		s.pinning = map[string]int{}
	}
	s.pinning[name]++
	s.mu.Unlock()
	defer s.endPin(name)
	if _, err := checkpointTime(prefix); err != nil {
		return err
	}
	return Pin(s.FS, name)
}

// endPin records the end of a call of Pin.
func (s *Saver) endPin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinning[name]--
}

// Pin protects a checkpoint of any source, named by its prefix, file or folder,
// like [Saver.Pin].
func Pin(fsys ckptfmt.FS, name string) error { return atomicfile.WriteFile(fsys, name+pinSuffix, nil) }

// Reasons why a checkpoint cannot be deleted at the moment.
var (
	errPinning   = errors.New("it is being pinned")
	errContinues = errors.New("the training continues from it")
)

// removeUnpinned deletes a checkpoint, unless it is pinned or the training continues from it.
// The disk may take long to pin and to delete, so neither waits for the other. The caller
// has locked writing.
func (s *Saver) removeUnpinned(prefix string) (pinned bool, err error) {
	if err := s.beginDelete(prefix); err != nil {
		return false, err
	}
	defer s.endDelete()
	if IsPinned(prefix) {
		return true, nil
	}
	return false, removeCheckpoint(s.FS, prefix)
}

// beginDelete prevents a checkpoint from being pinned from now on, unless something prevents its
// deletion.
func (s *Saver) beginDelete(prefix string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := unsharded(prefix); {
	case prefix == s.last:
		return errContinues
	case s.pinning[name] > 0:
		return errPinning
	default:
		s.deleting = name
		return nil
	}
}

func (s *Saver) endDelete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleting = ""
}

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

// pinNames returns the files that pin a checkpoint if any of them exists.
func pinNames(prefix string) []string {
	if short := unsharded(prefix); short != prefix {
		return []string{short + pinSuffix, prefix + pinSuffix}
	}
	return []string{prefix + pinSuffix}
}

// IsPin reports whether a file pins a checkpoint, judging by its name.
func IsPin(name string) bool { return strings.HasSuffix(name, pinSuffix) }

// IsPinned reports whether a checkpoint, named by its prefix, file or folder, is pinned; see
// [Saver.Pin]. It errs on the side of keeping: only if the file certainly does not exist, there is
// no pin.
func IsPinned(prefix string) bool {
	return slices.ContainsFunc(pinNames(prefix), func(name string) bool {
		_, err := os.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
