package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Sums, products and extremes of the rows of a tensor that belong to one segment.
var segmentOps = segmentTable()

func segmentTable() exec.OpTable {
	t := exec.OpTable{"SparseToDense": {Types: exec.ValueTypes, Build: exec.WithoutAttrs(sparseToDense)}}
	for op, s := range map[string]segment{
		"Sum":  {fold: "Add"},
		"Mean": {fold: "Add", mean: true},
		"Prod": {fold: "Mul"},
		"Max":  {fold: "LaterMax"},
		"Min":  {fold: "LaterMin"},
	} {
		types := elem.FoldTypes(s.fold)
		t["Segment"+op] = exec.OpSpec{Types: types, Build: s.buildSorted}
		if !s.mean {
			build := exec.CheckedType("T", types, exec.WidenedIndices("Tindices", s.buildUnsorted, 1))
			t["UnsortedSegment"+op] = exec.OpSpec{Types: exec.Indices | exec.SetOf(exec.Int16), TypeAttr: "Tindices", Build: build}
		}
	}
	return t
}

// segment says how the rows of a segment become one.
type segment struct {
	fold string // how a row is folded into those before it
	mean bool   // divides by the number of rows
}

func (s segment) buildUnsorted(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	return unsortedSegment(s.startOf(dt), elem.FoldOf(s.fold, dt)), nil
}

// unsortedSegment is the kernel that folds the rows of each segment; rows of
// negative segments are dropped. All segments start with the value of start.
func unsortedSegment(start *exec.Tensor, f elem.Fold) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, ids := c.In(0), c.In(1)
		n, err := c.IntScalar(2, "the number of segments")
		if err != nil {
			return err
		}
		if n < 0 || len(x.Shape) < len(ids.Shape) || !exec.SameShape(x.Shape[:len(ids.Shape)], ids.Shape) {
			return c.Invalid("segments %s do not fit %s (%d segments)", ids.Describe(), x.Describe(), n)
		}
		d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), n), x.Shape[len(ids.Shape):]...)...)
		row := exec.NumElements(d.Shape[1:])
		elem.Fill(d, start)
		if x.NumElements() == 0 { // then TensorFlow does not look at the segments
			return nil
		}
		at := c.IntsOf(1, ids)
		for k, id := range at {
			if id >= n {
				return c.Invalid("segment %d is outside [0, %d)", id, n)
			}
			at[k] = id * row
			if id < 0 {
				at[k] = -1 // also where rows have no elements
			}
		}
		f(d, at, x, row, row)
		return nil
	}
}

// buildSorted builds the kernel that folds runs of rows; empty segments are 0,
// products 1.
func (s segment) buildSorted(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	k := sortedSegment{fold: elem.FoldOf(s.fold, dt)}
	switch {
	case s.fold == "Mul":
		k.empty = s.startOf(dt)
	case s.fold != "Add":
		k.start = s.startOf(dt)
	case s.mean:
		k.divide = elem.FoldOf("Div", dt)
	}
	return k.run, nil
}

type sortedSegment struct {
	empty, start *exec.Tensor // nil for 0, and where start is empty
	fold, divide elem.Fold    // divide is nil but for a mean
}

func (s *sortedSegment) run(c *exec.KernelContext) error {
	x, ids := c.In(0), c.In(1)
	if len(x.Shape) == 0 || len(ids.Shape) != 1 || ids.Shape[0] != x.Shape[0] {
		return c.Invalid("segments %s do not fit %s", ids.Describe(), x.Describe())
	}
	n, err := elem.SegmentCount(c, ids)
	if err != nil {
		return err
	}
	d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), n), x.Shape[1:]...)...)
	if s.empty != nil {
		elem.Fill(d, s.empty)
	} else {
		elem.Zero(d)
	}
	row := exec.NumElements(x.Shape[1:])
	at := c.ScratchInts(1, x.Shape[0])
	for k := range at {
		at[k] = ids.IntAt(k) * row
		if s.start == nil || k > 0 && at[k] == at[k-1] {
			continue
		}
		for j := range row {
			exec.CopyElems(d, at[k]+j, s.start, 0, 1)
		}
	}
	s.fold(d, at, x, row, row)
	if s.divide == nil {
		return nil
	}
	return s.toMeans(c, d, ids, row)
}

// toMeans divides the sum of each segment by the number of its rows.
func (s *sortedSegment) toMeans(c *exec.KernelContext, d, ids *exec.Tensor, row int) error {
	count, at := exec.InFrame[exec.Tensor](c), c.ScratchInts(1, row)
	for k := 0; k < ids.Shape[0]; {
		id, first := ids.IntAt(k), k
		for k < ids.Shape[0] && ids.IntAt(k) == id {
			k++
		}
		setCount(count, d.DType, k-first)
		if exec.RealTypes.Has(d.DType) && elem.RealAt(count, 0) != float64(k-first) {
			return c.Invalid("segment %d has %d rows, more than a %s counts", id, k-first, exec.TypeName(d.DType))
		}
		for j := range at {
			at[j] = id*row + j
		}
		s.divide(d, at, count, 0, 1)
	}
	return nil
}

func sparseToDense(c *exec.KernelContext) error {
	idx, shape, values, def := c.In(0), c.In(1), c.In(2), c.In(3)
	dims := c.IntsOf(1, shape)
	if len(shape.Shape) != 1 || def.NumElements() != 1 {
		return c.Invalid("shape %s, default %s", shape.Describe(), def.Describe())
	}
	n := 1
	if len(idx.Shape) > 0 {
		n = idx.Shape[0]
	}
	if idx.NumElements() != n*len(dims) || values.NumElements() != n && len(values.Shape) != 0 {
		return c.Invalid("indices %s and values %s do not fit the shape %s", idx.Describe(), values.Describe(), exec.ShapeString(dims))
	}
	d := c.Out(0, values.DType, dims...)
	elem.Fill(d, def)
	for k := range n {
		at, ok := flatIndex(idx, k, d.Shape)
		if !ok {
			return badIndex(c, idx, k, d.Shape)
		}
		from := k
		if len(values.Shape) == 0 {
			from = 0
		}
		exec.CopyElems(d, at, values, from, 1)
	}
	return nil
}
