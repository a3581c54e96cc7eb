package dataset

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/shell"
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

// noImages is the error for the folder of a class in which only such files were found.
func (f *foundImages) noImages(dir string) *Error {
	if f.other == 0 {
		return &Error{File: dir, Reason: "has no images", Hint: "put the images of the class into it, or remove the folder"}
	}
	reason := fmt.Sprintf("has no images, but other files: %d, such as %s", f.other, filepath.Base(f.one))
	if isTable(f.one) {
		pattern := shell.Quote(filepath.Join(filepath.Dir(dir), "*", "*"+filepath.Ext(f.one)))
		return &Error{File: dir, Reason: reason, Hint: "to learn from the tables, give a pattern of them, such as " + pattern}
	}
	return &Error{File: dir, Reason: reason, Hint: "images are PNG, JPEG, GIF and BMP files; of other files, such as sounds, give numbers: a row for each file, in a table or an array of NumPy"}
}

// noClasses is the error for a folder that has no folders of images.
func noClasses(dir string, classes, images int) *Error {
	hint := "make a folder for each of at least two classes, with its images in it; of a table give the file"
	switch tables := tablesIn(dir); {
	case classes == 0 && hasImages(dir):
		return &Error{File: dir, Reason: "has images, but no folder for each class", Hint: "make these folders, or, if a table has the names and labels of the images, give it with --label TABLE"}
	case len(tables) == 1:
		hint = "it has a table: give " + tables[0]
	case len(tables) > 1:
		all := shell.Quote(filepath.Join(dir, "*"+filepath.Ext(tables[0])))
		hint = fmt.Sprintf("it has %d tables: give one, such as %s, or several of the same columns by a pattern, such as %s", len(tables), tables[0], all)
	}
	return &Error{File: dir, Reason: fmt.Sprintf("has %d folders with %d images", classes, images), Hint: hint}
}

// hasImages reports whether images are in a folder itself.
func hasImages(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isImage(e.Name()) })
}

// tablesIn returns the files in a folder that are called like tables, those to train with first.
func tablesIn(dir string) (tables []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if isTable(e.Name()) {
			tables = append(tables, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortStableFunc(tables, func(a, b string) int { return strings.Compare(filepath.Ext(a), filepath.Ext(b)) })
	if i := slices.IndexFunc(tables, func(name string) bool { return strings.HasPrefix(filepath.Base(name), "train") }); i > 0 {
		tables[0], tables[i] = tables[i], tables[0]
	}
	return tables
}

// isTable reports whether a file is called like a table.
func isTable(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), ".gz")
	return slices.Contains([]string{".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet"}, filepath.Ext(name))
}

// imagesBelow finds the images in a folder and those in it, in the order of their
// names, as Keras does. What is hidden is not part of the data.
func imagesBelow(ctx context.Context, dir string) (found foundImages, err error) {
	err = walkdir.Walk(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return openError(name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case entry.IsDir() && name != dir && isHiddenFolder(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || strings.HasPrefix(entry.Name(), ".") || isLitter(entry.Name()):
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

// isHiddenFolder reports whether a folder is hidden, or has copies of what is next to it, as those
// that archives of macOS and disks in the network have.
func isHiddenFolder(name string) bool {
	return strings.HasPrefix(name, ".") || name == "__MACOSX" || strings.HasPrefix(name, "@eaDir")
}

// isImage reports whether a file is called like an image.
func isImage(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".bmp":
		return !strings.HasPrefix(filepath.Base(name), ".")
	}
	return false
}
