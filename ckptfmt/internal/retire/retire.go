// Package retire takes a checkpoint out of force before another gets its name.
package retire

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// Checkpoint takes an older checkpoint of that prefix out of force, durably: its
// manifest, which would not be true any more, and its index.
func Checkpoint(fsys atomicfile.FS, prefix string) error {
	removed := false
	for _, name := range []string{prefix + layout.ManifestSuffix, layout.IndexName(prefix)} {
		err := fsys.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	return fsys.SyncDir(filepath.Dir(prefix))
}
