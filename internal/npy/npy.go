// Package npy reads arrays of numbers or strings from NumPy's files of one array, and
// writes the headers of such files.
//
// # Format
//
//	offset  bytes   what
//	0       6       93 4E 55 4D 50 59, that is "\x93NUMPY"
//	6       1       version: 1, 2 or 3
//	7       1       0
//	8       2 or 4  length H of the header, little-endian; 2 bytes in version 1
//	10, 12  H       header: a Python dict in text, Latin-1 (version 3: UTF-8),
//	                filled up with blanks and ended by a newline
//	                  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//	10+H…           the elements, to the end of the file
//
// descr is the byte order (< little, > big, | for single bytes), the kind and
// the bytes of an element. What a tensor of numbers can hold is read:
//
//	b1  i1 i2 i4 i8  u1 u2 u4 u8  f2 f4 f8  c8 c16
//
// and, of the package ml_dtypes, V2 for bfloat16 and f1 for float8_e5m2. V1 may
// be any type of one byte that NumPy has no name for. Strings, S and U, are
// read as bytes and as UTF-8. Dates, records, long doubles and pickled objects
// are refused. The elements of an array in Fortran order are put into
// row-major order.
//
// Nothing in a file is believed before it is checked: the elements must fill
// the file exactly, so the memory taken is bounded by the file's size.
package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Array is an array as a tensor has it: row-major, numbers little-endian.
type Array struct {
	DType   tfpb.DataType
	Shape   []int64
	Data    []byte   // of numbers
	Strings [][]byte // of DT_STRING
}

// Error says what is wrong with a file, and where.
type Error struct {
	Name   string // file, "" for a bare reader
	Offset int64
	Reason string
	// Unsupported says that the file may be intact: its elements are not numbers, or of
	// a type that a tensor cannot have.
	Unsupported bool
	Type        string // the name of that type, as NumPy prints it
	err         error  // of the reader below
}

func (e *Error) Unwrap() error { return e.err }

func (e *Error) Error() string {
	where := fmt.Sprintf("offset %d: %s", e.Offset, e.Reason)
	if e.Name == "" {
		return where
	}
	return e.Name + ": " + where
}

const (
	magic = "\x93NUMPY"
	// maxHeader bounds the header. NumPy's own reader stops at 10,000 bytes.
	maxHeader = 1 << 16
	// maxRank is the largest number of dimensions that NumPy has.
	maxRank = 64
)

// ReadFile reads the array in a file.
func ReadFile(name string) (*Array, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Name: name, Reason: "not a regular file"}
	}
	a, err := Read(f, info.Size())
	if e, ok := err.(*Error); ok {
		e.Name = name
	}
	return a, err
}

// Read reads the array in the size bytes that r gives.
func Read(r io.Reader, size int64) (*Array, error) {
	e, err := Open(r, size, tfpb.DataType_DT_INVALID)
	if err != nil {
		return nil, err
	}
	if e.DType == tfpb.DataType_DT_STRING {
		list, err := e.Strings()
		return &Array{DType: e.DType, Shape: e.Shape, Strings: list}, err
	}
	data, err := e.all()
	if err != nil {
		return nil, err
	}
	if e.header.fortran {
		data = rowMajor(data, e.Shape, e.header.kind.size)
	}
	return &Array{DType: e.DType, Shape: e.Shape, Data: data}, nil
}

// readHeader returns the header's text, and the offset of the first element.
func readHeader(r io.Reader, size int64) (text []byte, start int64, err error) {
	var b [12]byte
	if _, err := io.ReadFull(r, b[:10]); err != nil || string(b[:6]) != magic {
		return nil, 0, &Error{Reason: "not a NumPy file of one array; write it with numpy.save"}
	}
	major, minor := b[6], b[7]
	start = 10
	length := int64(binary.LittleEndian.Uint16(b[8:]))
	switch {
	case major < 1 || major > 3 || minor != 0:
		return nil, 0, &Error{Offset: 6, Reason: fmt.Sprintf("version %d.%d of the format is not known; 1.0, 2.0 and 3.0 are", major, minor)}
	case major > 1:
		if _, err := io.ReadFull(r, b[10:]); err != nil {
			return nil, 0, &Error{Offset: 10, Reason: "the file ends within the header's length"}
		}
		start = 12
		length = int64(binary.LittleEndian.Uint32(b[8:]))
	}
	if length > maxHeader {
		return nil, 0, &Error{Offset: 8, Reason: fmt.Sprintf("a header of %d bytes is longer than any array of numbers needs", length)}
	}
	if length > size-start {
		return nil, 0, &Error{Offset: start, Reason: fmt.Sprintf("the file ends within the header of %d bytes", length)}
	}
	text = make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, 0, &Error{Offset: start, Reason: "the file ends within the header"}
	}
	return text, start + length, nil
}

// product returns the bytes of an array; false when an int64 cannot count them.
func product(shape []int64, size int64) (int64, bool) {
	if slices.Contains(shape, 0) {
		return 0, true
	}
	n := size
	for _, d := range shape {
		if n > math.MaxInt64/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// swap turns the bytes of each number around.
func swap(data []byte, size int) {
	for ; len(data) >= size; data = data[size:] {
		slices.Reverse(data[:size])
	}
}

// rowMajor returns the elements of an array in Fortran order, where the first
// dimension runs fastest, in the order where the last one does.
func rowMajor(data []byte, shape []int64, size int) []byte {
	if len(shape) < 2 || len(data) == 0 {
		return data
	}
	stride := make([]int, len(shape)) // in bytes of data
	for i, s := 0, size; i < len(shape); i++ {
		stride[i] = s
		s *= int(shape[i])
	}
	out := make([]byte, 0, len(data))
	index := make([]int64, len(shape))
	for at := 0; len(out) < len(data); {
		out = append(out, data[at:at+size]...)
		for i := len(shape) - 1; i >= 0; i-- {
			index[i]++
			at += stride[i]
			if index[i] < shape[i] {
				break
			}
			at -= stride[i] * int(shape[i])
			index[i] = 0
		}
	}
	return out
}
