package data

import (
	"io"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// buildRebatch builds the op that cuts each batch into parts for some replicas: equal
// ones rounded up, the last ones smaller or empty.
func buildRebatch(*exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		n := c.MustInt(1, "the number of replicas")
		if n < 1 {
			return nil, c.Invalid("num_replicas is %d; want at least 1", n)
		}
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &rebatchIterator{batchParts: batchParts{in: in}, replicas: n, part: n}
		}), nil
	}
}

// batchParts takes parts of the batches that a source gives.
type batchParts struct {
	in    variant.Iterator
	batch variant.Tuple // nil: none
	at, n int           // rows that were taken, rows of the batch
}

// next goes to the next batch.
func (b *batchParts) next(p *variant.IteratorContext) error {
	el, err := b.in.Next(p)
	if err != nil {
		return err
	}
	return b.begin(p.KernelContext, el)
}

func (b *batchParts) begin(c *exec.KernelContext, el variant.Tuple) error {
	b.batch = nil
	if len(el) == 0 {
		return c.Invalid("an element has no components")
	}
	for i, t := range el {
		if len(t.Shape) == 0 {
			return c.Invalid("component %d of an element is a scalar; want a batch", i)
		}
		if t.Shape[0] != el[0].Shape[0] {
			return c.Invalid("component %d of an element, %s, is not a batch of %d", i, t.Describe(), el[0].Shape[0])
		}
	}
	b.batch, b.at, b.n = el, 0, el[0].Shape[0]
	return nil
}

// take returns up to n rows of the batch.
func (b *batchParts) take(n int) variant.Tuple {
	n = min(n, b.n-b.at)
	out := make(variant.Tuple, len(b.batch))
	for k, t := range b.batch {
		out[k] = variant.Rows(t, b.at, n, append([]int{n}, t.Shape[1:]...))
	}
	b.at += n
	return out
}

func (b *batchParts) save(w *variant.StateWriter, kind string) {
	w.Walk(kind, b.in)
	if w.Bool(b.batch != nil) {
		w.Tuple(b.batch)
		w.Int(b.at)
	}
}

func (b *batchParts) load(p *variant.IteratorContext, r *variant.StateReader, kind string) {
	r.Walk(p, kind, b.in)
	if !r.Bool() {
		return
	}
	el, at := r.Tuple(), r.Int()
	if r.Err != nil {
		return
	}
	if err := b.begin(p.KernelContext, el); err != nil || at < 0 || at > b.n {
		r.Fail("row %d of a batch of %d was next", at, b.n)
		b.batch = nil
		return
	}
	b.at = at
}

type rebatchIterator struct {
	batchParts
	replicas, part int // part of the batch that is next
}

func (b *rebatchIterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if b.part == b.replicas || b.batch == nil {
		if err := b.next(p); err != nil {
			return nil, err
		}
		b.part = 0
	}
	b.part++
	return b.take((b.n + b.replicas - 1) / b.replicas), nil
}

func (b *rebatchIterator) Save(w *variant.StateWriter) {
	b.save(w, "rebatch")
	w.Int(b.part)
}

func (b *rebatchIterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	b.load(p, r, "rebatch")
	if b.part = r.Int(); b.part < 0 || b.part > b.replicas {
		r.Fail("part %d of %d was next", b.part, b.replicas)
		b.part = b.replicas
	}
}

