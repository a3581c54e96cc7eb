package tfrecord

import (
	"encoding/binary"
	"io"

	"github.com/trainerd/trainerd/internal/crc32c"
)

// Wire format: the sizes of the parts of a record other than its data.
const (
	lengthSize = 8
	FooterSize = 4                       // the checksum of the data
	HeaderSize = lengthSize + FooterSize // the length and its checksum
	FrameSize  = HeaderSize + FooterSize
)

// Append appends data to b as one record.
func Append(b, data []byte) []byte {
	start := len(b)
	b = End(append(Begin(b), data...), start)
	Sum(b[start:])
	return b
}

// Begin appends space for a header to b; the caller then appends the data.
func Begin(b []byte) []byte {
	var header [HeaderSize]byte
	return append(b, header[:]...)
}

// End completes the record that begins at b[start], except for its checksums,
// which [Sum] fills in.
func End(b []byte, start int) []byte {
	binary.LittleEndian.PutUint64(b[start:], uint64(len(b)-start-HeaderSize))
	return append(b, 0, 0, 0, 0)
}

// Sum fills in the checksums of the records in b, which [End] has completed.
func Sum(b []byte) {
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		end := HeaderSize + int(n)
		putLengthCRC(b, n)
		binary.LittleEndian.PutUint32(b[end:], crc32c.Masked(b[HeaderSize:end]))
		b = b[end+FooterSize:]
	}
}

func putHeader(b []byte, n int) {
	binary.LittleEndian.PutUint64(b, uint64(n))
	putLengthCRC(b, uint64(n))
}

// putLengthCRC puts the checksum of n, which b begins with, after it.
func putLengthCRC(b []byte, n uint64) {
	binary.LittleEndian.PutUint32(b[lengthSize:], lengthCRC(n, b[:lengthSize]))
}

// lengthCRC returns the checksum of n, which b holds encoded.
func lengthCRC(n uint64, b []byte) uint32 {
	if n < uint64(len(shortLengthCRC)) {
		return shortLengthCRC[n]
	}
	return crc32c.Masked(b)
}

// shortLengthCRC holds the checksums of the lengths of most events, which saves a quarter of the
// work of framing a scalar.
var shortLengthCRC = func() (table [256]uint32) {
	var b [lengthSize]byte
	for n := range table {
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		table[n] = crc32c.Masked(b[:])
	}
	return table
}()

// wholeWriteLimit is the size of the largest record that is copied so that one call writes it. A
// reader that follows the file sees a larger one grow.
const wholeWriteLimit = 1 << 20

// Writer writes a TFRecord stream. It is not safe for concurrent use and
// does not buffer: each record is one Write.
type Writer struct {
	w   io.Writer
	buf []byte
	err error
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes data as one record. After an error the stream may end
// within a record, so the same error is returned from then on.
func (w *Writer) Write(data []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(data) > wholeWriteLimit {
		return w.writeLarge(data)
	}
	w.buf = Append(w.buf[:0], data)
	_, w.err = w.w.Write(w.buf)
	return w.err
}

func (w *Writer) writeLarge(data []byte) error {
	var header [HeaderSize]byte
	putHeader(header[:], len(data))
	footer := binary.LittleEndian.AppendUint32(nil, crc32c.Masked(data))
	for _, part := range [][]byte{header[:], data, footer} {
		if _, w.err = w.w.Write(part); w.err != nil {
			return w.err
		}
	}
	return nil
}

// Size returns the size of a record with n bytes of data.
func Size(n int) int { return FrameSize + n }
