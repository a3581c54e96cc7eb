package tfevents

import (
	"io/fs"
	"os"
	"path/filepath"
)

// DirFS returns a log directory as a file system for [FindRuns]. Unlike [os.DirFS],
// it reads files and directories whose names are not UTF-8, as found on copies of
// old disks. It does not check names: use only names that it returned.
func DirFS(dir string) fs.FS { return dirFS(dir) }

type dirFS string

func (d dirFS) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

func (d dirFS) Open(name string) (fs.File, error) {
	f, err := os.Open(d.path(name))
	if err != nil {
		return nil, err // not f: a nil *os.File in a File is not nil
	}
	return f, nil
}

func (d dirFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(d.path(name)) }

func (d dirFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(d.path(name)) }