// buildRebatchV2 builds the op that joins and cuts batches to given sizes, which come
// again and again.
func buildRebatchV2(b *exec.OpConstruction) func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
	types, shapes := b.Types("output_types"), b.Shapes("output_shapes")
	if len(types) != len(shapes) {
		b.Fail("%d types and %d shapes", len(types), len(shapes))
	}
	return func(c *exec.KernelContext, of variant.Dataset) (variant.Dataset, error) {
		if len(c.In(1).Shape) > 1 {
			return nil, c.Invalid("batch_sizes has shape %s; want a scalar or a vector", exec.ShapeString(c.In(1).Shape))
		}
		sizes := slices.Clone(c.IntsOf(0, c.In(1)))
		if len(sizes) == 0 || slices.Min(sizes) < 0 {
			return nil, c.Invalid("batch_sizes is %v; want sizes of 0 or more", sizes)
		}
		whole := c.MustBool(2, "drop_remainder")
		return overInput(of, func(in variant.Iterator) variant.Iterator {
			return &rebatchV2Iterator{batchParts: batchParts{in: in}, sizes: sizes, whole: whole, types: types, shapes: shapes}
		}), nil
	}
}

type rebatchV2Iterator struct {
	batchParts
	sizes  []int
	whole  bool
	types  []tfpb.DataType
	shapes [][]int
	turn   int // the size that is next
	ended  bool
}

func (b *rebatchV2Iterator) Next(p *variant.IteratorContext) (variant.Tuple, error) {
	if b.ended {
		return nil, io.EOF
	}
	size := b.sizes[b.turn]
	b.turn = (b.turn + 1) % len(b.sizes)
	if size == 0 {
		return b.none(), nil
	}
	var parts []variant.Tuple
	for have := 0; have < size; {
		if b.batch == nil || b.at == b.n {
			err := b.next(p)
			if err == io.EOF {
				b.ended = true
				break
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		from := b.at
		parts = append(parts, b.take(size-have))
		have += b.at - from
		for _, t := range b.batch {
			p.CheckSize(append([]int{have}, t.Shape[1:]...), max(exec.ElemSize(t.DType), 1))
		}
	}
	if len(parts) == 0 || b.whole && b.ended {
		return nil, io.EOF
	}
	return joinBatches(p.KernelContext, parts)
}

// none returns an element of no rows. Dimensions that are not known are 0.
func (b *rebatchV2Iterator) none() variant.Tuple {
	out := make(variant.Tuple, len(b.types))
	for k, dt := range b.types {
		shape := []int{0}
		for i, d := range b.shapes[k] {
			if i > 0 {
				shape = append(shape, max(d, 0))
			}
		}
		out[k] = exec.NewTensor(dt, shape)
	}
	return out
}

// joinBatches puts batches one after the other.
func joinBatches(c *exec.KernelContext, parts []variant.Tuple) (variant.Tuple, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	out := make(variant.Tuple, len(parts[0]))
	for k, first := range parts[0] {
		rows := 0
		for _, el := range parts {
			if len(el) != len(out) || el[k].DType != first.DType || !exec.SameShape(el[k].Shape[1:], first.Shape[1:]) {
				return nil, c.Invalid("batches of different shapes cannot be joined: component %d is %s, then %s", k, first.Describe(), el[min(k, len(el)-1)].Describe())
			}
			rows += el[k].Shape[0]
		}
		shape := append([]int{rows}, first.Shape[1:]...)
		if first.DType == exec.Variant {
			return nil, c.Invalid("component %d of the elements, %s, cannot be joined", k, first.Describe())
		}
		d, at := c.NewTensor(first.DType, shape), 0
		for _, el := range parts {
			n := el[k].NumElements()
			exec.CopyElems(d, at, el[k], 0, n)
			at += n
		}
		out[k] = d
	}
	return out, nil
}

func (b *rebatchV2Iterator) Save(w *variant.StateWriter) {
	b.save(w, "rebatch sizes")
	w.Int(b.turn)
	w.Bool(b.ended)
}

func (b *rebatchV2Iterator) Load(p *variant.IteratorContext, r *variant.StateReader) {
	b.load(p, r, "rebatch sizes")
	b.turn, b.ended = r.Int(), r.Bool()
	if b.turn < 0 || b.turn >= len(b.sizes) {
		r.Fail("size %d of %d was next", b.turn, len(b.sizes))
		b.turn = 0
	}
}
