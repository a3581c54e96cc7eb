package clidoc

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Paths returns the entries of a folder that complete a path, for [Doc.Complete]:
// those that are wanted, with their explanation, and the folders in which more may
// be. Hidden ones are shown if the word begins like that.
func Paths(current string, wanted func(path string, d fs.DirEntry) (explanation string, ok bool)) []string {
	dir, base := filepath.Split(current)
	entries, err := os.ReadDir(filepath.Clean("./" + dir))
	if filepath.IsAbs(dir) {
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return nil
	}
	var lines []string
	for _, d := range entries {
		name := d.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") {
			continue
		}
		if d.Type()&fs.ModeSymlink != 0 {
			d = linked(dir+name, d)
		}
		if explanation, ok := wanted(dir+name, d); ok {
			lines = append(lines, dir+name+"\t"+explanation)
		} else if d.IsDir() {
			lines = append(lines, dir+name+string(filepath.Separator)+"\tfolder")
		}
	}
	return lines
}

// linked returns what a link leads to, or the link if that cannot be read.
func linked(link string, d fs.DirEntry) fs.DirEntry {
	info, err := os.Stat(link)
	if err != nil {
		return d
	}
	return fs.FileInfoToDirEntry(info)
}
