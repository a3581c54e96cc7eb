package atomicfile_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

const directSize = 4*atomicfile.DirectPiece + 3*4096 + 5

var directContent = sync.OnceValue(func() []byte {
	return bytes.Repeat([]byte("content"), directSize/7+1)[:directSize]
})

// content is written in pieces of that size.
func content(p *atomicfile.Pending, piece int) ([]byte, error) {
	b := directContent()
	for at := 0; at < len(b); at += piece {
		if _, err := p.Write(b[at:min(at+piece, len(b))]); err != nil {
			return b, err
		}
	}
	return b, p.Sync()
}

// Whatever a file system does of direct writes, each is aligned and left alone while it is
// written, and the file is whole or the error is that of the disk.
func TestDirectWrites(t *testing.T) {
	const piece = atomicfile.DirectPiece
	for _, tt := range []struct {
		name   string
		disk   disk
		direct int   // bytes
		want   error // nil: the file is whole
	}{
		{"all", disk{}, 3 * piece, nil},
		{"refused", disk{refuses: true}, 0, nil},
		{"first cannot be begun", disk{beginFails: 1}, 0, nil},
		{"last cannot be begun", disk{beginFails: 3}, 2 * piece, nil},
		{"first is refused", disk{failAt: 1, err: syscall.EINVAL}, 0, nil},
		{"last is refused", disk{failAt: 3, err: syscall.EINVAL}, 2 * piece, nil},
		{"part of one", disk{failAt: 2, taken: 700}, piece + 700, nil},
		{"full", disk{failAt: 1, taken: 8192, err: syscall.ENOSPC}, 8192, syscall.ENOSPC},
		{"last is lost", disk{failAt: 3, err: syscall.EIO}, 2 * piece, syscall.EIO},
		{"cannot be ended", disk{endErr: syscall.EIO}, 3 * piece, syscall.EIO},
		{"cannot be begun, nor ended", disk{beginFails: 2, endErr: syscall.EIO}, piece, syscall.EIO},
		{"is refused, and cannot be ended", disk{failAt: 2, err: syscall.EINVAL, endErr: syscall.EIO}, piece, syscall.EIO},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.disk
			d.FS, d.t = atomicfile.OrOS(nil), t
			p, err := atomicfile.Create(&d, filepath.Join(t.TempDir(), "file"), "")
			if err != nil {
				t.Fatal(err)
			}
			p.Direct()
			b, err := content(p, 3<<20+1)
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if tt.want == nil && !bytes.Equal(d.bytes, b) {
				t.Errorf("the file has %d other bytes", len(d.bytes))
			}
			if err := p.Close(); err != nil || d.on || d.direct != tt.direct {
				t.Errorf("%d bytes were direct writes, want %d; still on: %t; %v", d.direct, tt.direct, d.on, err)
			}
		})
	}
}

// A file that is given up leaves no write to memory that another one will use.
func TestDirectAbandoned(t *testing.T) {
	d := &disk{FS: atomicfile.OrOS(nil), t: t}
	p, err := atomicfile.Create(d, filepath.Join(t.TempDir(), "file"), "")
	if err != nil {
		t.Fatal(err)
	}
	p.Direct()
	if _, err := p.Write(make([]byte, 2*atomicfile.DirectPiece)); err != nil || d.busy == nil {
		t.Fatalf("nothing is being written: %v", err)
	}
	if err := p.Close(); err != nil || d.busy != nil {
		t.Errorf("still being written: %t, %v", d.busy != nil, err)
	}
}

// disk is a file system of one file, in memory, that takes direct writes.
type disk struct {
	atomicfile.FS
	t                  *testing.T
	refuses            bool
	beginFails, failAt int   // the direct writes that fail, from 1
	taken              int   // what is written of the second
	err                error // of that
	endErr             error // of the end of direct writes

	bytes, busy   []byte
	on, ended     bool
	begun, direct int // writes and bytes
	sum           uint32
}

func (d *disk) Create(name string) (atomicfile.File, error) {
	f, err := d.FS.Create(name)
	return &diskFile{f, d}, err
}

