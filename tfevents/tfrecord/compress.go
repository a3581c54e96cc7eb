package tfrecord

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
)

// Compression says how a whole TFRecord stream is compressed. Nothing in a
// file says so: the reader must know. TensorBoard does not read compressed
// files.
type Compression string

// The kinds in TensorFlow's TFRecordOptions, by their names there.
const (
	Uncompressed Compression = ""
	ZLIB         Compression = "ZLIB"
	GZIP         Compression = "GZIP"
)

// ErrTrailingData says that data follows a ZLIB stream. TensorFlow's reader
// silently stops before it; a GZIP stream may be followed by another one, and
// both are read.
var ErrTrailingData = errors.New("tfrecord: data after the end of the ZLIB stream")

// CompressionOptions holds the choices of [NewCompressedWriter].
type CompressionOptions struct {
	Compression Compression
	Level       int // 1 to 9; 0 means the default, 6; negative means stored only
}

// CompressedWriter writes a TFRecord stream, compressed as a whole if its
// options say so. It is not safe for concurrent use.
type CompressedWriter struct {
	Writer
	z compressor // nil when uncompressed
}

type compressor interface {
	io.WriteCloser
	Flush() error
}

// NewCompressedWriter returns a CompressedWriter that writes to w.
// The stream is complete after Close, which leaves w open.
func NewCompressedWriter(w io.Writer, o *CompressionOptions) (*CompressedWriter, error) {
	if o == nil {
		o = new(CompressionOptions)
	}
	z, err := newCompressor(w, o)
	if err != nil {
		return nil, fmt.Errorf("tfrecord: %w", err)
	}
	if z != nil {
		w = z
	}
	return &CompressedWriter{Writer: Writer{w: w}, z: z}, nil
}

func newCompressor(w io.Writer, o *CompressionOptions) (compressor, error) {
	level := o.Level
	if level == 0 {
		level = 6
	} else if level < 0 {
		level = 0
	}
	switch o.Compression {
	case Uncompressed:
		return nil, nil
	case ZLIB:
		return zlib.NewWriterLevel(w, level)
	case GZIP:
		z, err := gzip.NewWriterLevel(w, level)
		if err != nil {
			return nil, err
		}
		z.OS, z.ModTime = 3, time.Unix(0, 0) // Unix, no time: as zlib puts there
		return z, nil
	}
	return nil, unknownCompression(o.Compression)
}

func unknownCompression(c Compression) error {
	return fmt.Errorf("unknown compression %q, want %q, %q or none", c, ZLIB, GZIP)
}

// Flush makes all records written so far readable, at the expense of
// compression.
func (w *CompressedWriter) Flush() error {
	if w.z != nil && w.err == nil {
		w.err = w.z.Flush()
	}
	return w.err
}

// Close ends the stream. Closing again returns the same result; writing after
// Close returns ErrClosed.
func (w *CompressedWriter) Close() error {
	if w.err == ErrClosed {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	if w.z != nil {
		w.err = w.z.Close()
	}
	if w.err == nil {
		w.err = ErrClosed
		return nil
	}
	return w.err
}

// NewCompressedReader returns a Reader of the stream compressed in
// r. Offsets are those of the uncompressed stream. Records before damage are
// returned, even if the damage is in the compressed stream; at its end, the
// stream's own checksum is verified.
func NewCompressedReader(r io.Reader, c Compression) (*Reader, error) {
	switch c {
	case Uncompressed:
		return NewReader(r), nil
	case ZLIB, GZIP:
		return NewReader(&decompressor{src: bufio.NewReaderSize(r, readBufferSize), kind: c}), nil
	}
	return nil, fmt.Errorf("tfrecord: %w", unknownCompression(c))
}

// decompressor opens the stream at the first Read, so that the reader returns its errors like all
// others.
type decompressor struct {
	src  *bufio.Reader
	kind Compression
	z    io.Reader
	err  error
}

func (d *decompressor) Read(b []byte) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	if d.z == nil {
		if d.err = d.open(); d.err != nil {
			return 0, d.err
		}
	}
	n, err := d.z.Read(b)
	if err == io.EOF {
		err = d.end()
	}
	d.err = d.wrap(err)
	return n, d.err
}

// open begins the stream. An empty file holds no record.
func (d *decompressor) open() error {
	if _, err := d.src.Peek(1); err != nil {
		return err
	}
	var err error
	if d.kind == GZIP {
		d.z, err = gzip.NewReader(d.src)
	} else {
		d.z, err = zlib.NewReader(d.src)
	}
	return d.wrap(err)
}

// end checks what follows the end of the stream.
func (d *decompressor) end() error {
	if _, err := d.src.Peek(1); err != nil {
		return err
	}
	return ErrTrailingData
}

func (d *decompressor) wrap(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return fmt.Errorf("tfrecord: %s stream: %w", d.kind, err)
}
