package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/bigendian"
	tfpb "github.com/trainerd/trainerd/proto"
)

// dataset is a tensor as it is listed.
type dataset struct {
	path  string
	at    int64 // of its header
	*form       // which others may have too
}

// form is what datasets that are alike have in common.
type form struct {
	shape  []int64
	t      *datatype
	summed bool
	err    error // why it cannot be read

	usual bool // all that a list shows but the path is known: the type, the shape and these bytes
	bytes int64
}

// detail is a dataset with all that reading its elements needs. Of the hundred thousand
// that a file may have, few are read at once, so that is read again from the header.
type detail struct {
	dataset
	most    []int64 // the shape that it may have one day
	l       layout
	filters []filter
	fill    []byte
}

// detail reads the header of a dataset again.
func (r *Reader) detail(d *dataset) (*detail, error) {
	s := r.store.fresh()
	list, err := s.header(d.at)
	x := &detail{dataset: dataset{d.path, d.at, &form{t: noType}}}
	if err == nil {
		err = x.parse(s, list)
	}
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", printablePath(d.path), err)
	}
	return x, nil
}

// parse takes a dataset from its messages. Damage is a located error; for a merely unsupported
// dataset the error matches ckptfmt.ErrType.
func (d *detail) parse(s *store, list []message) error {
	var unsupported error
	for i := range list {
		m := &list[i]
		if err := s.shared(m); err != nil {
			return err
		}
		c := s.over(m.body)
		switch m.kind {
		case msgDataspace:
			x := s.dataspace(&c)
			d.shape, d.most = x.shape, x.most
		case msgDatatype:
			d.t = s.datatype(&c)
		case msgLayout:
			if d.l = c.layout(); errors.Is(c.err, ckptfmt.ErrType) {
				unsupported, c.err = c.err, nil
			}
		case msgFilters:
			d.filters = c.filters()
		case msgExternalData:
			unsupported = fmt.Errorf("%w: its elements are in another file", ckptfmt.ErrType)
		case msgOldFill, msgFill:
			if b := c.fillValue(m.kind); b != nil {
				d.fill = b
			}
		}
		if c.err != nil {
			return s.corrupt(m.at, fmt.Sprintf("message of type %d", m.kind), c.err)
		}
	}
	if unsupported != nil {
		return unsupported
	}
	return d.check(s)
}

// check checks that the messages agree with each other.
func (d *detail) check(s *store) error {
	damaged := func(format string, args ...any) error { return s.corrupt(d.at, "dataset", fmt.Errorf(format, args...)) }
	n, err := dtype.NumElements(d.shape)
	if err != nil || d.t.size == 0 || n > math.MaxInt64/4/d.t.size {
		return damaged("shape %v of elements of %d bytes: %w", d.shape, d.t.size, cmpOr(err, errors.New("more than any file has")))
	}
	size := n * d.t.size
	// Deflate makes at best 1032 bytes of one; fill values need none at all.
	if size > 1<<26 && size/1100 > s.size {
		return damaged("it claims %d bytes, which a file of %d cannot hold", size, s.size)
	}
	if len(d.fill) > 0 && int64(len(d.fill)) != d.t.size {
		return damaged("the fill value has %d bytes, an element %d", len(d.fill), d.t.size)
	}
	switch d.l.class {
	case layoutCompact:
		if int64(len(d.l.inline)) < size {
			return damaged("shape %v needs %d bytes, %d are there", d.shape, size, len(d.l.inline))
		}
	case layoutContiguous:
		if d.l.at != nowhere && (d.l.size < size || d.l.at > s.size-s.base-size) {
			return damaged("shape %v needs %d bytes; %d are at %d in a file of %d", d.shape, size, d.l.size, d.l.at, s.size)
		}
	case layoutChunked:
		return d.checkChunks(damaged)
	}
	return nil
}

func cmpOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (d *detail) checkChunks(damaged func(format string, args ...any) error) error {
	if len(d.l.chunk) != len(d.shape) || d.l.elem != d.t.size {
		return damaged("chunks are %v of %d bytes, the dataset is %v of %d", d.l.chunk, d.l.elem, d.shape, d.t.size)
	}
	size := d.t.size
	for _, n := range d.l.chunk {
		if n <= 0 || n > maxChunk/size {
			return damaged("chunks of %v elements are larger than %d bytes, or empty", d.l.chunk, maxChunk)
		}
		size *= n
	}
	for _, f := range d.filters {
		if !f.known() {
			return fmt.Errorf("%w: filter %s is not supported", ckptfmt.ErrType, f)
		}
	}
	return nil
}

// settle notes in the form what else is known when all messages have been read.
func (d *detail) settle() {
	d.summed = d.l.class == layoutChunked && slices.ContainsFunc(d.filters, func(f filter) bool { return f.id == filterFletcher })
	if d.err != nil || d.t.class == classOpaque || d.t.dtype == tfpb.DataType_DT_INVALID {
		return
	}
	if n, err := dtype.NumElements(d.shape); err == nil {
		d.usual, d.bytes = true, n*dtype.Size(d.t.dtype)
	}
}

