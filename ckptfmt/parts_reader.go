package ckptfmt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/discard"
)

// PartsReader is a [Reader] of the parts that the package of another file format
// returns. It is safe for concurrent use if they are.
type PartsReader struct {
	parts  []Part // in the order of the file
	byName []int  // places in parts
	stored map[string]int
	close  func() error
}

// NewPartsReader returns a reader of whole tensors. It keeps parts, which must not be
// changed after that. If two have the same name, the error matches [ErrExists]. Close
// calls close, which may be nil.
func NewPartsReader(parts []Part, close func() error) (*PartsReader, error) {
	r := &PartsReader{parts: parts, byName: make([]int, len(parts)), stored: make(map[string]int), close: close}
	for i := range parts {
		r.byName[i] = i
		if name := parts[i].Stored; name != "" {
			r.stored[name] = i
		}
		if !parts[i].IsWhole() {
			return nil, fmt.Errorf("%w: %q is a slice", ErrSlices, parts[i].Name)
		}
	}
	slices.SortFunc(r.byName, func(a, b int) int { return strings.Compare(parts[a].Name, parts[b].Name) })
	for i := 1; i < len(r.byName); i++ {
		if name := parts[r.byName[i]].Name; name == parts[r.byName[i-1]].Name {
			return nil, fmt.Errorf("%w: there are two tensors %q", ErrExists, name)
		}
	}
	return r, nil
}

// Parts returns the tensors in the order of the file.
func (r *PartsReader) Parts() []Part { return slices.Clone(r.parts) }

// Close implements [Reader].
func (r *PartsReader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

func (p *Part) info() (TensorInfo, error) { return p.infoWith(slices.Clone(p.Shape)) }

// infoWith is info with a copy of the shape.
func (p *Part) infoWith(shape []int64) (TensorInfo, error) {
	size, err := p.Size()
	info := TensorInfo{Name: p.Name, DType: p.DType, Shape: shape, Bytes: size, Shard: p.Shard, Offset: p.Offset, CRC: p.CRC}
	return info, err
}

// dimensions have memory for shapes, many at once: a listing needs one for each
// tensor.
type dimensions []int64

// copy returns a copy of a shape.
func (d *dimensions) copy(shape []int64) []int64 {
	const atOnce = 1024
	if shape == nil {
		return nil
	}
	if len(shape) > len(*d) {
		*d = make([]int64, max(atOnce, len(shape)))
	}
	to := (*d)[:len(shape):len(shape)]
	*d = (*d)[len(shape):]
	copy(to, shape)
	return to
}

// Tensors implements [Reader].
func (r *PartsReader) Tensors() iter.Seq2[TensorInfo, error] {
	return func(yield func(TensorInfo, error) bool) {
		var shapes dimensions
		for _, i := range r.byName {
			p := &r.parts[i]
			if !yield(p.infoWith(shapes.copy(p.Shape))) {
				return
			}
		}
	}
}

// find takes the name of a tensor, or that under which the file stores it.
func (r *PartsReader) find(name string) (*Part, error) {
	i, ok := slices.BinarySearchFunc(r.byName, name, func(i int, name string) int { return strings.Compare(r.parts[i].Name, name) })
	if ok {
		return &r.parts[r.byName[i]], nil
	}
	if i, ok = r.stored[name]; ok {
		return &r.parts[i], nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
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
	t, err := p.Load()
	if err != nil {
		return nil, err
	}
	return cutSlice(t, s)
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

// closedAtEnd closes what it reads from at its end or its first error, which it gives
// again from then on.
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
	sorted := make([]Part, len(r.parts))
	for i, at := range r.byName {
		sorted[i] = r.parts[at]
	}
	return VerifyParts(ctx, sorted)
}

// TensorFile is an open file in a format other than TensorFlow's, as read by
// that format's package.
type TensorFile interface {
	// Parts returns the tensors in the order of the file. They are valid until the
	// file is closed.
	Parts() []Part
	// Metadata are texts about the tensors. It may be nil.
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

// VerifyParts reads tensors one after another, keeps nothing of them, and yields
// the name of each with its error, or the reason why its package cannot read it.
func VerifyParts(ctx context.Context, parts []Part) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for i := range parts {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(parts[i].Name, parts[i].verify(ctx)) {
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
