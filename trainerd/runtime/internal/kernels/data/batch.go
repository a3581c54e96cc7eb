package data

import (
	"fmt"
	"io"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

func buildUnbatch(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(_ *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &unbatchIterator{forwardingIterator: forwardingIterator{"unbatch", in}}
		}), nil
	}
}

type unbatchIterator struct {
	forwardingIterator
	batch variant.Tuple
	at, n int
}

func (u *unbatchIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	for u.at == u.n {
		el, err := u.in.Next(p)
		if err != nil {
			return nil, err
		}
		if err := u.begin(p, el); err != nil {
			return nil, err
		}
	}
	u.at++
	return tupleAt(u.batch, u.at-1), nil
}

func (u *unbatchIterator) begin(p *variant.IteratorContext, el variant.Tuple) error {
	u.batch, u.at, u.n = el, 0, 0
	for i, t := range el {
		if len(t.Shape) == 0 || i > 0 && t.Shape[0] != u.n {
			n := u.n
			u.n = 0
			return p.Invalid("component %d of an element, %s, is not a batch of %d", i, t.Describe(), n)
		}
		u.n = t.Shape[0]
	}
	return nil
}

func (u *unbatchIterator) Save(w *variant.StateWriter) {
	u.forwardingIterator.Save(w)
	if w.Bool(u.at < u.n) {
		w.Tuple(u.batch)
		w.Int(u.at)
	}
}

func (u *unbatchIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	u.forwardingIterator.Load(p, r)
	if !r.Bool() {
		return
	}
	el, at := r.Tuple(), r.Int()
	if r.Err != nil {
		return
	}
	if err := u.begin(p, el); err != nil || at < 0 || at > u.n {
		r.Fail("element %d of a batch of %d was next", at, u.n)
		return
	}
	u.at = at
}

// buildWindow builds the op whose elements are data sets of some elements.
func buildWindow(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		size, shift, stride := c.MustInt(1, "the size"), c.MustInt(2, "the shift"), c.MustInt(3, "the stride")
		whole := c.MustBool(4, "drop_remainder")
		if size < 1 || shift < 1 || stride < 1 {
			return nil, c.Invalid("windows of %d elements %d apart, %d from one to the next", size, stride, shift)
		}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &windowIterator{in: in, size: size, shift: shift, stride: stride, whole: whole}
		}), nil
	}
}

type windowIterator struct {
	in                  variant.Iterator
	size, shift, stride int
	whole               bool
	kept                []variant.Tuple
	ended               bool
}

func (w *windowIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	reach := (w.size-1)*w.stride + 1
	for !w.ended && len(w.kept) < max(reach, w.shift) {
		el, err := w.in.Next(p)
		if err == io.EOF {
			w.ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		p.Hold(el.Bytes())
		w.kept = append(w.kept, el)
	}
	if len(w.kept) == 0 || w.whole && len(w.kept) < reach {
		return nil, io.EOF
	}
	var list []variant.Tuple
	for i := 0; i < min(reach, len(w.kept)); i += w.stride {
		list = append(list, w.kept[i])
	}
	w.kept = w.kept[min(w.shift, len(w.kept)):]
	out := make(variant.Tuple, len(list[0]))
	for k := range out {
		t := exec.NewTensor(exec.Variant, nil)
		t.Value = variant.NewTupleList(len(list), func(i int) variant.Tuple { return list[i][k : k+1] })
		out[k] = t
	}
	return out, nil
}

func (w *windowIterator) Save(sw *variant.StateWriter) {
	sw.Walk("window", w.in)
	sw.Bool(w.ended)
	sw.Tuples(w.kept)
}

func (w *windowIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	r.Walk(p, "window", w.in)
	w.ended, w.kept = r.Bool(), r.Tuples()
}

// gather reads up to n elements. It returns io.EOF when there are none, or
// fewer and only whole batches count.
func gatherBatch(p *variant.IteratorContext, in variant.Iterator, n int, whole bool) ([]variant.Tuple, error) {
	list, err := nextN(p, in, n)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(list) == 0 || whole && len(list) < n {
		return nil, io.EOF
	}
	return list, nil
}

// buildBatch builds the op that stacks elements; input whole says whether to
// drop a last batch with fewer.
func buildBatch(whole int) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			n := c.MustInt(1, "the batch size")
			drop := whole >= 0 && c.MustBool(whole, "drop_remainder")
			if n < 1 {
				return nil, c.Invalid("a batch of %d elements", n)
			}
			return overInput(of, func(in variant.Iterator) variant.Iterator {
				return &batchIterator{forwardingIterator: forwardingIterator{"batch", in}, size: n, whole: drop}
			}), nil
		}
	}
}

// batchIterator makes batches. Elements are padded to a common shape if there are
// values to do so with.
type batchIterator struct {
	forwardingIterator
	size   int
	whole  bool
	shapes [][]int // of components, -1 for the largest in the batch
	fill   variant.Tuple
}

