// Package bigendian converts big-endian numbers to little-endian ones.
package bigendian

import (
	"encoding/binary"
	"io"
)

// Swap turns round each of the numbers of 2, 4 or 8 bytes in b. Those of a byte stay as they
// are, and so does what is less than a number at the end.
func Swap(b []byte, size int) {
	switch size {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			binary.LittleEndian.PutUint16(b, binary.BigEndian.Uint16(b))
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			binary.LittleEndian.PutUint32(b, binary.BigEndian.Uint32(b))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			binary.LittleEndian.PutUint64(b, binary.BigEndian.Uint64(b))
		}
	}
}

// Reader turns round the numbers of another reader. A part of one at the end is
// [io.ErrUnexpectedEOF].
type Reader struct {
	from  io.Reader
	size  int
	buf   []byte
	ready []byte // of buf, turned round, not yet read
}

const bufferSize = 64 << 10 // a whole number of numbers of any size

// NewReader returns a Reader of numbers of 1, 2, 4 or 8 bytes.
func NewReader(from io.Reader, size int) *Reader { return &Reader{from: from, size: size} }

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	if len(r.ready) == 0 {
		if r.buf == nil {
			r.buf = make([]byte, bufferSize)
		}
		n, err := io.ReadFull(r.from, r.buf)
		if n == 0 || n%r.size != 0 || err != nil && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		r.ready = r.buf[:n]
		Swap(r.ready, r.size)
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}
