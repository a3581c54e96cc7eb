package ckptfmt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/trainerd/trainerd/ckptfmt/internal/bigendian"
	"github.com/trainerd/trainerd/internal/crc32c"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TensorReader reads the elements of a tensor of numbers in order: their
// little-endian bytes in row-major order, as in Tensor.Data. After the last byte,
// the checksum is verified: damage is a [*CorruptError] instead of [io.EOF], so a
// caller that must not pass on damaged elements has to wait for io.EOF. It has no
// file of its own, so it need not be closed, and must not be used after its
// Reader is closed. It is not safe for concurrent use.
type TensorReader struct {
	Info TensorInfo
	// Watch, if not nil, is called after each read with the number of bytes. Its
	// error ends the reading.
	Watch func(n int) error

	from io.Reader
}

// Read implements [io.Reader].
func (t *TensorReader) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	if t.Watch != nil {
		if err := t.Watch(n); err != nil {
			return 0, err // not n: a caller that got all it asked for ignores the error
		}
	}
	return n, err
}

// WriteTo implements [io.WriterTo], in large pieces.
func (t *TensorReader) WriteTo(w io.Writer) (n int64, err error) {
	buf := pieces.Get().(*[sumPiece]byte)
	defer pieces.Put(buf)
	return io.CopyBuffer(w, struct{ io.Reader }{t}, buf[:])
}

// OpenTensor returns a reader of a tensor's elements. It reads a piece at a
// time, except that a tensor partitioned in a dimension other than the first
// is assembled in memory. For strings, the error matches [ErrType].
func (r *BundleReader) OpenTensor(name string) (*TensorReader, error) {
	e, err := r.lookup(name, []byte(name))
	if err != nil {
		return nil, err
	}
	if hasStrings(e.dtype) {
		return nil, errNoStream(name, e.info(name))
	}
	t := &TensorReader{Info: e.info(name)}
	t.from, err = r.stream(name, &e)
	return t, err
}

func errNoStream(name string, info TensorInfo) error {
	return fmt.Errorf("%w: tensor %q of %s has no bytes of fixed-size elements; look it up instead", ErrType, name, info.TypeName())
}

// stream returns a reader of the bytes of a tensor.
func (r *BundleReader) stream(name string, e *bundleEntry) (io.Reader, error) {
	if len(e.slices) == 0 {
		return r.entryReader(name, e)
	}
	whole := boxOf(FullSlice(len(e.shape)), e.shape)
	parts, err := r.parts(name, e, whole)
	if err != nil {
		return nil, err
	}
	if !rowsInOrder(parts, whole) {
		t, err := r.assemble(name, e, FullSlice(len(e.shape)))
		if err != nil {
			return nil, err
		}
		return bytes.NewReader(t.Data), nil
	}
	var readers []io.Reader
	for _, p := range parts {
		readers = append(readers, r.readerIn(p.file, p.name, &p.entry))
	}
	return io.MultiReader(readers...), nil
}

// rowsInOrder sorts parts by their beginnings, and reports whether each consists of whole rows, so
// that one after the other they make up the tensor.
func rowsInOrder(parts []part, whole box) bool {
	sortParts(parts)
	for _, p := range parts {
		for i := 1; i < len(whole.length); i++ {
			if p.stored.length[i] != whole.length[i] {
				return false
			}
		}
	}
	return true
}

// entryReader returns a reader of the bytes of one entry.
func (r *BundleReader) entryReader(name string, e *bundleEntry) (io.Reader, error) {
	file, err := r.locate(name, e)
	if err != nil {
		return nil, err
	}
	return r.readerIn(file, name, e), nil
}

// readerIn returns a reader of the bytes of one entry, which are in file.
func (r *BundleReader) readerIn(file *shard, name string, e *bundleEntry) io.Reader {
	entry := *e
	t := &entryReader{name: name, entry: &entry, file: file, check: !r.opts.SkipChecksums}
	if r.order == binary.BigEndian {
		return bigendian.NewReader(t, numberSize(e.dtype))
	}
	return t
}

// entryReader reads an entry's bytes and checks them in the end.
type entryReader struct {
	name  string
	entry *bundleEntry
	file  *shard
	check bool
	done  int64
	crc   uint32
}

func (t *entryReader) Read(p []byte) (int, error) {
	left := t.entry.size - t.done
	if left == 0 {
		return 0, t.end()
	}
	p = p[:min(int64(len(p)), left)]
	if err := readFullAt(t.file, p, t.entry.offset+t.done); err != nil {
		return 0, readError(t.file, t.name, t.entry, err)
	}
	t.crc = crc32c.Extend(t.crc, p)
	t.done += int64(len(p))
	return len(p), nil
}

func (t *entryReader) end() error {
	if !t.check {
		return io.EOF
	}
	if err := t.entry.checkSum(crc32c.Mask(t.crc)); err != nil {
		return corruptTensor(t.file, t.name, t.entry, err)
	}
	return io.EOF
}

// OpenTensor returns a reader of a tensor's elements. They are in memory,
// because V1 checkpoints store messages, not bytes.
func (r *V1Reader) OpenTensor(name string) (*TensorReader, error) {
	info, err := r.Info(name)
	if err != nil {
		return nil, err
	}
	if hasStrings(info.DType) {
		return nil, errNoStream(name, info)
	}
	t, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	return &TensorReader{Info: info, from: bytes.NewReader(t.Data)}, nil
}

// CheckTensor reads the bytes of one tensor without keeping them, and returns the damage that it
// finds.
func (r *BundleReader) CheckTensor(ctx context.Context, name string) error {
	e, err := r.lookup(name, []byte(name))
	if err != nil {
		return err
	}
	if len(e.slices) == 0 {
		return r.verify(ctx, name, &e)
	}
	parts, err := r.parts(name, &e, boxOf(FullSlice(len(e.shape)), e.shape))
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := r.verify(ctx, p.name, &p.entry); err != nil {
			return err
		}
	}
	return nil
}

// AddFrom writes a tensor of fixed-size elements, whose bytes it reads a piece
// at a time: as many as the shape needs, little-endian, in row-major order. If
// from fails or ends early, the checkpoint cannot be finished.
func (w *BundleWriter) AddFrom(name string, d tfpb.DataType, shape []int64, from io.Reader) error {
	return w.AddSliceFrom(name, shape, FullSlice(len(shape)), d, from)
}

// AddSliceFrom is [BundleWriter.AddSlice] with elements read as in
// [BundleWriter.AddFrom].
func (w *BundleWriter) AddSliceFrom(name string, fullShape []int64, s TensorSlice, d tfpb.DataType, from io.Reader) error {
	shape, err := s.Shape(fullShape)
	if err != nil {
		return w.refuse(name, err)
	}
	size, err := numBytes(d, shape)
	if err != nil {
		return w.refuse(name, err)
	}
	e := &bundleEntry{dtype: d, shape: shape, size: size}
	_, err = w.addStream(name, fullShape, s, e, from)
	return err
}
