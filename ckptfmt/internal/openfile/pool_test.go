package openfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// few is a pool with two descriptors, and some files that are open in it.
func few(t *testing.T, n int) (*pool, []*File) {
	t.Helper()
	p := &pool{most: func() int { return 2 }}
	dir := t.TempDir()
	files := make([]*File, n)
	for i := range files {
		name := filepath.Join(dir, fmt.Sprint("file", i))
		if err := os.WriteFile(name, []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := p.add(name, func() (atomicfile.ReadFile, error) { return atomicfile.Open(nil, name) })
		if err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	return p, files
}

func read(t *testing.T, f *File, want byte) {
	t.Helper()
	var b [1]byte
	if _, err := f.ReadAt(b[:], 0); err != nil || b[0] != want {
		t.Errorf("%s: %v, %v; want %d", f.Name(), b, err, want)
	}
}

func TestFewDescriptors(t *testing.T) {
	p, files := few(t, 5)
	for range 2 {
		for i, f := range files {
			read(t, f, byte(i))
			if p.open > 2 {
				t.Errorf("%d descriptors are open", p.open)
			}
		}
	}
	read(t, files[3], 3) // which stays longer than the one before it
	read(t, files[0], 0)
	if files[3].file == nil || files[4].file != nil {
		t.Error("another file was closed than the one that was not read for the longest time")
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if p.open != 0 || p.idle.Len() != 0 {
		t.Errorf("%d descriptors are left, %d idle", p.open, p.idle.Len())
	}
	if _, err := files[0].ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("reading a closed file: %v", err)
	}
	if err := files[0].Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closing it again: %v", err)
	}
}

// TestDescriptorsInUse reads more files at once than there are descriptors for, and closes
// one of them meanwhile.
func TestDescriptorsInUse(t *testing.T) {
	p, files := few(t, 4)
	var all, read, closed sync.WaitGroup
	read.Add(len(files))
	closed.Add(1)
	for _, f := range files {
		all.Go(func() {
			err := f.Use(func(file atomicfile.ReadFile) error {
				read.Done()
				closed.Wait()
				_, err := file.ReadAt(make([]byte, 1), 0)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	read.Wait()
	if err := files[0].Close(); err != nil {
		t.Error(err)
	}
	closed.Done()
	all.Wait()
	for _, f := range files[1:] {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if p.open != 0 {
		t.Errorf("%d descriptors are left", p.open)
	}
}

func TestReplacedFile(t *testing.T) {
	_, files := few(t, 3)
	other := files[0].Name() + ".new"
	if err := errors.Join(os.WriteFile(other, []byte("longer"), 0o600), os.Rename(other, files[0].Name()), os.Remove(files[1].Name())); err != nil {
		t.Fatal(err)
	}
	read(t, files[2], 2)
	if _, err := files[0].ReadAt(make([]byte, 1), 0); err == nil || !strings.Contains(err.Error(), "was replaced while it was read") {
		t.Errorf("another file of that name: %v", err)
	}
	read(t, files[2], 2)
	if files[1].file == nil {
		if _, err := files[1].ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is gone: %v", err)
		}
	}
}
