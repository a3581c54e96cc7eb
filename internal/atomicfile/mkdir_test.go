package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// A directory that was made is there after a power cut, with its parents.
func TestMkdirAllSync(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b", "c")
	fsys := faultfs.New(0)
	for range 2 {
		if err := atomicfile.MkdirAllSync(fsys, dir); err != nil {
			t.Fatal(err)
		}
	}
	dst := filepath.Join(t.TempDir(), "disk")
	states := 0
	for what, err := range fsys.Crashes(fsys.Ops(), root, dst) {
		if err != nil {
			t.Fatal(err)
		}
		states++
		if _, err := os.Stat(filepath.Join(dst, "a", "b", "c")); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if states == 0 {
		t.Error("no states")
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, filepath.Join(file, "below")} {
		if err := atomicfile.MkdirAllSync(nil, name); err == nil {
			t.Errorf("%s was made a directory", name)
		}
	}
}

// What a process made that was killed before it could sync anything is durable
// once another has asked for the same directory, or one below it.
func TestMkdirAllSyncAfterKill(t *testing.T) {
	for _, want := range []string{"a/b", "a/b/c", "link/b"} {
		t.Run(want, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			fsys := faultfs.New(0)
			for _, made := range []string{"a", "a/b"} {
				if err := fsys.Mkdir(filepath.Join(root, made)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a", filepath.Join(root, "link")); err != nil {
				t.Skip(err)
			}
			if err := atomicfile.MkdirAllSync(fsys, filepath.Join(root, want)); err != nil {
				t.Fatal(err)
			}
			dst := filepath.Join(t.TempDir(), "disk")
			states := 0
			for what, err := range fsys.Crashes(fsys.Ops(), root, dst) {
				if err != nil {
					t.Fatal(err)
				}
				states++
				real := strings.Replace(want, "link", "a", 1)
				if _, err := os.Stat(filepath.Join(dst, real)); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if states == 0 {
				t.Error("no states")
			}
		})
	}
}

// A parent that this process must not sync is no reason to fail, one that the
// disk cannot sync is.
func TestMkdirAllSyncFails(t *testing.T) {
	tests := []struct {
		cause error
		fails bool
	}{{syscall.EACCES, false}, {syscall.EPERM, false}, {syscall.EROFS, false}, {syscall.EINVAL, false}, {syscall.ENOTSUP, false}, {syscall.EIO, true}}
	for _, tt := range tests {
		fsys := faultfs.NewFault(faultfs.Fault{At: 1, Err: tt.cause})
		if err := atomicfile.MkdirAllSync(fsys, t.TempDir()); errors.Is(err, tt.cause) != tt.fails || err != nil && !tt.fails {
			t.Errorf("%v: got %v", tt.cause, err)
		}
	}
}

// A directory whose name could not be made durable is not left for the next
// call to find.
func TestMkdirSyncFails(t *testing.T) {
	for n := 1; n <= 2; n++ {
		dir := filepath.Join(t.TempDir(), "d")
		if err := atomicfile.MkdirSync(faultfs.New(n), dir); !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("operation %d: %v", n, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("operation %d: the directory is there: %v", n, err)
		}
	}
}

// A failure anywhere on the way is reported, and the next call makes up for it.
func TestMkdirAllSyncEveryOperationFails(t *testing.T) {
	for n := 1; ; n++ {
		root := t.TempDir()
		dir := filepath.Join(root, "a", "b")
		fsys := faultfs.New(n)
		err := atomicfile.MkdirAllSync(fsys, dir)
		if fsys.Failed() == "" {
			if err != nil || n < 5 {
				t.Errorf("%d operations, %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s: %v", fsys.Failed(), err)
		}
		if err := atomicfile.MkdirAllSync(fsys, dir); err != nil {
			t.Errorf("%s: the next call: %v", fsys.Failed(), err)
		}
		dst := filepath.Join(t.TempDir(), "disk")
		for what, err := range fsys.Crashes(fsys.Ops(), root, dst) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dst, "a", "b")); err != nil {
				t.Errorf("%s, %s: %v", fsys.Failed(), what, err)
			}
		}
	}
}

// A directory that is there already is not an error, also on the system itself.
func TestMkdirSyncTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	for range 2 {
		if err := errors.Join(atomicfile.MkdirSync(nil, dir), atomicfile.SyncNames(nil, dir), atomicfile.MkdirAllSync(nil, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.MkdirSync(nil, filepath.Join(dir, "none", "below")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without its parent: %v", err)
	}
}

// A link to nowhere is named, as making what it links to might surprise.
func TestMkdirAllSyncLinkToNowhere(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("gone", link); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{link, filepath.Join(link, "below")} {
		if err := atomicfile.MkdirAllSync(nil, name); err == nil || !strings.Contains(err.Error(), link+": it is a link to gone, which does not exist") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A folder that is gone is not made again, nor what is above it; what is below it is.
func TestWithoutMaking(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b")
	fsys := atomicfile.WithoutMaking(nil, dir)
	if err := atomicfile.MkdirAllSync(fsys, filepath.Join(dir, "c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the folder: %v", err)
	}
	for _, name := range []string{dir, filepath.Join(root, "none", "below")} {
		if err := fsys.Mkdir(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without what is above it, %s: %v", name, err)
		}
	}
	if err := errors.Join(os.MkdirAll(dir, 0o777), atomicfile.MkdirAllSync(fsys, filepath.Join(dir, "c"))); err != nil {
		t.Errorf("within the folder: %v", err)
	}
	if err := fsys.Mkdir(dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there: %v", err)
	}
	if err := fsys.Mkdir(filepath.Join(root, "other")); err != nil {
		t.Errorf("next to it: %v", err)
	}
	t.Chdir(root)
	if err := atomicfile.MkdirAllSync(atomicfile.WithoutMaking(nil, "gone"), filepath.Join("gone", "c")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the folder, by a relative name: %v", err)
	}
}
