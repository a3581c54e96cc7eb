package ckptfmt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/discard"
	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// PartList is the tensors of a file, in the file's order: whole tensors with different names. A
// file may have a hundred thousand, but few are needed at once, so each is made on request. A list
// that has already sorted the names, and checked that they differ, has a method ByName, which
// returns the indexes of the tensors in the order of their names, or nil if the list is in that
// order. If the file has other names for some tensors, the list has a method Stored, which returns
// the index of the tensor with such a name.
type PartList interface {
	Len() int
	// Name returns the name of Part(i).
	Name(i int) string
	// Info describes Part(i), or says why that cannot be read. Its shape must not be
	// changed.
	Info(i int) (TensorInfo, error)
	Part(i int) Part
}

// partSlice is a PartList of existing parts.
type partSlice []Part

func (s partSlice) Len() int                       { return len(s) }
func (s partSlice) Name(i int) string              { return s[i].Name }
func (s partSlice) Info(i int) (TensorInfo, error) { return s[i].infoWith(s[i].Shape) }
func (s partSlice) Part(i int) Part                { return s[i] }

// ListOf returns parts as a list.
func ListOf(parts []Part) PartList { return partSlice(parts) }

// PartsReader is a [Reader] of tensors in another file format, whose package provides the parts. It
// is safe for concurrent use if they are.
type PartsReader struct {
	parts  PartList
	byName []int32 // places in parts; nil if those are in that order
	stored func(name string) (place int, ok bool)
	close  func() error
}

// NewPartsReader returns a reader of whole tensors. It keeps parts, which must not be
// changed after that. If two have the same name, the error matches [ErrExists]. Close
// calls close, which may be nil.
func NewPartsReader(parts []Part, close func() error) (*PartsReader, error) {
	r, err := NewPartListReader(partSlice(parts), close)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]int)
	for i := range parts {
		if name := parts[i].Stored; name != "" {
			stored[name] = i
		}
		if !parts[i].IsWhole() {
			return nil, fmt.Errorf("%w: %q is a slice", ErrSlices, parts[i].Name)
		}
	}
	r.stored = func(name string) (int, bool) {
		i, ok := stored[name]
		return i, ok
	}
	return r, nil
}

// NewPartListReader is [NewPartsReader] for parts that are made on request.
func NewPartListReader(parts PartList, close func() error) (*PartsReader, error) {
	r := &PartsReader{parts: parts, stored: func(string) (int, bool) { return 0, false }, close: close}
	if list, ok := parts.(interface{ Stored(string) (int, bool) }); ok {
		r.stored = list.Stored
	}
	if n := parts.Len(); n > math.MaxInt32 {
		return nil, fmt.Errorf("there are %d tensors, at most %d are read", n, math.MaxInt32)
	}
	if sorted, ok := parts.(interface{ ByName() []int32 }); ok {
		r.byName = sorted.ByName()
		return r, nil
	}
	var twice int
	if r.byName, twice = distinct.Order(parts.Len(), parts.Name); twice >= 0 {
		return nil, fmt.Errorf("%w: there are two tensors %q", ErrExists, parts.Name(twice))
	}
	return r, nil
}

// place returns the index of the tensor that is number i by name.
func (r *PartsReader) place(i int) int {
	if r.byName == nil {
		return i
	}
	return int(r.byName[i])
}

// Parts returns the tensors in the order of the file.
func (r *PartsReader) Parts() []Part { return AllParts(r.parts) }

// AllParts returns the parts of a list.
func AllParts(list PartList) []Part {
	parts := make([]Part, list.Len())
	for i := range parts {
		parts[i] = list.Part(i)
	}
	return parts
}

