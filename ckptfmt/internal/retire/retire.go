// Package retire retires a checkpoint before another one gets its name.
package retire

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// Checkpoint durably removes what makes an older checkpoint of that prefix current: its
// index, and first its manifest, which would no longer be true.
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
