package array

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Sums, products and extremes of the rows of a tensor that belong to one segment.
var segmentOps = exec.OpTable{
	"UnsortedSegmentSum":  {Types: exec.Indices | exec.SetOf(exec.Int16), TypeAttr: "Tindices", Build: exec.CheckedType("T", foldTypes("Add"), exec.WidenedIndices("Tindices", buildUnsortedSum, 1))},
	"UnsortedSegmentProd": {Types: exec.Numbers, Build: buildUnsorted(segmentProd)},
	"UnsortedSegmentMax":  {Types: exec.Numbers, Build: buildUnsorted(segmentMax)},
	"UnsortedSegmentMin":  {Types: exec.Numbers, Build: buildUnsorted(segmentMin)},
	"SegmentSum":          {Types: exec.Numbers, Build: buildSorted(segmentSum)},
	"SegmentMean":         {Types: exec.Numbers, Build: buildSorted(segmentMean)},
	"SegmentProd":         {Types: exec.Numbers, Build: buildSorted(segmentProd)},
	"SegmentMax":          {Types: exec.Numbers, Build: buildSorted(segmentMax)},
	"SegmentMin":          {Types: exec.Numbers, Build: buildSorted(segmentMin)},

	"SparseToDense": {Types: exec.ValueTypes, Build: exec.WithoutAttrs(sparseToDense)},
}

// segment says how the rows of a segment become one: the value of an empty
// segment, the start and the operation, and whether to divide by the number of
// rows.
type segment int

func segmentFold[T exec.Number](s segment) (init T, f func(a, x T) T) {
	lowest, highest := limits[T]()
	switch s {
	case segmentProd:
		return 1, combiner[T]("Mul")
	case segmentMax:
		return lowest, elem.LaterLarger[T]
	case segmentMin:
		return highest, elem.LaterSmaller[T]
	}
	return 0, combiner[T]("Add")
}

// limits returns the lowest and the highest finite value of the common types.
func limits[T exec.Number]() (T, T) {
	var lo, hi any
	switch exec.DTypeOf[T]() {
	case exec.Float32:
		lo, hi = float32(-math.MaxFloat32), float32(math.MaxFloat32)
	case exec.Float64:
		lo, hi = -math.MaxFloat64, math.MaxFloat64
	case exec.Int32:
		lo, hi = int32(math.MinInt32), int32(math.MaxInt32)
	default:
		lo, hi = int64(math.MinInt64), int64(math.MaxInt64)
	}
	l, _ := lo.(T)
	h, _ := hi.(T)
	return l, h
}

func buildUnsorted(s segment) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), unsortedFold[float32](s), unsortedFold[float64](s), unsortedFold[int32](s), unsortedFold[int64](s))
	}
}

// unsortedFold is the kernel for an op that is not a sum.
func unsortedFold[T exec.Number](s segment) exec.Kernel {
	init, f := segmentFold[T](s)
	start := func(d *exec.Tensor) {
		for i, ds := 0, exec.Elems[T](d); i < len(ds); i++ {
			ds[i] = init
		}
	}
	return unsortedSegment(start, foldElems(f))
}

func buildUnsortedSum(b *exec.OpConstruction) (exec.Kernel, error) {
	return unsortedSegment(elem.Zero, sumOfRows(b.DType("T"))), nil
}

// sumOfRows returns the fold that adds rows of a type, in vectors where it can.
func sumOfRows(dt tfpb.DataType) fold {
	switch dt {
	case exec.Float32:
		return addRow[float32]
	case exec.Float64:
		return addRow[float64]
	case exec.Int32:
		return addRow[int32]
	case exec.Int64:
		return addRow[int64]
	}
	return foldOf("Add", dt)
}

// unsortedSegment is the kernel that folds the rows of each segment; rows of
// negative segments are dropped. All segments start as start has them.
func unsortedSegment(start func(*exec.Tensor), f fold) exec.Kernel {
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
		start(d)
		if x.NumElements() == 0 { // then TensorFlow does not look at the segments
			return nil
		}
		for k, id := range c.IntsOf(1, ids) {
			if id >= n {
				return c.Invalid("segment %d is outside [0, %d)", id, n)
			}
			if id >= 0 {
				f(d, id*row, x, k*row, row)
			}
		}
		return nil
	}
}

// addRow is a fold that adds a row to another one.
func addRow[T exec.Number](d *exec.Tensor, at int, x *exec.Tensor, from, n int) {
	const short = 16 // elements that vectors are not worth
	to, row := exec.Elems[T](d)[at:at+n], exec.Elems[T](x)[from:from+n]
	if n > short {
		elem.AddTo(to, row)
		return
	}
	for j, v := range row {
		to[j] += v
	}
}

func buildSorted(s segment) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), sortedSegment[float32](s), sortedSegment[float64](s), sortedSegment[int32](s), sortedSegment[int64](s))
	}
}

// sortedSegment is the kernel that folds runs of rows; empty segments are 0,
// products 1.
func sortedSegment[T exec.Number](s segment) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, ids := c.In(0), c.In(1)
		if len(x.Shape) == 0 || len(ids.Shape) != 1 || ids.Shape[0] != x.Shape[0] {
			return c.Invalid("segments %s do not fit %s", ids.Describe(), x.Describe())
		}
		n, err := elem.SegmentCount(c, ids)
		if err != nil {
			return err
		}
		d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), n), x.Shape[1:]...)...)
		elem.Zero(d)
		row := exec.NumElements(x.Shape[1:])
		xs, ds := exec.Elems[T](x), exec.Elems[T](d)
		init, f := segmentFold[T](s)
		for i := 0; s == segmentProd && i < len(ds); i++ {
			ds[i] = init
		}
		for k := 0; k < x.Shape[0]; {
			id := ids.IntAt(k)
			to := ds[id*row : (id+1)*row]
			for j := range to {
				to[j] = init
			}
			first := k
			for ; k < x.Shape[0] && ids.IntAt(k) == id; k++ {
				for j, v := range xs[k*row : (k+1)*row] {
					to[j] = f(to[j], v)
				}
			}
			for j := 0; s == segmentMean && j < row; j++ {
				to[j] /= T(k - first)
			}
		}
		return nil
	}
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