// part returns a dataset as a tensor.
func (r *Reader) part(d *dataset) ckptfmt.Part {
	t := r.typeOf(d)
	p := ckptfmt.WholePart(d.path, t.dtype, d.shape, nil)
	if p.Err = r.refusal(d, t); p.Err != nil {
		n, _ := dtype.NumElements(d.shape) // which was not an error when it was checked
		p.Foreign, p.Bytes = t.foreign(), n*t.size
		return p
	}
	if t.dtype == tfpb.DataType_DT_STRING {
		p.Strings = func() ([][]byte, error) { return r.stringsOf(d) }
		return p
	}
	p.Open = func() (io.ReadCloser, error) {
		x, err := r.detail(d)
		if err != nil {
			return nil, err
		}
		from, err := r.elements(x)
		if err != nil {
			return nil, err
		}
		if t.bigEndian && t.swap > 1 {
			from = bigendian.NewReader(from, int(t.swap))
		}
		if t.dtype == tfpb.DataType_DT_BOOL {
			from = &bools{from, r, d}
		}
		return io.NopCloser(from), nil
	}
	return p
}

// refusal says why a dataset with that type cannot be read, nil if it can.
func (r *Reader) refusal(d *dataset, t *datatype) error {
	err := d.err
	if err == nil && t.dtype == tfpb.DataType_DT_INVALID {
		err = fmt.Errorf("%w: %s", ckptfmt.ErrType, t.why)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: dataset %s: %w", r.name, printablePath(d.path), err)
}

// typeOf returns the type of a dataset's elements.
func (r *Reader) typeOf(d *dataset) *datatype {
	if d.t.class != classOpaque {
		return d.t
	}
	own := *d.t
	r.opaque(d, &own)
	return &own
}

// opaque takes bfloat16 as h5py stores it: two bytes. Keras writes the type's name
// next to them; where there is none, it is the only type of NumPy that is stored
// so, but for those that a tag names.
func (r *Reader) opaque(d *dataset, t *datatype) {
	names, err := r.Attr(d.path, "dtype")
	if err != nil || len(names) != 1 {
		if t.size == 2 && t.tag == "" {
			t.dtype = tfpb.DataType_DT_BFLOAT16
		}
		return
	}
	if named, ok := dtype.Parse(names[0]); ok && dtype.Size(named) == t.size {
		t.dtype = named
	}
}

// elements returns the bytes of a dataset's elements as the file has them.
func (r *Reader) elements(d *detail) (io.Reader, error) {
	n, _ := dtype.NumElements(d.shape) // which was not an error when it was checked
	size := n * d.t.size
	switch {
	case size == 0:
		return bytes.NewReader(nil), nil
	case d.l.class == layoutCompact:
		return bytes.NewReader(d.l.inline[:size]), nil
	case d.l.at == nowhere:
		return io.LimitReader(&filled{value: d.fillOf()}, size), nil
	case d.l.class == layoutContiguous:
		return &located{io.NewSectionReader(r.store.from, r.store.base+d.l.at, size), r, &d.dataset}, nil
	}
	return r.chunks(d)
}

// fillOf is the element that was never written.
func (d *detail) fillOf() []byte {
	if len(d.fill) > 0 {
		return d.fill
	}
	return make([]byte, d.t.size)
}

// filled repeats a value.
type filled struct {
	value []byte
	at    int
}

func (f *filled) Read(p []byte) (int, error) {
	for n := 0; n < len(p); {
		k := copy(p[n:], f.value[f.at:])
		n, f.at = n+k, (f.at+k)%len(f.value)
	}
	return len(p), nil
}

// located adds the dataset to an error of the file.
type located struct {
	io.Reader
	r *Reader
	d *dataset
}

func (l *located) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: dataset %s: %w", l.r.name, printablePath(l.d.path), err)
	}
	return n, err
}

// bools refuses bytes that are neither 0 nor 1.
type bools struct {
	io.Reader
	r *Reader
	d *dataset
}

func (b *bools) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if i := slices.IndexFunc(p[:n], func(c byte) bool { return c > 1 }); i >= 0 {
		return 0, b.r.corrupt(b.d.at, "dataset "+printablePath(b.d.path), fmt.Errorf("the byte %#02x is not a bool", p[i]))
	}
	return n, err
}

// stringsOf reads a dataset of strings.
func (r *Reader) stringsOf(d *dataset) ([][]byte, error) {
	x, err := r.detail(d)
	if err != nil {
		return nil, err
	}
	from, err := r.elements(x)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(from, maxString+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxString {
		return nil, fmt.Errorf("%s: dataset %s: its strings have more than %d bytes", r.name, printablePath(d.path), maxString)
	}
	list, err := r.store.fresh().strings(b, d.t, keptIn(make(map[int64]heap)))
	if err != nil {
		return nil, r.corrupt(d.at, "dataset "+printablePath(d.path), err)
	}
	return list, nil
}
