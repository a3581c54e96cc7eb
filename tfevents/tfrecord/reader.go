package tfrecord

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// DefaultMaxSize is the largest record that readers accept by default.
const DefaultMaxSize = 1 << 30

const readBufferSize = 128 << 10

// Reader reads a TFRecord stream. It is not safe for concurrent use.
// The exported fields may be set before the first Next.
type Reader struct {
	Name        string // file name for errors
	MaxSize     int64  // largest record accepted; 0 means DefaultMaxSize
	SkipDataCRC bool   // accept data whatever its checksum says
	Resync      bool   // after a damaged length, search for the next intact record
	Buffer      int    // bytes read at first; 0 means 128 KiB

	r      io.Reader
	buf    []byte // buf[pos:end] is read but not handed out
	pos    int
	end    int
	offset int64 // of buf[pos] in the stream
	size   int64 // of the stream, at least; 0 if nothing is known
	err    error // permanent: nothing can follow

	shared *[readBufferSize]byte // what buf began as, if it is to be given back
}

// buffers keeps the buffers that readers have given back: an index of many short files would
// otherwise allocate one for each.
var buffers = sync.Pool{New: func() any { return new([readBufferSize]byte) }}

// NewReader returns a Reader that reads from r. It reads ahead.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// StartAt tells a reader that has read nothing yet at which offset of a file its
// stream begins, and how long the file is, 0 if unknown, so that it allocates no
// more memory than needed.
func (r *Reader) StartAt(offset, size int64) {
	r.offset, r.size = offset, size
	switch {
	case size <= 0:
	case r.Buffer > 0:
		r.buf = make([]byte, max(HeaderSize, min(size-offset, int64(r.Buffer))))
	default:
		r.shared = buffers.Get().(*[readBufferSize]byte)
		r.buf = r.shared[:]
	}
}

// Release frees the memory of a reader that is no longer needed. Data returned by Next
// is no longer valid, and Next fails with [ErrClosed].
func (r *Reader) Release() {
	if r.shared != nil {
		buffers.Put(r.shared)
	}
	r.shared, r.buf, r.pos, r.end = nil, nil, 0, 0
	r.err = ErrClosed
}

func (r *Reader) buffer() int {
	if r.Buffer > 0 {
		return r.Buffer
	}
	return readBufferSize
}

// Next returns the data of the next record, valid until the next call.
//
// At the end of the stream it returns io.EOF if the last record was complete.
// If the stream ends within a record it returns a *[CorruptError] with Err
// io.ErrUnexpectedEOF. After either, Next may be called again when the stream
// has grown: it continues where it stopped. Damage is a *CorruptError too; see
// there for whether reading can continue. Errors of the underlying reader are
// returned unchanged, and Next may be called again after them too.
func (r *Reader) Next() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	if err := r.fill(HeaderSize); err != nil {
		return nil, r.shortRead(err, PartLength)
	}
	n, err := r.length()
	if err != nil {
		return nil, r.damagedLength(err)
	}
	if err := r.fill(FrameSize + n); err != nil {
		return nil, r.shortRead(err, PartData)
	}
	record := r.buf[r.pos : r.pos+FrameSize+n]
	data, sum := record[HeaderSize:HeaderSize+n:HeaderSize+n], record[HeaderSize+n:]
	if !r.SkipDataCRC && crc32c.Masked(data) != binary.LittleEndian.Uint32(sum) {
		damage := r.corrupt(PartData, ErrChecksum)
		damage.Lost = int64(len(record))
		r.skip(len(record))
		return nil, damage
	}
	r.skip(len(record))
	return data, nil
}

// Offset returns the offset of the next record: the end of the last one that
// was returned or skipped.
func (r *Reader) Offset() int64 { return r.offset }

// length checks and returns the length of the record at the front of the buffer.
func (r *Reader) length() (int, error) {
	header := r.buf[r.pos : r.pos+HeaderSize]
	n := binary.LittleEndian.Uint64(header)
	if lengthCRC(n, header[:lengthSize]) != binary.LittleEndian.Uint32(header[lengthSize:]) {
		return 0, ErrChecksum
	}
	if n > uint64(r.limit()) {
		return 0, fmt.Errorf("%w of %d bytes", ErrTooLarge, r.limit())
	}
	return int(n), nil
}

func (r *Reader) limit() int64 {
	if r.MaxSize > 0 {
		return min(r.MaxSize, math.MaxInt-FrameSize)
	}
	return DefaultMaxSize
}

