package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// Files are published below a root as they are elsewhere.
func TestInRoot(t *testing.T) {
	dir := t.TempDir()
	fsys := inRoot(t, dir)
	below := filepath.Join(dir, "a", "b")
	name := filepath.Join(below, "file")
	if err := errors.Join(atomicfile.MkdirSync(fsys, filepath.Dir(below)), atomicfile.MkdirSync(fsys, below)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{oldText, newText} {
		if err := atomicfile.WriteFile(fsys, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if read(t, name) != text || names(t, below) != "file" {
			t.Errorf("%q in %q", read(t, name), names(t, below))
		}
	}
	if err := atomicfile.SyncFile(fsys, name); err != nil {
		t.Error(err)
	}
	if err := atomicfile.Link(fsys, name, name+".2"); err != nil || read(t, name+".2") != newText || fsys.Remove(name+".2") != nil {
		t.Errorf("a second name: %v", err)
	}
	if _, err := fsys.Create(name); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a file = %v, want ErrExist", err)
	}
	if err := fsys.Remove(name); err != nil || names(t, below) != "" {
		t.Errorf("%v, directory has %q", err, names(t, below))
	}
	if err := fsys.SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("SyncDir = %v, want ErrNotExist", err)
	}
	for what, err := range operations(fsys, filepath.Join(dir, "none"), filepath.Join(dir, "none", "file")) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s = %v, want ErrNotExist", what, err)
		}
	}
}

// Nothing outside the root can be made, changed or removed, by ".." or by a
// link in it.
func TestNothingOutsideRoot(t *testing.T) {
	top := t.TempDir()
	dir, outside := filepath.Join(top, "logdir"), filepath.Join(top, "outside")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Mkdir(outside, 0o777), os.WriteFile(filepath.Join(outside, "file"), []byte(oldText), 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	fsys := inRoot(t, dir)
	for _, to := range []string{filepath.Join(dir, "..", "outside"), outside, filepath.Join(dir, "link")} {
		for what, err := range operations(fsys, filepath.Join(to, "file"), filepath.Join(to, "new")) {
			if err == nil {
				t.Errorf("%s in %s: no error", what, to)
			}
		}
	}
	if err := fsys.SyncDir(outside); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("SyncDir = %v, want ErrInvalid", err)
	}
	if read(t, filepath.Join(outside, "file")) != oldText || names(t, outside) != "file" || names(t, dir) != "link" {
		t.Errorf("outside has %q, the root %q", names(t, outside), names(t, dir))
	}
}

func inRoot(t *testing.T, dir string) atomicfile.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return atomicfile.InRoot(root)
}

// operations tries everything that changes names or files.
func operations(fsys atomicfile.FS, name, fresh string) map[string]error {
	inside := filepath.Join(filepath.Dir(filepath.Dir(fresh)), "logdir", "inside")
	_, create := fsys.Create(fresh)
	return map[string]error{
		"Create": create, "Mkdir": fsys.Mkdir(fresh), "Remove": fsys.Remove(name), "SyncFile": atomicfile.SyncFile(fsys, name),
		"Link": fsys.(atomicfile.Linker).Link(name, fresh), "Link to the inside": fsys.(atomicfile.Linker).Link(name, inside), "Link from inside": fsys.(atomicfile.Linker).Link(inside, fresh),
		"Rename": fsys.Rename(name, fresh), "Rename from inside": fsys.Rename(inside, fresh), "Rename to the inside": fsys.Rename(name, inside),
	}
}

// The sync of a file that another process has written fails if the disk does, or
// there is no such file.
func TestSyncFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(oldText), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.SyncFile(nil, name); err != nil {
		t.Error(err)
	}
	if err := atomicfile.SyncFile(nil, name+"2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := atomicfile.SyncFile(faultfs.New(1), name); !errors.Is(err, faultfs.ErrInjected) {
		t.Errorf("on a failing disk: %v", err)
	}
}

// A file is read whole up to the limit, and refused beyond it before memory is
// allocated for it.
func TestReadFileLimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(newText), 0o666); err != nil {
		t.Fatal(err)
	}
	tooLarge := func(size int64) error { return fmt.Errorf("%d bytes are too many", size) }
	for _, fsys := range []atomicfile.FS{nil, faultfs.New(0)} {
		size := int64(len(newText))
		for _, limit := range []int64{size, size + 1} {
			if b, err := atomicfile.ReadFileLimit(fsys, name, limit, tooLarge); string(b) != newText || err != nil {
				t.Errorf("limit %d: %q, %v", limit, b, err)
			}
		}
		want := fmt.Sprintf("%d bytes are too many", size)
		if b, err := atomicfile.ReadFileLimit(fsys, name, size-1, tooLarge); b != nil || err == nil || err.Error() != want {
			t.Errorf("limit %d: %q, %v", size-1, b, err)
		}
		if _, err := atomicfile.ReadFileLimit(fsys, name+"2", size, tooLarge); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that does not exist: %v", err)
		}
	}
	for n := 1; n <= 2; n++ { // open, read
		if _, err := atomicfile.ReadFileLimit(faultfs.New(n), name, 100, tooLarge); !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("operation %d: %v", n, err)
		}
	}
}

// What was cut between the look at its size and the read is as short as it is;
// a file whose size cannot be read is an error.
func TestReadFileLimitOfChangingFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	big, err := os.Stat(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if b, err := atomicfile.ReadFileLimit(changing{info: big}, name, 1<<40, nil); string(b) != "half" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := atomicfile.ReadFileLimit(changing{err: fs.ErrPermission}, name, 100, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("no size: %v", err)
	}
}

// changing is a file system whose files have another size than they had.
type changing struct {
	atomicfile.FS
	info fs.FileInfo
	err  error
}

func (c changing) Open(name string) (atomicfile.ReadFile, error) {
	f, err := os.Open(name)
	return changed{f, c}, err
}

type changed struct {
	*os.File
	as changing
}

func (c changed) Stat() (fs.FileInfo, error) { return c.as.info, c.as.err }
