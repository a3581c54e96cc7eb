package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// previousSuffix ends the prefix under which a checkpoint stays while another
// is published under its own. Between the first file and the last the two are
// mixed, and a crash then would leave neither.
const previousSuffix = layout.PreviousSuffix

// previousName returns the prefix for the checkpoint that had the given prefix before. It keeps the
// shard pattern of a V1 checkpoint.
func previousName(prefix string) string {
	name := unsharded(prefix)
	return name + previousSuffix + strings.TrimPrefix(prefix, name)
}

// cutPrevious is the reverse of previousName.
func cutPrevious(prefix string) (original string, previous bool) {
	name := unsharded(prefix)
	original, previous = strings.CutSuffix(name, previousSuffix)
	return original + strings.TrimPrefix(prefix, name), previous
}

// keepPrevious gives the files of the checkpoint that will be overwritten a second name. It does
// nothing unless the checkpoint is whole: the index is published last, and removed first.
func (s *Saver) keepPrevious(prefix string) error {
	if _, err := os.Stat(prefix + indexSuffix); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := s.removePrevious(prefix); err != nil {
		return err
	}
	names, err := layout.Files(prefix)
	if err != nil {
		return err
	}
	slices.Reverse(names) // data, then index
	dir, base := filepath.Split(prefix)
	for _, name := range names {
		second := base + previousSuffix + strings.TrimPrefix(name, base)
		if err := atomicfile.Link(s.FS, filepath.Join(dir, name), filepath.Join(dir, second)); err != nil {
			return err
		}
	}
	// An existing manifest must be true, so the old manifest is removed before the files that it
	// describes.
	if err := atomicfile.RemoveIfExists(s.FS, manifest.Name(prefix)); err != nil {
		return err
	}
	return atomicfile.OrOS(s.FS).SyncDir(filepath.Dir(prefix))
}

// removePrevious removes what a crash has left under the second name after the new checkpoint was
// whole. The names of the new one are made durable first: a killed process may have had no time for
// that.
func (s *Saver) removePrevious(prefix string) error {
	names, err := layout.Files(prefix + previousSuffix)
	if err != nil || len(names) == 0 {
		return err
	}
	if err := atomicfile.OrOS(s.FS).SyncDir(filepath.Dir(prefix)); err != nil {
		return err
	}
	return ckptdir.RemoveFiles(prefix+previousSuffix, &ckptfmt.FileOptions{FS: s.FS})
}
