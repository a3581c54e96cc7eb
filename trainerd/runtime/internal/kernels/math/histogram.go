package math

import (
	"math"
	"sort"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that count and search.
var histogramOps = exec.OpTable{
	"HistogramFixedWidth": {Types: exec.Numbers, Build: buildFixedWidth},
	"LowerBound":          {Types: exec.Numbers, Build: buildBound(true)},
	"UpperBound":          {Types: exec.Numbers, Build: buildBound(false)},

	"Bucketize": {Types: exec.Numbers, Build: buildBucketize},
}

func buildFixedWidth(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("dtype")
	return func(c *exec.KernelContext) error {
		x, limits := c.In(0), c.In(1)
		bins, err := c.IntScalar(2, "the number of bins")
		if err != nil {
			return err
		}
		if limits.NumElements() != 2 || bins < 1 {
			return c.Invalid("%d bins between the limits %s", bins, limits.Describe())
		}
		lo, hi := elem.RealAt(limits, 0), elem.RealAt(limits, 1)
		if !(lo < hi) {
			return c.Invalid("the lower limit %g is not below the upper one, %g", lo, hi)
		}
		d := c.Out(0, dt, bins)
		elem.Zero(d)
		step := (hi - lo) / float64(bins)
		for i := range x.NumElements() {
			at := math.Floor((elem.RealAt(x, i) - lo) / step)
			bin := max(0, int(math.Min(at, float64(bins-1))))
			exec.SetInt(d, bin, d.IntAt(bin)+1)
		}
		return nil
	}, nil
}

func buildBound(lower bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.IndexType("out_type")
		return exec.ByType(b.DType("T"), bound[float32](dt, lower), bound[float64](dt, lower), bound[int32](dt, lower), bound[int64](dt, lower))
	}
}

// bound is the kernel that finds, row by row, where values belong in sorted
// elements.
func bound[T exec.Number](dt tfpb.DataType, lower bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		sorted, values := c.In(0), c.In(1)
		if len(sorted.Shape) != 2 || len(values.Shape) != 2 || sorted.Shape[0] != values.Shape[0] {
			return c.Invalid("sorted elements %s and values %s must be matrices of as many rows", sorted.Describe(), values.Describe())
		}
		n, m := sorted.Shape[1], values.Shape[1]
		d := c.OutLike(0, dt, values)
		for i, v := range exec.Elems[T](values) {
			row := exec.Elems[T](sorted)[i/m*n : (i/m+1)*n]
			exec.SetInt(d, i, sort.Search(n, func(k int) bool { return row[k] > v || lower && row[k] == v }))
		}
		return nil
	}
}

// buildBucketize returns the number of boundaries that are not above a number.
func buildBucketize(b *exec.OpConstruction) (exec.Kernel, error) {
	var bounds []float64
	for _, v := range b.Attr("boundaries").GetList().GetF() {
		bounds = append(bounds, float64(v))
	}
	if !sort.Float64sAreSorted(bounds) {
		b.Fail("the boundaries are not sorted")
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := exec.Elems[int32](c.OutLike(0, exec.Int32, x))
		for i := range d {
			v := elem.RealAt(x, i)
			d[i] = int32(sort.Search(len(bounds), func(j int) bool { return v < bounds[j] }))
		}
		return nil
	}, nil
}
