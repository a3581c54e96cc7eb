package dataset

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/internal/walkdir"
)

// foundImages are the files of images below a folder, and what else is there.
type foundImages struct {
	files []string
	other int    // files that are left out
	one   string // of them
}

func (f *foundImages) add(more foundImages) {
	if f.other == 0 {
		f.one = more.one
	}
	f.files, f.other = append(f.files, more.files...), f.other+more.other
}

// note says what is left out, "" for nothing.
func (f *foundImages) note() string {
	if f.other == 0 {
		return ""
	}
	return fmt.Sprintf("files that are left out: %d, such as %s; images are PNG, JPEG, GIF and BMP files", f.other, f.one)
}

// imagesBelow finds the images in a folder and those in it, in the order of their
// names, as Keras does. What is hidden is no part of the data.
func imagesBelow(ctx context.Context, dir string) (found foundImages, err error) {
	err = walkdir.Walk(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return openError(name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		hidden := name != dir && strings.HasPrefix(entry.Name(), ".")
		switch {
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir() || hidden || isLitter(entry.Name()):
		case isImage(name):
			found.files = append(found.files, name)
		default:
			found.other++
			found.one = name
		}
		return nil
	})
	return found, err
}

// isFolder reports whether what is in a folder is one itself, or a link to one, as to another
// disk.
func isFolder(path string, entry fs.DirEntry) bool {
	return entry.IsDir() || entry.Type()&fs.ModeSymlink != 0 && isDir(path)
}

// isLitter reports whether a file is of those that desktops leave in folders.
func isLitter(name string) bool { return name == "Thumbs.db" || name == "desktop.ini" }

// isImage reports whether a file is called like an image.
func isImage(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".bmp":
		return !strings.HasPrefix(filepath.Base(name), ".")
	}
	return false
}
