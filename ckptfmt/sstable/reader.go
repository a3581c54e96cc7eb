package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/trainerd/trainerd/internal/crc32c"
)

// cacheLimit bounds the blocks that a Reader keeps for repeated calls of Get.
const cacheLimit = 8 << 20

// ReaderOptions are the choices of a [Reader].
type ReaderOptions struct {
	Name string // file name, for errors
}

// Entry is a pair of a table. Both slices are valid until the next step of the
// iterator that gave them.
type Entry struct {
	Key, Value []byte
}

// Reader reads a table. It keeps the index and a few blocks in memory, never
// the whole table. It is safe for concurrent use if its io.ReaderAt is.
type Reader struct {
	r     io.ReaderAt
	size  int64
	name  string
	index *block

	mu         sync.Mutex
	cache      map[handle]*block // for Get
	cacheBytes int
}

// NewReader opens the table of size bytes in r: it checks the footer and the
// index block. Damage is a [*CorruptError]. o may be nil.
func NewReader(r io.ReaderAt, size int64, o *ReaderOptions) (*Reader, error) {
	t := &Reader{r: r, size: size, cache: make(map[handle]*block)}
	if o != nil {
		t.name = o.Name
	}
	if size < footerSize {
		return nil, t.corrupt(0, "footer", ErrTooShort)
	}
	footer := make([]byte, footerSize)
	if err := t.readAt(footer, size-footerSize); err != nil {
		return nil, t.locate(err, size-footerSize, "footer")
	}
	if binary.LittleEndian.Uint64(footer[handlesSize:]) != magicNumber {
		return nil, t.corrupt(size-footerSize+handlesSize, "footer", ErrMagic)
	}
	_, rest, err := parseHandle(footer[:handlesSize])
	if err != nil {
		return nil, t.corrupt(size-footerSize, "footer", err)
	}
	h, _, err := parseHandle(rest)
	if err != nil {
		return nil, t.corrupt(size-footerSize, "footer", err)
	}
	t.index, err = t.readBlock(h, "index block")
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Get returns the value of key, or [ErrNotFound]. The caller owns it. Like
// TensorFlow it trusts the order of the keys; Check looks at that.
func (t *Reader) Get(key []byte) ([]byte, error) {
	it, err := t.find(key)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(it.value), nil
}

// find searches the entry of key, or returns [ErrNotFound].
func (t *Reader) find(key []byte) (*blockIter, error) {
	index := t.index.iter()
	ok, err := index.seek(key)
	search := func(it *blockIter) (bool, error) { return it.seek(key) }
	for ; ok && err == nil; ok, err = index.step() {
		b, err := t.cachedBlock(index.value)
		if err != nil {
			return nil, err
		}
		it := b.iter()
		found, err := search(&it)
		if err != nil {
			return nil, err
		}
		if found && bytes.Equal(it.key, key) {
			return &it, nil
		}
		if found {
			break
		}
		// At the end of its block a key may be the first of the next: the index
		// may have it for both.
		search = (*blockIter).step
	}
	if err != nil {
		return nil, err
	}
	return nil, ErrNotFound
}

// All returns all entries in the order of the file, which is the order of their keys. The iterator
// may be used many times.
//
// An error with an entry concerns only that entry, which no search finds because keys are out of
// order or a key occurs twice. An error without an entry, whose key is nil, ends the iteration.
func (t *Reader) All() iter.Seq2[Entry, error] { return t.From(nil) }

// From returns the entries that All does, starting with the first whose key is
// not less than key.
func (t *Reader) From(key []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		c := t.cursor()
		ok, err := c.seek(key)
		for ; ok && err == nil; ok, err = c.step() {
			if !yield(Entry{c.data.key, c.data.value}, c.hidden()) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

// cachedBlock returns the block that an index entry names.
func (t *Reader) cachedBlock(value []byte) (*block, error) {
	h, _, err := parseHandle(value)
	if err != nil {
		return nil, t.corrupt(int64(t.index.handle.offset), "index block", err)
	}
	t.mu.Lock()
	b := t.cache[h]
	t.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b, err = t.readBlock(h, "data block")
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Callers mostly go through the keys in order, so forgetting everything
	// at once costs no more than choosing.
	size := len(b.entries) + len(b.restarts)
	if t.cacheBytes+size > cacheLimit {
		clear(t.cache)
		t.cacheBytes = 0
	}
	t.cache[h] = b
	t.cacheBytes += size
	return b, nil
}

// readBlock reads, checks and unpacks a block.
func (t *Reader) readBlock(h handle, part string) (*block, error) {
	if h.offset > uint64(t.size) || h.size > uint64(t.size)-h.offset || uint64(t.size)-h.offset-h.size < trailerSize {
		err := fmt.Errorf("block of %d bytes at %d runs past the file's %d bytes", h.size, h.offset, t.size)
		return nil, t.corrupt(int64(min(h.offset, math.MaxInt64)), part, err)
	}
	at := int64(h.offset)
	buf := make([]byte, h.size+trailerSize)
	if err := t.readAt(buf, at); err != nil {
		return nil, t.locate(err, at, part)
	}
	stored := binary.LittleEndian.Uint32(buf[h.size+1:])
	if got := crc32c.Masked(buf[:h.size+1]); got != stored {
		return nil, t.corrupt(at, part, fmt.Errorf("block %w: stored %#08x, computed %#08x", ErrChecksum, stored, got))
	}
	content, err := unpack(buf[:h.size], buf[h.size])
	if err != nil {
		return nil, t.corrupt(at, part, err)
	}
	b, err := parseBlock(content)
	if err != nil {
		return nil, t.corrupt(at, part, err)
	}
	b.name, b.handle, b.compressed = t.name, h, buf[h.size] != compressionNone
	return b, nil
}

func unpack(b []byte, kind byte) ([]byte, error) {
	switch kind {
	case compressionNone:
		return b, nil
	case compressionSnappy:
		n, err := snappy.DecodedLen(b)
		if err == nil && n/maxSnappyRatio > len(b) {
			err = fmt.Errorf("%d compressed bytes cannot hold %d", len(b), n)
		}
		if err == nil {
			b, err = snappy.Decode(nil, b)
		}
		if err != nil {
			return nil, fmt.Errorf("corrupted compressed block contents: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf("bad block type %d", kind)
}

// readAt fills b. Inside a table the end of the file is unexpected.
func (t *Reader) readAt(b []byte, off int64) error {
	n, err := t.r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// locate turns the early end of a file that became shorter into damage, and leaves other errors
// unchanged.
func (t *Reader) locate(err error, off int64, part string) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return t.corrupt(off, part, err)
	}
	return fmt.Errorf("reading %s at %d: %w", part, off, err)
}

func (t *Reader) corrupt(off int64, part string, err error) error {
	return &CorruptError{Name: t.name, Offset: off, Part: part, Err: err}
}
