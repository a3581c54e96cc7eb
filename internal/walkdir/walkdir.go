// Package walkdir walks folders named by users, which may be symbolic links.
package walkdir

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Walk is [filepath.WalkDir] that enters root also where that is a symbolic link to a
// folder, as TensorBoard does: a log directory is often one, to a larger disk. Other links
// are not followed.
func Walk(root string, do fs.WalkDirFunc) error {
	info, err := os.Lstat(root)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return filepath.WalkDir(root, do)
	}
	entered := root + string(filepath.Separator)
	return filepath.WalkDir(entered, func(path string, d fs.DirEntry, err error) error {
		if path == entered {
			path = root
		}
		return do(path, d, err)
	})
}
