package math

import (
	"math"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildArg(largest bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		out := b.DType("output_type")
		if !(exec.Indices | exec.SetOf(exec.Int16, exec.Uint16)).Has(out) {
			b.Fail("no kernel for output_type=%s", exec.TypeName(out))
		}
		if largest {
			return exec.ByType(b.DType("T"), arg[float32](out, true, float32(math.Inf(-1))), arg[float64](out, true, math.Inf(-1)),
				arg[int32](out, true, math.MinInt32), arg[int64](out, true, math.MinInt64))
		}
		return exec.ByType(b.DType("T"), arg[float32](out, false, float32(math.Inf(1))), arg[float64](out, false, math.Inf(1)),
			arg[int32](out, false, math.MaxInt32), arg[int64](out, false, math.MaxInt64))
	}
}

// arg is the kernel that finds where along an axis the best element is, the
// first of equals. Nothing is better than NaN, so that is passed over, and place 0
// is where nothing is better than worst.
func arg[T exec.Number](out tfpb.DataType, largest bool, worst T) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		a, err := c.Axis(1, len(x.Shape))
		if err != nil {
			return err
		}
		if x.Shape[a] == 0 {
			return c.Invalid("axis %d of %s has no elements to choose from", a, x.Describe())
		}
		shape := append(append(c.ScratchInts(0, 0), x.Shape[:a]...), x.Shape[a+1:]...)
		w := exec.InFrame[choices[T]](c)
		*w = choices[T]{largest: largest, worst: worst, n: x.Shape[a], inner: exec.NumElements(x.Shape[a+1:]), x: exec.Elems[T](x), d: c.Out(0, out, shape...)}
		w.count = w.d.NumElements()
		if len(w.x) < elem.ParallelElements {
			w.Part(0, 1)
		} else {
			parallel.Run(exec.MaxParts, w)
		}
		*w = choices[T]{}
		return nil
	}
}

// choices are the places of the best elements, one for each result, which processors share.
type choices[T exec.Number] struct {
	largest         bool
	worst           T
	n, inner, count int
	x               []T
	d               *exec.Tensor
}

// Part implements [parallel.Job].
func (w *choices[T]) Part(i, n int) {
	from, to := parallel.Span(w.count, elem.SpreadStep, i, n)
	for o := from; o < to; o++ {
		x := w.x[o/w.inner*w.n*w.inner+o%w.inner:]
		if w.largest {
			exec.SetInt(w.d, o, placeOfLargest(x, w.n, w.inner, w.worst))
		} else {
			exec.SetInt(w.d, o, placeOfSmallest(x, w.n, w.inner, w.worst))
		}
	}
}

func placeOfLargest[T exec.Number](x []T, n, step int, best T) (place int) {
	for k, at := 0, 0; k < n; k, at = k+1, at+step {
		if v := x[at]; v > best {
			best, place = v, k
		}
	}
	return place
}

func placeOfSmallest[T exec.Number](x []T, n, step int, best T) (place int) {
	for k, at := 0, 0; k < n; k, at = k+1, at+step {
		if v := x[at]; v < best {
			best, place = v, k
		}
	}
	return place
}
