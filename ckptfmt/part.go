package ckptfmt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Part is a tensor, or a slice of one, whose elements are read on demand.
// Tools that rewrite checkpoints larger than memory use it. Exactly one of
// Open and Strings is set.
type Part struct {
	Name  string // of the tensor
	DType tfpb.DataType
	Full  []int64     // shape of the whole tensor
	Slice TensorSlice // what of it this part is; not to be changed
	Shape []int64     // of the part
	// The position of the bytes in a bundle, and their masked checksum. They
	// are meaningless for other formats.
	Shard  int
	Offset int64
	CRC    uint32
	// Open returns a reader of the elements, in the form of [Tensor.Data]. The
	// reader verifies them: damage is reported instead of io.EOF, after the
	// last byte. It belongs to the caller.
	Open func() (io.ReadCloser, error)
	// Strings returns the elements of a tensor of strings.
	Strings func() ([][]byte, error)
	// Stored is the tensor's name in the file if Name is a friendlier one, or "" if they are the
	// same. Readers find both.
	Stored string
	// Foreign is as in [TensorInfo], and Bytes the size of such a part.
	Foreign string
	Bytes   int64
	// Err says why a tensor in the file cannot be read. Then neither Open nor
	// Strings is set.
	Err error
}

// WholePart returns a part that is a whole tensor of elements of fixed size.
func WholePart(name string, d tfpb.DataType, shape []int64, open func() (io.ReadCloser, error)) Part {
	return Part{Name: name, DType: d, Full: shape, Slice: sharedFullSlice(len(shape)), Shape: shape, Open: open}
}

// Part returns the tensor as a part of that name, for what writes parts. Both share the
// elements. [Tensor.Validate] says whether a tensor can be written.
func (t *Tensor) Part(name string) Part {
	if hasStrings(t.DType) {
		p := WholePart(name, t.DType, t.Shape, nil)
		p.Strings = func() ([][]byte, error) { return t.Strings, nil }
		return p
	}
	return WholePart(name, t.DType, t.Shape, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(t.Data)), nil })
}

// TypeName returns the name of the type of the elements.
func (p *Part) TypeName() string { return typeName(p.DType, p.Foreign) }

// IsWhole reports whether the part is the whole tensor.
func (p *Part) IsWhole() bool { return p.Slice.isFull(p.Full) }

// Size returns the number of bytes that Open's reader gives, or 0 for strings.
func (p *Part) Size() (int64, error) {
	if p.Err != nil || p.Foreign != "" {
		return p.Bytes, p.Err
	}
	if p.Strings != nil {
		_, err := dtype.NumElements(p.Shape)
		return 0, err
	}
	return numBytes(p.DType, p.Shape)
}

// numBytes returns the number of bytes of a tensor of fixed-size elements.
func numBytes(d tfpb.DataType, shape []int64) (int64, error) {
	n, err := dtype.NumElements(shape)
	if err != nil {
		return 0, err
	}
	size := dtype.Size(d)
	if size == 0 {
		return 0, fmt.Errorf("%w: %s has no elements of fixed size", ErrType, dtype.Name(d))
	}
	if n > math.MaxInt64/size {
		return 0, fmt.Errorf("shape %v of %s is larger than any file", shape, dtype.Name(d))
	}
	return n * size, nil
}

// Load reads the part into memory. For a foreign type, the tensor has only the bytes.
func (p *Part) Load() (*Tensor, error) {
	t := &Tensor{DType: p.DType, Shape: slices.Clone(p.Shape)}
	if p.Strings != nil {
		var err error
		t.Strings, err = p.Strings()
		return t, err
	}
	size, err := p.Size()
	if err != nil {
		return nil, err
	}
	r, err := p.Open()
	if err != nil {
		return nil, err
	}
	t.Data, err = readExactly(r, size)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("reading tensor %q: %w", p.Name, err)
	}
	return t, nil
}

// readExactly reads size bytes, which must be all. Memory grows with what is
// there, not with what a file claims.
func readExactly(r io.Reader, size int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) < size {
		return nil, io.ErrUnexpectedEOF
	}
	return b, atEnd(r)
}

