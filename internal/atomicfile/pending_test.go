package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// begin returns a file of the new text that is not published yet.
func begin(t *testing.T, fsys atomicfile.FS, name string) *atomicfile.Pending {
	t.Helper()
	p, err := atomicfile.Create(fsys, name, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte(newText)); err != nil {
		t.Fatal(err)
	}
	return p
}

// Steps that were done are not done again, and a write that comes too late
// changes nothing.
func TestPendingStepsTwice(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	fsys := faultfs.New(0)
	p := begin(t, fsys, name)
	if p.Name() != name || filepath.Dir(p.Temp()) != dir || !atomicfile.IsTemp(filepath.Base(p.Temp())) {
		t.Errorf("file %s, written as %s", p.Name(), p.Temp())
	}
	if err := errors.Join(p.Sync(), p.Sync()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("late")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Write after Sync = %v", err)
	}
	if err := errors.Join(p.Rename(), p.Rename(), p.Commit(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if read(t, name) != newText || fsys.Resynced() != "" {
		t.Errorf("file has %q; synced again: %q", read(t, name), fsys.Resynced())
	}
}

// A Pending that has failed stays so: a second sync could report a success that
// is none.
func TestPendingFailsForGood(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   int
	}{{"write", 3}, {"sync", 3}, {"close", 4}, {"rename", 5}, {"sync directory", 6}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			fsys := faultfs.New(tt.at)
			p := begin(t, fsys, filepath.Join(dir, "file"))
			if tt.name == "write" {
				p.Write([]byte("more"))
			}
			first := p.Commit()
			if !errors.Is(first, faultfs.ErrInjected) || fsys.FailedKind() != tt.name {
				t.Fatalf("failed at %q: %v", fsys.FailedKind(), first)
			}
			n, written := p.Write([]byte("more"))
			for _, err := range []error{written, p.Sync(), p.Rename(), p.Commit()} {
				if n != 0 || !errors.Is(err, faultfs.ErrInjected) {
					t.Errorf("later: %v, %d bytes written", err, n)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			want := ""
			if tt.name == "sync directory" {
				want = "file" // it is there, but may not survive a power cut
			}
			if got := names(t, dir); got != want || fsys.Resynced() != "" {
				t.Errorf("directory has %q, want %q; synced again: %q", got, want, fsys.Resynced())
			}
		})
	}
}

// Without a fault of the disk, Commit fails if the file cannot be given its
// name, and Close if it cannot be removed.
func TestPendingOnTheSystem(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(name, "below"), 0o777); err != nil {
		t.Fatal(err)
	}
	p := begin(t, nil, name)
	if err := p.Commit(); err == nil {
		t.Error("a file has replaced a directory")
	}
	if err := os.Remove(p.Temp()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Close = %v, want ErrNotExist", err)
	}
	if err := atomicfile.WriteFile(nil, filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("WriteFile = %v, want ErrNotExist", err)
	}
	fsys := atomicfile.OrOS(nil)
	for what, err := range map[string]error{
		"Remove": fsys.Remove(filepath.Join(dir, "none")), "Mkdir": fsys.Mkdir(name), "SyncDir": fsys.SyncDir(filepath.Join(dir, "none")),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// Close closes the file, whether it was synced or not, and only once.
func TestPendingClosesFile(t *testing.T) {
	for _, sync := range []bool{false, true} {
		fsys := &closes{FS: atomicfile.OrOS(nil)}
		p := begin(t, fsys, filepath.Join(t.TempDir(), "file"))
		if sync {
			if err := p.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(p.Close(), p.Close()); err != nil || fsys.n != 1 {
			t.Errorf("synced: %v: closed %d times, %v", sync, fsys.n, err)
		}
		if _, err := p.Write([]byte("late")); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("Write after Close = %v", err)
		}
	}
}

// closes counts how often files are closed. With short, a write writes half and
// reports no error.
type closes struct {
	atomicfile.FS
	n     int
	short bool
}

func (c *closes) Create(name string) (atomicfile.File, error) {
	f, err := c.FS.Create(name)
	return &closing{File: f, fs: c}, err
}

type closing struct {
	atomicfile.File
	fs *closes
}

func (c *closing) Close() error {
	c.fs.n++
	return c.File.Close()
}

func (c *closing) Write(b []byte) (int, error) {
	if c.fs.short {
		b = b[:len(b)/2]
	}
	return c.File.Write(b)
}

// A disk that writes less than it was given is an error, even if it reports
// none.
func TestShortWrite(t *testing.T) {
	dir := t.TempDir()
	err := atomicfile.WriteFile(&closes{FS: atomicfile.OrOS(nil), short: true}, filepath.Join(dir, "file"), []byte(newText))
	if !errors.Is(err, io.ErrShortWrite) || names(t, dir) != "" {
		t.Errorf("error %v, directory has %q", err, names(t, dir))
	}
}
