package npy

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Elements gives the elements of an array as they are read: numbers row-major
// and little-endian. It holds an array in Fortran order whole, and nothing of
// any other.
//
// An Elements is not safe for concurrent use.
type Elements struct {
	DType tfpb.DataType // DT_STRING: the elements come from Strings, not Read
	Shape []int64

	header *header
	from   io.Reader
	offset int64 // of the next byte in the file
	left   int64 // bytes of elements
	whole  *bytes.Reader
}

// Open reads the header of the array in the size bytes that r gives. like
// says the type of elements that NumPy writes as raw bytes (V1: what it has
// no name for, and of any width strings, which then keep zeros at their ends);
// DT_INVALID when it is not known.
func Open(r io.Reader, size int64, like tfpb.DataType) (*Elements, error) {
	text, start, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	h, bad := parseHeader(text)
	if bad != nil {
		bad.Offset += start - int64(len(text))
		return nil, bad
	}
	switch {
	case h.raw && like == tfpb.DataType_DT_STRING:
		h.kind = kind{like, h.kind.size, 1}
	case h.kind.dtype == tfpb.DataType_DT_INVALID:
		if h.kind.dtype = like; like == tfpb.DataType_DT_INVALID || h.kind.size != 1 {
			return nil, &Error{
				Offset: start, Unsupported: true, Type: fmt.Sprintf("V%d", h.kind.size),
				Reason: fmt.Sprintf("the elements are raw bytes (%s) of an unspecified type", h.descr),
			}
		}
	}
	n, ok := product(h.shape, int64(h.kind.size))
	if !ok {
		return nil, &Error{Offset: start, Reason: fmt.Sprintf("the shape %v is larger than any file", h.shape)}
	}
	if n != size-start {
		return nil, &Error{Offset: start, Reason: fmt.Sprintf("an array of shape %v and %s takes %d bytes, but %d follow", h.shape, h.descr, n, size-start)}
	}
	return &Elements{DType: h.kind.dtype, Shape: h.shape, header: h, from: r, offset: start, left: n}, nil
}

// Whole reports whether reading numbers takes as much memory as the array has, because
// it is in Fortran order.
func (e *Elements) Whole() bool {
	return e.header.fortran && len(e.Shape) > 1 && e.DType != tfpb.DataType_DT_STRING
}

// Read gives bytes of elements. The bytes of one number come together when b
// has room for them.
func (e *Elements) Read(b []byte) (int, error) {
	if e.Whole() {
		if err := e.turn(); err != nil {
			return 0, err
		}
		return e.whole.Read(b)
	}
	return e.next(b)
}

// next reads bytes in the order of the file.
func (e *Elements) next(b []byte) (int, error) {
	if e.left == 0 {
		return 0, e.atEnd()
	}
	unit := e.header.kind.unit
	if len(b) < unit {
		return 0, io.ErrShortBuffer
	}
	b = b[:min(int64(len(b)/unit*unit), e.left)]
	n, err := io.ReadFull(e.from, b)
	if err != nil {
		return 0, &Error{Offset: e.offset + int64(n), Reason: "the file ends within the elements: " + err.Error(), err: err}
	}
	if e.DType == tfpb.DataType_DT_BOOL {
		if i := slices.IndexFunc(b, func(c byte) bool { return c > 1 }); i >= 0 {
			return 0, &Error{Offset: e.offset + int64(i), Reason: fmt.Sprintf("the byte %#02x is not a bool", b[i])}
		}
	}
	e.offset += int64(n)
	e.left -= int64(n)
	if e.header.bigEndian {
		swap(b, unit)
	}
	return n, nil
}

// atEnd insists that nothing follows; what is below r checks its checksum
// there.
func (e *Elements) atEnd() error {
	var b [1]byte
	switch n, err := io.ReadFull(e.from, b[:]); {
	case n > 0:
		return &Error{Offset: e.offset, Reason: "there are bytes after the elements"}
	case err != io.EOF:
		return &Error{Offset: e.offset, Reason: err.Error(), err: err}
	}
	return io.EOF
}

// turn reads the whole array and puts it into row-major order.
func (e *Elements) turn() error {
	if e.whole != nil {
		return nil
	}
	data, err := e.all()
	if err != nil {
		return err
	}
	e.whole = bytes.NewReader(rowMajor(data, e.Shape, e.header.kind.size))
	return nil
}

// all reads what is left, in the order of the file. Memory grows with what is
// there.
func (e *Elements) all() ([]byte, error) {
	const step = 1 << 20
	data := []byte{}
	for {
		data = slices.Grow(data, int(min(e.left, max(step, int64(len(data))))))
		n, err := e.next(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
