package atomicfile

import (
	"io/fs"
	"os"
)

// osFS is the operating system's file system.
type osFS struct {
	noSync bool
}

func (o osFS) Create(name string) (File, error) {
	// Exclusive creation follows no symbolic link; openNoFollow says it
	// again for systems whose network file systems forget.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openNoFollow, 0o666)
	if err != nil {
		return nil, err // not f: a nil *os.File in a File is not nil
	}
	if o.noSync {
		return noSyncFile{f}, nil
	}
	return osFile{f}, nil
}

func (osFS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }
func (osFS) Remove(name string) error             { return os.Remove(name) }
func (osFS) Mkdir(name string) error              { return os.Mkdir(name, fs.ModePerm) }

func (o osFS) SyncDir(name string) error {
	if o.noSync {
		return nil
	}
	return syncDir(name)
}

// osFile is a file that will be synced.
type osFile struct{ *os.File }

func (f osFile) beginWriteback(offset, size int64) { beginWriteback(f.File, offset, size) }
