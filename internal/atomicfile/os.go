package atomicfile

import (
	"io/fs"
	"os"
)

// osFS is the operating system's file system.
type osFS struct{}

func (osFS) Create(name string) (File, error) {
	// Exclusive creation follows no symbolic link; openNoFollow says it
	// again for systems whose network file systems forget.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openNoFollow, 0o666)
	if err != nil {
		return nil, err // not f: a nil *os.File in a File is not nil
	}
	return f, nil
}

func (osFS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }
func (osFS) Remove(name string) error             { return os.Remove(name) }
func (osFS) Mkdir(name string) error              { return os.Mkdir(name, fs.ModePerm) }
func (osFS) SyncDir(name string) error            { return syncDir(name) }