// atEnd returns nil if r gives io.EOF.
func atEnd(r io.Reader) error {
	n, err := io.ReadFull(r, make([]byte, 1))
	if n > 0 {
		return errors.New("there are more bytes than the shape has elements")
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// Parts returns a checkpoint's parts in the order of its files, so that
// writing them again in that order gives the same files. They are valid until
// r is closed. It fails at the first tensor that [IntactParts] would report as
// damaged.
func Parts(r Reader) ([]Part, error) {
	parts, damaged, err := IntactParts(r)
	if err == nil && len(damaged) > 0 {
		err = damaged[0].Err
	}
	if err != nil {
		return nil, err
	}
	return parts, nil
}

// DamagedTensor is a tensor whose index entries show that it cannot be read,
// and why: its entry is damaged, or the stored slices do not make it up.
type DamagedTensor struct {
	Name string
	Err  error
}

// IntactParts is [Parts] without the tensors whose index entries show that
// they cannot be read. It returns those separately, ordered by name.
//
// With another package's [Reader], such as one that shows other names, the parts are whole tensors,
// ordered by name.
func IntactParts(r Reader) ([]Part, []DamagedTensor, error) {
	switch r := r.(type) {
	case *PartsReader:
		return r.Parts(), nil, nil
	case *BundleReader, *V1Reader:
	default:
		return wholeParts(r)
	}
	stored, damaged, err := storedParts(r)
	if err != nil {
		return nil, nil, err
	}
	parts := make([]Part, len(stored))
	for i := range stored {
		parts[i] = stored[i].part(r)
	}
	return parts, damaged, nil
}

// wholeParts returns the tensors of any reader.
func wholeParts(r Reader) (parts []Part, damaged []DamagedTensor, err error) {
	for info, err := range r.Tensors() {
		if err != nil && info.Name == "" {
			return nil, nil, err
		}
		if err != nil {
			damaged = append(damaged, DamagedTensor{info.Name, err})
			continue
		}
		parts = append(parts, wholePartOf(r, &info))
	}
	return parts, damaged, nil
}

func wholePartOf(r Reader, info *TensorInfo) Part {
	name := info.Name
	p := WholePart(name, info.DType, info.Shape, func() (io.ReadCloser, error) {
		t, err := r.OpenTensor(name)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(t), nil
	})
	if p.Foreign = info.Foreign; p.Foreign != "" {
		p.Bytes = info.Bytes
	}
	if hasStrings(info.DType) {
		p.Open, p.Strings = nil, func() ([][]byte, error) {
			t, err := r.Lookup(name)
			if err != nil {
				return nil, err
			}
			return t.Strings, nil
		}
	}
	return p
}

func (s *storedPart) part(r Reader) Part {
	slice := s.tensorSlice()
	p := Part{Name: s.name, Full: s.full, Slice: slice, Shape: boxOf(slice, s.full).length}
	if s.entry != nil {
		p.DType, p.Shard, p.Offset, p.CRC = s.entry.dtype, int(s.entry.shard), s.entry.offset, s.entry.crc
	} else if v1, ok := r.(*V1Reader); ok {
		p.DType = v1.tensors[s.name].dtype
	}
	s.setContent(&p)
	return p
}

// setContent sets the functions that read p's elements.
func (s *storedPart) setContent(p *Part) {
	switch {
	case hasStrings(p.DType):
		p.Strings = func() ([][]byte, error) {
			t, err := s.load(s)
			if err != nil {
				return nil, err
			}
			return t.Strings, nil
		}
	case s.bundle != nil:
		p.Open = func() (io.ReadCloser, error) {
			r, err := s.bundle.entryReader(s.name, s.entry)
			if err != nil {
				return nil, err
			}
			return io.NopCloser(r), nil
		}
	default: // a V1 checkpoint has the elements within a message
		p.Open = func() (io.ReadCloser, error) {
			t, err := s.load(s)
			if err != nil {
				return nil, err
			}
			return io.NopCloser(bytes.NewReader(t.Data)), nil
		}
	}
}

// CheckBundle returns an error that says why a bundle cannot hold a tensor, or nil if
// it can.
func CheckBundle(p Part) error {
	switch {
	case p.Err != nil:
		return p.Err
	case p.Foreign != "":
		return fmt.Errorf("%w: %q: TensorFlow does not have %s", ErrType, p.Name, p.Foreign)
	}
	return nil
}

// AddPart writes a part of a tensor while reading it, without keeping it in
// memory. If its reader fails, the bundle cannot be finished.
func (w *BundleWriter) AddPart(p Part) error {
	if err := CheckBundle(p); err != nil {
		return w.refuse(p.Name, err)
	}
	if p.Strings != nil {
		t, err := p.Load()
		if err != nil {
			return err
		}
		return w.AddSlice(p.Name, p.Full, p.Slice, t)
	}
	r, err := p.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := w.AddSliceFrom(p.Name, p.Full, p.Slice, p.DType, r); err != nil {
		return err
	}
	if err := atEnd(r); err != nil { // the bytes are in the data file already
		w.err = fmt.Errorf("adding tensor %q to checkpoint %s: %w", p.Name, w.prefix, err)
	}
	return w.err
}

// JoinSlices loads the slices of one tensor and joins them. If some are
// missing, the error matches [ErrSlices].
func JoinSlices(list []Part) (*Tensor, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrSlices)
	}
	first := list[0]
	if _, err := dtype.NumElements(first.Full); err != nil {
		return nil, err
	}
	boxes := make([]box, len(list))
	for i, p := range list {
		if p.DType != first.DType || !slices.Equal(p.Full, first.Full) {
			return nil, fmt.Errorf("%w: slices of tensors of several types or shapes", ErrSlices)
		}
		boxes[i] = boxOf(p.Slice, p.Full)
	}
	whole := boxOf(FullSlice(len(first.Full)), first.Full)
	if err := checkCover(boxes, whole); err != nil {
		return nil, err
	}
	loaded := make([]*Tensor, len(list))
	for i, p := range list {
		var err error
		if loaded[i], err = p.Load(); err != nil {
			return nil, err
		}
	}
	out := newTensor(first.DType, whole)
	for i, t := range loaded {
		if boxes[i].elements() > 0 {
			copyBox(out, whole, t, boxes[i], boxes[i])
		}
	}
	return out, nil
}
