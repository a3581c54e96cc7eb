package sparse

import (
	"math"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Sums and means of rows of a tensor that belong to one segment.
var sparseSegmentOps = exec.OpTable{
	"SparseSegmentSum":                  {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegment(weightOne))},
	"SparseSegmentMean":                 {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegment(weightMean))},
	"SparseSegmentSqrtN":                {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegment(weightSqrt))},
	"SparseSegmentSumWithNumSegments":   {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegment(weightOne))},
	"SparseSegmentMeanWithNumSegments":  {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegment(weightMean))},
	"SparseSegmentSqrtNWithNumSegments": {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegment(weightSqrt))},
	"SparseSegmentSumGrad":              {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegmentGrad(weightOne))},
	"SparseSegmentMeanGrad":             {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegmentGrad(weightMean))},
	"SparseSegmentSqrtNGrad":            {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSparseSegmentGrad(weightSqrt))},

	"SparseSegmentSumGradV2":   {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSegmentGradRows(weightOne))},
	"SparseSegmentMeanGradV2":  {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSegmentGradRows(weightMean))},
	"SparseSegmentSqrtNGradV2": {Types: exec.Floats | exec.Halves, Build: exec.Widened("T", buildSegmentGradRows(weightSqrt))},
}

// A weight is what each row of a segment of n rows counts.
func weightOne(int) float64 { return 1 }

func weightMean(n int) float64 { return 1 / float64(n) }

func weightSqrt(n int) float64 { return 1 / math.Sqrt(float64(n)) }

func buildSparseSegment(weight func(n int) float64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), sparseSegment[float32](weight), sparseSegment[float64](weight))
	}
}

// sparseSegment is the kernel that sums, per segment, the rows that idx names.
func sparseSegment[T exec.Float](weight func(n int) float64) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, idx, ids := c.In(0), c.In(1), c.In(2)
		if len(x.Shape) == 0 || len(ids.Shape) != 1 || !exec.SameShape(idx.Shape, ids.Shape) {
			return c.Invalid("indices %s and segments %s do not fit %s", idx.Describe(), ids.Describe(), x.Describe())
		}
		n, err := elem.SegmentCount(c, ids)
		if err == nil && c.NumInputs() > 3 {
			n, err = segmentsAsked(c, n)
		}
		if err != nil {
			return err
		}
		d := c.Out(0, x.DType, append(append(c.ScratchInts(0, 0), n), x.Shape[1:]...)...)
		elem.Zero(d)
		row := exec.NumElements(x.Shape[1:])
		xs, ds := exec.Elems[T](x), exec.Elems[T](d)
		for k := 0; k < ids.Shape[0]; {
			id, first := ids.IntAt(k), k
			to := ds[id*row : (id+1)*row]
			for ; k < ids.Shape[0] && ids.IntAt(k) == id; k++ {
				i := idx.IntAt(k)
				if i < 0 || i >= x.Shape[0] {
					return c.Invalid("index %d is %d, outside [0, %d)", k, i, x.Shape[0])
				}
				elem.AddTo(to, xs[i*row:(i+1)*row])
			}
			elem.MulScalar(to, to, T(weight(k-first)))
		}
		return nil
	}
}

// segmentsAsked returns the number of segments that input 3 asks for, at least
// n.
func segmentsAsked(c *exec.KernelContext, n int) (int, error) {
	asked, err := c.IntScalar(3, "the number of segments")
	if err == nil && asked < n {
		err = c.Invalid("%d segments asked for where there are %d", asked, n)
	}
	return asked, err
}

func buildSparseSegmentGrad(weight func(n int) float64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), sparseSegmentGrad[float32](weight), sparseSegmentGrad[float64](weight))
	}
}

func sparseSegmentGrad[T exec.Float](weight func(n int) float64) exec.Kernel {
	return func(c *exec.KernelContext) error {
		g, idx, ids := c.In(0), c.In(1), c.In(2)
		n, err := c.IntScalar(3, "the number of rows")
		if err != nil {
			return err
		}
		if n < 0 || len(g.Shape) == 0 || len(ids.Shape) != 1 || !exec.SameShape(idx.Shape, ids.Shape) {
			return c.Invalid("indices %s and segments %s do not fit %s", idx.Describe(), ids.Describe(), g.Describe())
		}
		counts := elem.Zeros(c, 1, g.Shape[0])
		for k := range ids.Shape[0] {
			if id := ids.IntAt(k); id < 0 || id >= len(counts) {
				return c.Invalid("segment %d is outside [0, %d)", id, len(counts))
			}
			counts[ids.IntAt(k)]++
		}
		d := c.Out(0, g.DType, append(append(c.ScratchInts(0, 0), n), g.Shape[1:]...)...)
		elem.Zero(d)
		row := exec.NumElements(g.Shape[1:])
		gs, ds := exec.Elems[T](g), exec.Elems[T](d)
		for k := range ids.Shape[0] {
			i, id := idx.IntAt(k), ids.IntAt(k)
			if i < 0 || i >= n {
				return c.Invalid("index %d is %d, outside [0, %d)", k, i, n)
			}
			w := T(weight(counts[id]))
			for j := range row {
				ds[i*row+j] += gs[id*row+j] * w
			}
		}
		return nil
	}
}

func buildSegmentGradRows(weight func(n int) float64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), segmentGradRows[float32](weight), segmentGradRows[float64](weight))
	}
}

// segmentGradRows is the kernel of a sparse segment sum's gradient that gives
// only the rows that are not zero, with their numbers in ascending order.
func segmentGradRows[T exec.Float](weight func(n int) float64) exec.Kernel {
	return func(c *exec.KernelContext) error {
		g, idx, ids := c.In(0), c.In(1), c.In(2)
		n, err := c.IntScalar(3, "the number of rows")
		if err != nil {
			return err
		}
		if len(g.Shape) == 0 || len(ids.Shape) != 1 || !exec.SameShape(idx.Shape, ids.Shape) {
			return c.Invalid("indices %s and segments %s do not fit %s", idx.Describe(), ids.Describe(), g.Describe())
		}
		if n == 0 { // then TensorFlow does not look at the rows
			c.Out(0, g.DType, append(append(c.ScratchInts(0, 0), 0), g.Shape[1:]...)...)
			c.Out(1, idx.DType, 0)
			return nil
		}
		counts := elem.Zeros(c, 1, g.Shape[0])
		for k := range ids.Shape[0] {
			id, i := ids.IntAt(k), idx.IntAt(k)
			if id < 0 || id >= len(counts) || i < 0 || i >= n {
				return c.Invalid("row %d or segment %d is outside [0, %d) or [0, %d)", i, id, n, len(counts))
			}
			counts[id]++
		}
		rows := c.IntsOf(2, idx)
		slices.Sort(rows)
		rows = slices.Compact(rows)
		numbers := c.Out(1, idx.DType, len(rows))
		for i, v := range rows {
			exec.SetInt(numbers, i, v)
		}
		d := c.Out(0, g.DType, append(append(c.ScratchInts(0, 0), len(rows)), g.Shape[1:]...)...)
		elem.Zero(d)
		row := exec.NumElements(g.Shape[1:])
		gs, ds := exec.Elems[T](g), exec.Elems[T](d)
		for k := range ids.Shape[0] {
			id := ids.IntAt(k)
			to, _ := slices.BinarySearch(rows, idx.IntAt(k))
			w := T(weight(counts[id]))
			for j := range row {
				ds[to*row+j] += gs[id*row+j] * w
			}
		}
		return nil
	}
}
