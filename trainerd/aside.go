package trainerd

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

// previousSuffix ends the prefix under which a checkpoint stays while another
// is published under its own. Between the first file and the last the two are
// mixed, and a crash then would leave neither.
const previousSuffix = ".previous"

// keepPrevious gives the files of the checkpoint that will be overwritten a
// second name. It does nothing when there is no whole checkpoint: the index
// comes last when one is published, and goes first.
func (s *Saver) keepPrevious(prefix string) error {
	if _, err := os.Stat(prefix + indexSuffix); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	// What has this name was left by a crash, after the checkpoint was whole.
	if err := ckptfmt.RemoveFiles(prefix+previousSuffix, s.FS); err != nil {
		return err
	}
	names, err := ckptfmt.FilesOf(prefix)
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
	return atomicfile.OrOS(s.FS).SyncDir(filepath.Dir(prefix))
}