func (r *Reader) skip(n int) {
	r.pos += n
	r.offset += int64(n)
}

func (r *Reader) corrupt(part string, err error) *CorruptError {
	return &CorruptError{Name: r.Name, Offset: r.offset, Part: part, Err: err}
}

// damagedLength returns the error for the record at the front of the buffer,
// whose end is unknown.
func (r *Reader) damagedLength(err error) error {
	damage := r.corrupt(PartLength, err)
	if !r.Resync {
		r.err = damage
		return damage
	}
	if err := r.resync(); err != nil && err != io.EOF {
		return err
	}
	damage.Lost = r.offset - damage.Offset
	return damage
}

// resync moves to the beginning of the next record after the front of the buffer, or to the end.
// The checksums of length and data must both be right, because in a large file one alone matches by
// chance. Only for a record that the end of the stream cuts off, the checksum of the length is
// enough.
func (r *Reader) resync() error {
	for {
		r.skip(1)
		if err := r.fill(HeaderSize); err != nil {
			if err == io.EOF {
				r.skip(r.end - r.pos)
			}
			return err
		}
		if hopeless := beforeHeader(r.buf[r.pos:r.end], uint64(r.limit())); hopeless > 0 {
			if r.end-r.pos-hopeless < HeaderSize && zeros(r.buf[r.pos:r.end]) == r.end-r.pos && r.skipHole() {
				continue
			}
			r.skip(hopeless - 1) // the next round skips one more
			continue
		}
		n, err := r.length()
		if err != nil {
			continue
		}
		if err := r.fill(FrameSize + n); err != nil {
			return err
		}
		data := r.buf[r.pos+HeaderSize:][:n:n]
		sum := r.buf[r.pos+HeaderSize+n:]
		if crc32c.Masked(data) == binary.LittleEndian.Uint32(sum) {
			return nil
		}
	}
}

// beforeHeader returns how many bytes at the front of b cannot begin a header, because its length
// would exceed the limit, or because all of it would be zeros, whose checksum is not zero. It
// judges only offsets whose whole header is in b.
func beforeHeader(b []byte, limit uint64) int {
	i := 0
	for i+HeaderSize <= len(b) {
		n := binary.LittleEndian.Uint64(b[i:])
		switch {
		case n > limit:
			i++
		case n == 0 && binary.LittleEndian.Uint32(b[i+lengthSize:]) == 0:
			// Only a header that reaches beyond the zeros can be one.
			i += max(1, zeros(b[i:])-HeaderSize+1)
		default:
			return i
		}
	}
	return i
}

// zeros returns how many zeros b begins with.
func zeros(b []byte) int {
	i := 0
	for i+8 <= len(b) && binary.LittleEndian.Uint64(b[i:]) == 0 {
		i += 8
	}
	for i < len(b) && b[i] == 0 {
		i++
	}
	return i
}

// shortRead turns the error of fill into that of Next.
func (r *Reader) shortRead(err error, part string) error {
	torn := err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
	if !torn || r.end == r.pos {
		return err
	}
	return r.corrupt(part, io.ErrUnexpectedEOF)
}

// fill reads until n bytes are in the buffer. What it has read stays there if it fails.
func (r *Reader) fill(n int) error {
	for empty := 0; r.end-r.pos < n; {
		r.makeRoom(n)
		m, err := r.r.Read(r.buf[r.end:])
		if m < 0 || m > len(r.buf)-r.end {
			return errors.New("tfrecord: reader returned an impossible count")
		}
		r.end += m
		if r.end-r.pos >= n {
			return nil
		}
		if err != nil {
			return err
		}
		if m > 0 {
			empty = 0
		} else if empty++; empty == 100 {
			return io.ErrNoProgress
		}
	}
	return nil
}

// makeRoom makes room in the buffer to read at least one byte, on the way to n.
func (r *Reader) makeRoom(n int) {
	have := r.end - r.pos
	if r.pos > 0 && (have == 0 || len(r.buf)-r.pos < n) {
		copy(r.buf, r.buf[r.pos:r.end])
		r.pos, r.end = 0, have
	}
	if r.end < len(r.buf) {
		return
	}
	// A length that no data follows costs no more than twice the data that exists. Smaller steps
	// would save little: all buffers together would be larger.
	size := max(r.buffer(), min(n, have+max(have, readBufferSize)))
	if r.offset+int64(n) <= r.size {
		size = max(r.buffer(), n) // which is really there
	}
	grown := make([]byte, size)
	copy(grown, r.buf[:r.end])
	r.buf = grown
}
