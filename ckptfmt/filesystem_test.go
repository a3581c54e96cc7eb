package ckptfmt_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// programFS is a file system of a program of its own: nothing of it needs a
// package that only this project can import.
type programFS struct{ created int }

func (p *programFS) Create(name string) (ckptfmt.File, error) {
	p.created++
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}
func (*programFS) Rename(from, to string) error { return os.Rename(from, to) }
func (*programFS) Remove(name string) error     { return os.Remove(name) }
func (*programFS) Mkdir(name string) error      { return os.Mkdir(name, 0o777) }
func (*programFS) SyncDir(string) error         { return nil }

func TestFileSystemOfAProgram(t *testing.T) {
	fsys := new(programFS)
	var _ ckptfmt.FS = fsys
	w, err := ckptfmt.CreateBundle(filepath.Join(t.TempDir(), "m"), &ckptfmt.BundleWriterOptions{FS: fsys})
	if err == nil {
		err = errors.Join(w.Add("v", ckptfmt.Scalar(float32(1))), w.Finish(), w.Close())
	}
	if err != nil || fsys.created == 0 {
		t.Errorf("%d files were created, %v", fsys.created, err)
	}
}

func TestFileOptions(t *testing.T) {
	fsys := new(programFS)
	if got := (&ckptfmt.FileOptions{FS: fsys}).FileSystem(); got != fsys {
		t.Errorf("the file system is %v", got)
	}
	if got := (*ckptfmt.FileOptions)(nil).FileSystem(); got != nil {
		t.Errorf("without options it is %v, not the operating system's", got)
	}
}
