package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/trainerd/trainerd/internal/crc32c"
)

// WriterOptions are the choices of a [Writer]. The zero value writes what
// TensorFlow writes.
type WriterOptions struct {
	BlockSize       int  // a block this large is closed; 0 means 262144
	RestartInterval int  // entries from one whole key to the next; 0 means 16
	Snappy          bool // compress blocks that shrink by an eighth or more
}

// Writer writes a table. It holds one block at a time and is not safe for
// concurrent use. After an error, all later calls return it.
type Writer struct {
	w         io.Writer
	blockSize int
	snappy    bool

	offset  uint64
	data    blockBuilder
	index   blockBuilder
	lastKey []byte
	entries int64
	// pending is the handle of a finished block whose index entry waits for
	// the first key of the next block, which makes a shorter separator.
	pending *handle

	scratch []byte // compressed block
	err     error
}

var errFinished = errors.New("sstable: writer is finished")

// NewWriter returns a writer of one table to w. o may be nil.
func NewWriter(w io.Writer, o *WriterOptions) *Writer {
	if o == nil {
		o = &WriterOptions{}
	}
	t := &Writer{w: w, blockSize: o.BlockSize, snappy: o.Snappy}
	if t.blockSize <= 0 {
		t.blockSize = defaultBlockSize
	}
	interval := o.RestartInterval
	if interval <= 0 {
		interval = defaultRestartInterval
	}
	t.data = newBlockBuilder(interval)
	t.index = newBlockBuilder(indexRestartInterval)
	return t
}

// Add appends a pair. Keys must be strictly increasing, as bytes compare. The
// slices may be changed after the call.
func (t *Writer) Add(key, value []byte) error {
	if t.err != nil {
		return t.err
	}
	if t.entries > 0 && bytes.Compare(key, t.lastKey) <= 0 {
		return t.fail(fmt.Errorf("sstable: adding key %q after %q: %w", key, t.lastKey, ErrOrder))
	}
	// TensorFlow gives a huge entry its own block.
	if t.entries > 0 && len(key)+len(value) >= 2*t.blockSize {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if t.pending != nil {
		t.addIndex(separator(t.lastKey, key))
	}
	t.lastKey = append(t.lastKey[:0], key...)
	t.entries++
	t.data.add(key, value)
	if t.data.size() >= t.blockSize {
		return t.flush()
	}
	return nil
}

// Finish writes the last block, the index and the footer. It does not close
// the underlying writer.
func (t *Writer) Finish() error {
	if err := t.flush(); err != nil {
		return err
	}
	meta := newBlockBuilder(indexRestartInterval)
	metaHandle, err := t.writeBlock(meta.finish())
	if err != nil {
		return err
	}
	if t.pending != nil {
		t.addIndex(successor(t.lastKey))
	}
	indexHandle, err := t.writeBlock(t.index.finish())
	if err != nil {
		return err
	}
	footer := indexHandle.append(metaHandle.append(nil))
	footer = append(footer, make([]byte, handlesSize-len(footer))...)
	footer = binary.LittleEndian.AppendUint64(footer, magicNumber)
	if err := t.write(footer); err != nil {
		return err
	}
	t.err = errFinished
	return nil
}

// flush closes the current data block, if it has an entry.
func (t *Writer) flush() error {
	if t.err != nil || t.data.empty() {
		return t.err
	}
	h, err := t.writeBlock(t.data.finish())
	if err != nil {
		return err
	}
	t.data.reset()
	t.pending = &h
	return nil
}

func (t *Writer) addIndex(key []byte) {
	t.index.add(key, t.pending.append(nil))
	t.pending = nil
}

func (t *Writer) writeBlock(block []byte) (handle, error) {
	kind := byte(compressionNone)
	if t.snappy {
		t.scratch = snappy.Encode(t.scratch[:cap(t.scratch)], block)
		if len(t.scratch) < len(block)-len(block)/8 {
			block, kind = t.scratch, compressionSnappy
		}
	}
	h := handle{t.offset, uint64(len(block))}
	crc := crc32c.Extend(crc32c.Value(block), []byte{kind})
	trailer := binary.LittleEndian.AppendUint32([]byte{kind}, crc32c.Mask(crc))
	if err := t.write(block); err != nil {
		return handle{}, err
	}
	return h, t.write(trailer)
}

func (t *Writer) write(b []byte) error {
	if t.err != nil {
		return t.err
	}
	n, err := t.w.Write(b)
	t.offset += uint64(n)
	return t.fail(err)
}

func (t *Writer) fail(err error) error {
	t.err = err
	return err
}

// blockBuilder collects the entries of one block.
type blockBuilder struct {
	interval int
	buf      []byte
	restarts []uint32
	sinceKey int // entries since the last whole key
	lastKey  []byte
}

func newBlockBuilder(interval int) blockBuilder {
	return blockBuilder{interval: interval, restarts: []uint32{0}}
}

func (b *blockBuilder) empty() bool { return len(b.buf) == 0 }

// size is the block's size if it were finished now.
func (b *blockBuilder) size() int { return len(b.buf) + restartSize*(len(b.restarts)+1) }

func (b *blockBuilder) add(key, value []byte) {
	shared := 0
	if b.sinceKey < b.interval {
		shared = commonPrefix(b.lastKey, key)
	} else {
		b.restarts = append(b.restarts, uint32(len(b.buf)))
		b.sinceKey = 0
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)-shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(value)))
	b.buf = append(b.buf, key[shared:]...)
	b.buf = append(b.buf, value...)
	b.lastKey = append(b.lastKey[:shared], key[shared:]...)
	b.sinceKey++
}

// finish returns the block's bytes, valid until the next call.
func (b *blockBuilder) finish() []byte {
	for _, r := range b.restarts {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, r)
	}
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(len(b.restarts)))
	return b.buf
}

func (b *blockBuilder) reset() {
	b.buf, b.restarts, b.lastKey = b.buf[:0], b.restarts[:1], b.lastKey[:0]
	b.sinceKey = 0
}