// Close implements [Reader].
func (r *PartsReader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

func (p *Part) info() (TensorInfo, error) { return p.infoWith(slices.Clone(p.Shape)) }

// infoWith is info with the shape itself, or a copy of it.
func (p *Part) infoWith(shape []int64) (TensorInfo, error) {
	size, err := p.Size()
	info := TensorInfo{Name: p.Name, DType: p.DType, Foreign: p.Foreign, Shape: shape, Bytes: size, Shard: p.Shard, Offset: p.Offset, CRC: p.CRC}
	return info, err
}

// Len returns how many tensors there are.
func (r *PartsReader) Len() int { return r.parts.Len() }

// At describes the tensor that is number i by name, or says why it cannot be read. Its shape
// must not be changed.
func (r *PartsReader) At(i int) (TensorInfo, error) { return r.parts.Info(r.place(i)) }

// Tensors implements [Reader].
func (r *PartsReader) Tensors() iter.Seq2[TensorInfo, error] {
	return func(yield func(TensorInfo, error) bool) {
		var shapes []int64 // memory for the next
		for i := range r.Len() {
			info, err := r.At(i)
			info.Shape = slab.Copy(&shapes, info.Shape)
			if !yield(info, err) {
				return
			}
		}
	}
}

// find takes the name of a tensor, or that under which the file stores it.
func (r *PartsReader) find(name string) (Part, error) {
	i, ok := sort.Find(r.parts.Len(), func(i int) int { return strings.Compare(name, r.parts.Name(r.place(i))) })
	if ok {
		return r.parts.Part(r.place(i)), nil
	}
	if i, ok = r.stored(name); ok {
		return r.parts.Part(i), nil
	}
	return Part{}, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// Info implements [Reader].
func (r *PartsReader) Info(name string) (TensorInfo, error) {
	p, err := r.find(name)
	if err != nil {
		return TensorInfo{}, err
	}
	return p.info()
}

// Lookup implements [Reader].
func (r *PartsReader) Lookup(name string) (*Tensor, error) {
	p, err := r.find(name)
	if err != nil {
		return nil, err
	}
	return p.Load()
}

// LookupSlice implements [Reader]. It reads the whole tensor.
func (r *PartsReader) LookupSlice(name string, s TensorSlice) (*Tensor, error) {
	p, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if _, err := s.Shape(p.Full); err != nil {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	if p.Foreign != "" {
		return nil, fmt.Errorf("%w: tensor %q of %s is read as a whole", ErrType, name, p.Foreign)
	}
	t, err := p.Load()
	if err != nil {
		return nil, err
	}
	return cutSlice(t, s), nil
}

// OpenTensor implements [Reader].
func (r *PartsReader) OpenTensor(name string) (*TensorReader, error) {
	p, err := r.find(name)
	if err != nil {
		return nil, err
	}
	info, err := p.info()
	if err != nil {
		return nil, err
	}
	if p.Open == nil { // strings: info has the reason of what cannot be read
		return nil, errNoStream(name, info)
	}
	from, err := p.Open()
	if err != nil {
		return nil, err
	}
	return &TensorReader{Info: info, from: &closedAtEnd{from: from}}, nil
}

// closedAtEnd closes its source at the end or the first error, which it returns from then on.
type closedAtEnd struct {
	from io.ReadCloser
	err  error
}

func (c *closedAtEnd) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.from.Read(b)
	if err != nil {
		if failed := c.from.Close(); failed != nil && err == io.EOF {
			err = failed
		}
		c.err = err
	}
	return n, err
}

// Verify implements [Reader]. It reads every tensor; how much damage that finds
// depends on the format.
func (r *PartsReader) Verify(ctx context.Context) iter.Seq2[string, error] {
	return verifyEach(ctx, r.parts, r.place)
}

// TensorFile is an open file in a format other than TensorFlow's, as read by
// that format's package.
type TensorFile interface {
	// Parts returns the tensors in the order of the file. They are valid until the
	// file is closed.
	Parts() []Part
	// Metadata returns texts about the tensors. It may be nil.
	Metadata() map[string]string
	// Checks describes what Verify can find in this file: the strongest check
	// that the format allows.
	Checks() string
	// Verify reads everything, and yields the name of each tensor with its error,
	// usually nil. Errors in other parts of the file have the name "".
	Verify(ctx context.Context) iter.Seq2[string, error]
	// Close closes the file.
	Close() error
}

// VerifyFile reads all of a file, and closes it. It returns a description of what
// that could find, and the first damage.
func VerifyFile(ctx context.Context, f TensorFile) (checks string, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	for name, err := range f.Verify(ctx) {
		switch {
		case err != nil && name != "":
			return f.Checks(), fmt.Errorf("tensor %q: %w", name, err)
		case err != nil:
			return f.Checks(), err
		}
	}
	return f.Checks(), nil
}

// VerifyParts reads tensors one after another without keeping them, and yields the name of each
// with its error, or the reason why its package cannot read it.
func VerifyParts(ctx context.Context, parts []Part) iter.Seq2[string, error] {
	return VerifyPartList(ctx, partSlice(parts))
}

// VerifyPartList is [VerifyParts] of a list.
func VerifyPartList(ctx context.Context, parts PartList) iter.Seq2[string, error] {
	return verifyEach(ctx, parts, func(i int) int { return i })
}

// verifyEach verifies the parts at place(0), place(1) and so on.
func verifyEach(ctx context.Context, parts PartList, place func(i int) int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for i := range parts.Len() {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if p := parts.Part(place(i)); !yield(p.Name, p.verify(ctx)) {
				return
			}
		}
	}
}

func (p *Part) verify(ctx context.Context) error {
	if p.Err != nil {
		return p.Err
	}
	if p.Strings != nil {
		_, err := p.Strings()
		return err
	}
	size, err := p.Size()
	if err != nil {
		return err
	}
	r, err := p.Open()
	if err != nil {
		return err
	}
	n, err := io.Copy(discard.Until(ctx), r)
	if err == nil && n != size {
		err = fmt.Errorf("tensor %q has %d bytes, its shape needs %d", p.Name, n, size)
	}
	return errors.Join(err, r.Close())
}