type diskFile struct {
	atomicfile.File
	*disk
}

func (f *diskFile) Write(b []byte) (n int, err error) {
	if f.on || f.ended {
		f.t.Error("Write while writes are direct, or could not be ended")
	}
	f.bytes = append(f.bytes, b...)
	return len(b), nil
}

func (f *diskFile) Direct() atomicfile.DirectWriter {
	if f.refuses {
		return nil
	}
	f.on = true
	return f.disk
}

func (d *disk) Begin(b []byte, offset int64) error {
	address := uintptr(unsafe.Pointer(&b[0]))
	if d.busy != nil || address%4096 != 0 || len(b) != atomicfile.DirectPiece || offset != int64(len(d.bytes)) {
		d.t.Errorf("direct write of %d bytes at %d of %d, address %x", len(b), offset, len(d.bytes), address)
	}
	if d.begun++; d.begun == d.beginFails {
		return syscall.EAGAIN
	}
	d.busy, d.sum = b, crc32.ChecksumIEEE(b)
	return nil
}

func (d *disk) Wait() (n int, err error) {
	n = len(d.busy)
	if crc32.ChecksumIEEE(d.busy) != d.sum {
		d.t.Error("the bytes have changed while they were written")
	}
	if d.begun == d.failAt {
		n, err = d.taken, d.err
	}
	d.bytes, d.busy = append(d.bytes, d.busy[:n]...), nil
	d.direct += n
	return n, err
}

func (d *disk) End(size int64) error {
	d.on, d.busy, d.bytes, d.ended = false, nil, d.bytes[:size], d.endErr != nil
	return d.endErr
}

// The system's files have the same bytes, and no more, where the file system takes direct
// writes and where not.
func TestDirectOnDisk(t *testing.T) {
	dir := t.TempDir()
	for _, direct := range []bool{false, true} {
		name := filepath.Join(dir, "file")
		fsys := &watchedDisk{FS: atomicfile.OrOS(nil)}
		p, err := atomicfile.Create(fsys, name, "")
		if err != nil {
			t.Fatal(err)
		}
		if direct {
			p.Direct()
		}
		b, err := content(p, directSize)
		if err := errors.Join(err, p.Commit(), p.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes, error %v", len(got), err)
		}
		if want := 3; fsys.begun != want && fsys.on {
			t.Errorf("%d direct writes, want %d", fsys.begun, want)
		}
		t.Logf("direct writes: %d", fsys.begun)
	}
}

type watchedDisk struct {
	atomicfile.FS
	on    bool
	begun int
}

func (w *watchedDisk) Create(name string) (atomicfile.File, error) {
	f, err := w.FS.Create(name)
	if d, ok := f.(atomicfile.DirectFile); ok {
		return watchedFile{d, w}, err
	}
	return f, err
}

type watchedFile struct {
	atomicfile.DirectFile
	w *watchedDisk
}

func (f watchedFile) Direct() atomicfile.DirectWriter {
	d := f.DirectFile.Direct()
	if f.w.on = d != nil; f.w.on {
		return watchedWriter{d, f.w}
	}
	return nil
}

type watchedWriter struct {
	atomicfile.DirectWriter
	w *watchedDisk
}

func (f watchedWriter) Begin(b []byte, offset int64) error {
	f.w.begun++
	return f.DirectWriter.Begin(b, offset)
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

// A byte after what direct writes have taken is written, too.
func TestDirectRestOfOneByte(t *testing.T) {
	d := &disk{FS: atomicfile.OrOS(nil), t: t}
	p, err := atomicfile.Create(d, filepath.Join(t.TempDir(), "file"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Direct()
	if _, err := p.Write(make([]byte, 2*atomicfile.DirectPiece+1)); err != nil {
		t.Fatal(err)
	}
	if err := p.Sync(); err != nil || len(d.bytes) != 2*atomicfile.DirectPiece+1 || d.direct != atomicfile.DirectPiece {
		t.Errorf("%d bytes, %d directly, error %v", len(d.bytes), d.direct, err)
	}
}
