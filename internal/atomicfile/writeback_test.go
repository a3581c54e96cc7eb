package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
)

// The disk is set to work on each byte once, in pieces of a useful size, and only
// on what was written.
func TestEarlyWriteback(t *testing.T) {
	fsys := &watched{FS: OrOS(nil), t: t}
	p, err := Create(fsys, filepath.Join(t.TempDir(), "file"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	piece := make([]byte, 3<<20)
	for range 9 {
		if _, err := p.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if fsys.begun < 24<<20 {
		t.Errorf("only %d bytes of %d were begun", fsys.begun, fsys.written)
	}
}

// The system's files can do it; its success is the concern of the sync.
func TestSystemWriteback(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := OrOS(nil).Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	f.(writebacker).beginWriteback(0, 4)
	if b, err := os.ReadFile(name); string(b) != "text" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

type watched struct {
	FS
	t              *testing.T
	written, begun int64
}

func (w *watched) Create(name string) (File, error) {
	f, err := w.FS.Create(name)
	return watchedFile{f, w}, err
}

type watchedFile struct {
	File
	w *watched
}

func (f watchedFile) Write(b []byte) (int, error) {
	f.w.written += int64(len(b))
	return f.File.Write(b)
}

func (f watchedFile) beginWriteback(offset, size int64) {
	w := f.w
	if offset != w.begun || size < writebackPiece || offset+size > w.written {
		w.t.Errorf("begins with %d bytes at %d; %d were begun and %d written", size, offset, w.begun, w.written)
	}
	w.begun = offset + size
}
