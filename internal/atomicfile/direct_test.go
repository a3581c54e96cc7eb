package atomicfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

const directSize = 2*atomicfile.DirectPiece + 3*4096 + 5

// content is written in pieces of that size.
func content(t *testing.T, p *atomicfile.Pending, piece int) ([]byte, error) {
	t.Helper()
	b := make([]byte, directSize)
	for i := range b {
		b[i] = byte(i / 7)
	}
	for at := 0; at < len(b); at += piece {
		if _, err := p.Write(b[at:min(at+piece, len(b))]); err != nil {
			return b, err
		}
	}
	return b, p.Sync()
}

// Whatever a file system does of direct writes, each is aligned, and the file is whole or
// the error is that of the disk.
func TestDirectWrites(t *testing.T) {
	for _, tt := range []struct {
		name   string
		disk   disk
		direct int   // bytes
		want   error // nil: the file is whole
	}{
		{"all", disk{}, atomicfile.DirectPiece + 3*4096, nil},
		{"refused", disk{refuses: true}, 0, nil},
		{"refused with the first write", disk{failAt: 1, err: syscall.EINVAL}, 0, nil},
		{"refused with the last write", disk{failAt: 2, err: syscall.EINVAL}, atomicfile.DirectPiece, nil},
		{"part of a write, then refused", disk{failAt: 1, taken: 700, err: syscall.EINVAL}, 700, nil},
		{"full", disk{failAt: 1, taken: 8192, err: syscall.ENOSPC}, 8192, syscall.ENOSPC},
		{"broken with the last write", disk{failAt: 2, err: syscall.EIO}, atomicfile.DirectPiece, syscall.EIO},
	} {
		for _, piece := range []int{3<<20 + 1, directSize} {
			t.Run(tt.name, func(t *testing.T) {
				d := tt.disk
				d.FS = atomicfile.OrOS(nil)
				d.t = t
				name := filepath.Join(t.TempDir(), "file")
				p, err := atomicfile.Create(&d, name, "")
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				p.Direct()
				b, err := content(t, p, piece)
				if !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if tt.want == nil && !bytes.Equal(d.bytes, b) {
					t.Errorf("the file has %d other bytes", len(d.bytes))
				}
				if d.direct != tt.direct {
					t.Errorf("%d bytes were direct writes, want %d", d.direct, tt.direct)
				}
			})
		}
	}
}

// disk is a file system of one file, in memory, that takes direct writes.
type disk struct {
	atomicfile.FS
	t       *testing.T
	refuses bool
	failAt  int // the direct write that fails, from 1
	taken   int // what is written of that
	err     error

	on     bool
	writes int
	direct int // bytes
	bytes  []byte
}

func (d *disk) Create(name string) (atomicfile.File, error) {
	f, err := d.FS.Create(name)
	return &diskFile{f, d}, err
}

type diskFile struct {
	atomicfile.File
	*disk
}

func (f *diskFile) SetDirect(on bool) bool {
	f.on = on && !f.refuses
	return f.on
}

func (f *diskFile) Write(b []byte) (n int, err error) {
	n = len(b)
	if f.on {
		if address := uintptr(unsafe.Pointer(&b[0])); address%4096 != 0 || len(b)%4096 != 0 || len(f.bytes)%4096 != 0 {
			f.t.Errorf("direct write of %d bytes at %d, address %x", len(b), len(f.bytes), address)
		}
		if f.writes++; f.writes == f.failAt {
			n, err = f.taken, f.err
		}
		f.direct += n
	}
	f.bytes = append(f.bytes, b[:n]...)
	return n, err
}

// The system's files have the same bytes, and some are direct writes where the file
// system takes them.
func TestDirectOnDisk(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	fsys := &watchedDisk{FS: atomicfile.OrOS(nil)}
	p, err := atomicfile.Create(fsys, name, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Direct()
	b, err := content(t, p, 1<<20)
	if err := errors.Join(err, p.Commit()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, b) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
	if want := atomicfile.DirectPiece + 3*4096; fsys.taken && fsys.direct != want {
		t.Errorf("%d bytes were direct writes, want %d", fsys.direct, want)
	}
	t.Logf("direct writes here: %t", fsys.taken)
}

type watchedDisk struct {
	atomicfile.FS
	on, taken bool
	direct    int
}

func (w *watchedDisk) Create(name string) (atomicfile.File, error) {
	f, err := w.FS.Create(name)
	if d, ok := f.(atomicfile.DirectFile); ok {
		return watchedDirect{d, w}, err
	}
	return f, err
}

type watchedDirect struct {
	atomicfile.DirectFile
	w *watchedDisk
}

func (f watchedDirect) SetDirect(on bool) bool {
	f.w.on = f.DirectFile.SetDirect(on)
	f.w.taken = f.w.taken || f.w.on
	return f.w.on
}

func (f watchedDirect) Write(b []byte) (int, error) {
	n, err := f.DirectFile.Write(b)
	if f.w.on {
		f.w.direct += n
	}
	return n, err
}

// A small file takes no direct write, and no memory for one.
func TestDirectSmall(t *testing.T) {
	d := &disk{FS: atomicfile.OrOS(nil), t: t}
	p, err := atomicfile.Create(d, filepath.Join(t.TempDir(), "file"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Direct()
	if _, err := p.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := p.Sync(); err != nil || string(d.bytes) != "text" || d.direct != 0 {
		t.Errorf("%q, %d bytes directly, error %v", d.bytes, d.direct, err)
	}
}
