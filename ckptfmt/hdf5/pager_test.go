package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPager reads parts of a file that is longer than all pages together, in the order of the file and
// in others, up to the ends of pages and over them.
func TestPager(t *testing.T) {
	const size = 9*pageSize + 77
	file := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range file {
		file[i] = byte(rng.Uint32())
	}
	for _, alone := range []bool{false, true} {
		p := &pager{from: bytes.NewReader(file), size: size, alone: alone}
		read := func(at int64, n int) {
			t.Helper()
			b := make([]byte, n)
			if err := p.read(b, at); err != nil || !bytes.Equal(b, file[at:][:n]) {
				t.Fatalf("%d bytes at %d: %v, or others", n, at, err)
			}
		}
		for at := int64(leastPage); at < size; at += leastPage {
			read(at-1, 2)
			read(at-3, 4)
			read(at-1, 1)
			read(at, 1)
		}
		for range 2000 {
			at := rng.Int64N(size)
			read(at, int(rng.Int64N(min(size-at, 9000)+1)))
		}
		read(0, size)
		read(size-1, 1)
		for at := int64(0); at < size; at += 1000 {
			b := p.window(at)
			if !alone {
				if b != nil {
					t.Fatal("a window on pages that others change")
				}
				continue
			}
			if len(b) == 0 || !bytes.Equal(b, file[at:][:len(b)]) {
				t.Fatalf("%d bytes from %d on are others", len(b), at)
			}
		}
	}
}

// TestPagerOfDamagedFiles has a file that is shorter than it was, and one that cannot be read.
func TestPagerOfDamagedFiles(t *testing.T) {
	broken := errors.New("broken")
	for _, alone := range []bool{false, true} {
		for want, from := range map[error]io.ReaderAt{io.ErrUnexpectedEOF: bytes.NewReader(make([]byte, 50)), broken: brokenAt{broken}} {
			p := &pager{from: from, size: 100, alone: alone}
			for range 2 { // what was read in vain is not kept
				if err := p.read(make([]byte, 10), 45); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if b := p.window(45); b != nil {
					t.Errorf("a window of %d bytes", len(b))
				}
			}
		}
	}
}

// brokenAt is a file that cannot be read.
type brokenAt struct{ err error }

func (b brokenAt) ReadAt([]byte, int64) (int, error) { return 0, b.err }

// failsOnce is a file whose first read of one page fails after it has changed the memory.
type failsOnce struct {
	io.ReaderAt
	at   int64
	done bool
}

func (f *failsOnce) ReadAt(b []byte, at int64) (int, error) {
	if at != f.at || f.done {
		return f.ReaderAt.ReadAt(b, at)
	}
	f.done = true
	for i := range b {
		b[i] = 0xee
	}
	return 0, errors.New("broken")
}

// TestPageAfterAFailedRead reads a page again whose memory a read that failed has taken.
func TestPageAfterAFailedRead(t *testing.T) {
	const apart = 4 * pageSize // so that all pages are small
	n := int64(len(pager{}.pages))
	file := bytes.Repeat([]byte{7}, int(apart*(n+1)))
	p := &pager{from: &failsOnce{ReaderAt: bytes.NewReader(file), at: apart * n}, size: int64(len(file))}
	for i := range n {
		if err := p.read(make([]byte, 1), apart*i); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.read(make([]byte, 1), apart*n); err == nil {
		t.Fatal("no error")
	}
	for i := range n + 1 {
		b := make([]byte, 2)
		if err := p.read(b, apart*i); err != nil || b[0] != 7 || b[1] != 7 {
			t.Errorf("page %d has %x, %v", i, b, err)
		}
	}
}

// TestOpenedFile reads a file that was mapped while it was opened, and is not any more, until it is closed.
func TestOpenedFile(t *testing.T) {
	var names []string
	for i := range 8000 {
		names = append(names, fmt.Sprintf("top/w%05d", i))
	}
	b := written(t, names, Attrs{"top": {"name": "of all"}})
	name := filepath.Join(t.TempDir(), "f.h5")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Attr("top", "name"); err != nil || !slices.Equal(got, []string{"of all"}) {
		t.Errorf("the attribute is %q, %v", got, err)
	}
	p := r.Part(77)
	if got, err := p.Load(); err != nil || string(got.Data) != "\x4d" {
		t.Errorf("the elements are %v, %v", got, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Load(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the file was closed: %v", err)
	}
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
	if r, err = NewReader(bytes.NewReader(b), int64(len(b)), "f.h5"); err != nil || r.Close() != nil {
		t.Errorf("without a file of its own: %v", err)
	}
}

// TestChecksOfSomeDatasets has one dataset with checksums, and others without.
func TestChecksOfSomeDatasets(t *testing.T) {
	chunks := body{msgLayout, inChunks(1, 1)}
	summed := header1Of(usualSpace, usualType, chunks, pipeline(filterFletcher))
	for want, blocks := range map[string][][]byte{
		"structure and sizes, and Fletcher-32 of 1 of the 3 datasets":         {summed, header1Of(usualSpace, usualType, chunks), header1Of(usualSpace, usualType, oneAt(7))},
		"structure, and Fletcher-32 of every chunk":                           {summed, summed},
		"structure and sizes only: the file has no checksums of its elements": {header1Of(usualSpace, usualType, oneAt(7))},
	} {
		b := inGroup(blocks...)
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Checks(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