func (b *batchIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if m, ok := b.in.(*mapIterator); ok && b.fill == nil && m.canStack(b.size) {
		return m.nextStacked(p, b.size, b.whole)
	}
	list, err := gatherBatch(p, b.in, b.size, b.whole)
	if err != nil {
		return nil, err
	}
	if b.fill == nil {
		return stackAll(p, list)
	}
	out := make(variant.Tuple, len(list[0]))
	for k := range out {
		if out[k], err = b.pad(p, list, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// stackAll stacks all components of elements.
func stackAll(p *variant.IteratorContext, list []variant.Tuple) (out variant.Tuple, err error) {
	out = make(variant.Tuple, len(list[0]))
	for k := range out {
		if out[k], err = stackColumn(p.KernelContext, list, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// stackColumn stacks component k of elements.
func stackColumn(c *exec.KernelContext, list []variant.Tuple, k int) (*exec.Tensor, error) {
	first := list[0][k]
	if first.DType == exec.Variant {
		column := make([]*exec.Tensor, len(list))
		for i, el := range list {
			column[i] = el[k]
		}
		if d, ok := variant.Stack(column); ok {
			return d, nil
		}
		return nil, c.Invalid("component %d of the elements, %s, cannot be batched", k, first.Describe())
	}
	d := c.NewTensor(first.DType, append([]int{len(list)}, first.Shape...))
	n := first.NumElements()
	for i, el := range list {
		t := el[k]
		if t.DType != first.DType || !exec.SameShape(t.Shape, first.Shape) {
			return nil, c.Invalid("elements of different shapes cannot be batched: component %d is %s in element 0, %s in element %d", k, first.Describe(), t.Describe(), i)
		}
		exec.CopyElems(d, i*n, t, 0, n)
	}
	return d, nil
}

// buildPaddedBatch builds the op that pads elements to a common shape before
// it stacks them. Its inputs are the batch size, a shape for each component, a
// value for each, and in its second version whether to drop a last batch that
// has fewer.
func buildPaddedBatch(flag bool) func(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := len(b.Types("Toutput_types"))
		return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
			if want := 2 + 2*n; c.NumInputs() < want || flag && c.NumInputs() < want+1 {
				return nil, c.Invalid("%d inputs for %d components", c.NumInputs(), n)
			}
			bt := batchIterator{size: c.MustInt(1, "the batch size"), fill: copies(c, 2+n, 2+2*n)}
			if bt.size < 1 {
				return nil, c.Invalid("a batch of %d elements", bt.size)
			}
			for i := range n {
				bt.shapes = append(bt.shapes, append([]int{}, c.IntsOf(0, c.In(2+i))...))
			}
			bt.whole = flag && c.MustBool(2+2*n, "drop_remainder")
			return overInput(of, func(in variant.Iterator) variant.Iterator {
				w := bt
				w.forwardingIterator = forwardingIterator{"batch", in}
				return &w
			}), nil
		}
	}
}

// pad stacks component k of elements, padded.
func (b *batchIterator) pad(p *variant.IteratorContext, list []variant.Tuple, k int) (*exec.Tensor, error) {
	if k >= len(b.shapes) {
		return nil, p.Invalid("an element has more than %d components", len(b.shapes))
	}
	shape, err := b.common(list, k)
	if err != nil {
		return nil, p.Invalid("%v", err)
	}
	first := list[0][k]
	full := append([]int{len(list)}, shape...)
	d := p.NewTensor(first.DType, full)
	if err := fillWith(d, b.fill[k]); err != nil {
		return nil, p.Invalid("%v", err)
	}
	row := exec.NumElements(shape)
	for i, el := range list {
		if len(shape) == 0 {
			exec.CopyElems(d, i, el[k], 0, 1)
			continue
		}
		elem.ScatterStrided(d, el[k], elem.RowMajor(p.KernelContext, 1, shape), i*row)
	}
	return d, nil
}

// fillWith sets all elements of d to the scalar v.
func fillWith(d, v *exec.Tensor) error {
	if v.DType != d.DType || v.NumElements() != 1 {
		return fmt.Errorf("%s cannot pad %s", v.Describe(), d.Describe())
	}
	elem.Fill(d, v)
	return nil
}

// common returns the shape that component k of all elements is padded to.
func (b *batchIterator) common(list []variant.Tuple, k int) ([]int, error) {
	shape := append([]int{}, b.shapes[k]...)
	for _, el := range list {
		s := el[k].Shape
		if len(s) != len(shape) || len(s) > exec.MaxRank || el[k].DType != list[0][k].DType {
			return nil, fmt.Errorf("component %d is %s, which cannot be padded to the shape %s", k, el[k].Describe(), exec.ShapeString(b.shapes[k]))
		}
		for i, d := range s {
			if want := b.shapes[k][i]; want >= 0 && d > want {
				return nil, fmt.Errorf("component %d is %s, larger than the padded shape %s", k, el[k].Describe(), exec.ShapeString(b.shapes[k]))
			}
			shape[i] = max(shape[i], d)
		}
	}
	return shape, nil
}
