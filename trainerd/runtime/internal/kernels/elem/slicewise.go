package elem

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Element-wise kernels on whole slices of floats, shared between processors
// when they are long.

// ParallelElements is the number of elements from which a kernel is worth a
// second goroutine.
const ParallelElements = 1 << 16

// SpreadStep is the granularity of a split: whole cache lines.
const SpreadStep = 64

// Slicewise is a function that fills d from x and y, which have its length; y
// may be nil. It works element by element.
type Slicewise[T exec.Float] func(d, x, y []T)

// parallelSlices is a slicewise function at work on several processors. It is kept in
// the frame, so that a step does not allocate it.
type parallelSlices[T exec.Float] struct {
	f       Slicewise[T]
	left    func(d []T, x T, y []T) // for a scalar and x
	right   func(d, x []T, y T)     // for x and a scalar
	d, x, y []T
	scalar  T
	// row is the elements of a row when y is one row for all rows of x or, with left or
	// right, a number for each; else 0.
	row int
}

// Part implements [parallel.Job].
func (s *parallelSlices[T]) Part(i, n int) {
	if s.row > 0 {
		from, to := parallel.Span(len(s.d)/s.row, 1, i, n)
		s.rows(from, to)
		return
	}
	s.span(parallel.Span(len(s.d), SpreadStep, i, n))
}

// rows applies the function to some rows of x and the one row y, or their numbers of y.
func (s *parallelSlices[T]) rows(from, to int) {
	for r := from; r < to; r++ {
		d, x := s.d[r*s.row:(r+1)*s.row], s.x[r*s.row:(r+1)*s.row]
		switch {
		case s.left != nil:
			s.left(d, s.y[r], x)
		case s.right != nil:
			s.right(d, x, s.y[r])
		default:
			s.f(d, x, s.y)
		}
	}
}

// apply runs a slicewise function.
func (f Slicewise[T]) apply(c *exec.KernelContext, d, x, y []T) {
	shared(c, parallelSlices[T]{f: f, d: d, x: x, y: y})
}

// shared runs slices on this processor, or on several when they are long.
func shared[T exec.Float](c *exec.KernelContext, s parallelSlices[T]) {
	if len(s.d) < ParallelElements {
		s.span(0, len(s.d))
		return
	}
	shareOut(c, s)
}

// span fills the elements between two.
func (s *parallelSlices[T]) span(from, to int) {
	switch {
	case s.left != nil:
		s.left(s.d[from:to], s.scalar, s.x[from:to])
	case s.right != nil:
		s.right(s.d[from:to], s.x[from:to], s.scalar)
	case s.y == nil:
		s.f(s.d[from:to], s.x[from:to], nil)
	default:
		s.f(s.d[from:to], s.x[from:to], s.y[from:to])
	}
}

// ApplyRows runs a slicewise function on each row of d and x, y being a row.
func (f Slicewise[T]) ApplyRows(c *exec.KernelContext, d, x, y []T) {
	sharedRows(c, parallelSlices[T]{f: f, d: d, x: x, y: y, row: len(y)})
}

// sharedRows is shared for rows.
func sharedRows[T exec.Float](c *exec.KernelContext, s parallelSlices[T]) {
	if s.row == 0 {
		return
	}
	if len(s.d) < ParallelElements {
		s.rows(0, len(s.d)/s.row)
		return
	}
	shareOut(c, s)
}

func shareOut[T exec.Float](c *exec.KernelContext, s parallelSlices[T]) {
	p := exec.InFrame[parallelSlices[T]](c)
	*p = s
	parallel.Run(exec.MaxParts, p)
	*p = parallelSlices[T]{}
}

// SliceUnary is the kernel of a function of one tensor.
func SliceUnary[T exec.Float](f func(d, x []T)) exec.Kernel {
	each := Slicewise[T](func(d, x, _ []T) { f(d, x) })
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		each.apply(c, exec.Elems[T](c.OutOver(0, 0)), exec.Elems[T](x), nil)
		return nil
	}
}

// SlicePairwise is the kernel of a function of two tensors of one shape.
func SlicePairwise[T exec.Float](f Slicewise[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		if !exec.SameShape(x.Shape, y.Shape) {
			return c.Invalid("the inputs have the shapes %s and %s", exec.ShapeString(x.Shape), exec.ShapeString(y.Shape))
		}
		f.apply(c, exec.Elems[T](c.OutOver(0, 0, 1)), exec.Elems[T](x), exec.Elems[T](y))
		return nil
	}
}

// SliceCombine is combine for functions of whole slices.
func SliceCombine[T exec.Float](f *Loops[T, T]) exec.Kernel {
	general, same := Combine(f), Slicewise[T](f.Vv)
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		switch {
		case exec.SameShape(x.Shape, y.Shape):
			same.apply(c, exec.Elems[T](c.OutOver(0, 0, 1)), exec.Elems[T](x), exec.Elems[T](y))
		case y.NumElements() == 1 && len(y.Shape) <= len(x.Shape):
			shared(c, parallelSlices[T]{right: f.Vs, d: exec.Elems[T](c.OutOver(0, 0)), x: exec.Elems[T](x), scalar: exec.Elems[T](y)[0]})
		case x.NumElements() == 1 && len(x.Shape) <= len(y.Shape):
			shared(c, parallelSlices[T]{left: f.Sv, d: exec.Elems[T](c.OutOver(0, 1)), x: exec.Elems[T](y), scalar: exec.Elems[T](x)[0]})
		case rowOf(x.Shape, y.Shape):
			same.ApplyRows(c, exec.Elems[T](c.OutOver(0, 0)), exec.Elems[T](x), exec.Elems[T](y))
		case columnOf(x.Shape, y.Shape):
			sharedRows(c, parallelSlices[T]{right: f.Vs, d: exec.Elems[T](c.OutOver(0, 0)), x: exec.Elems[T](x), y: exec.Elems[T](y), row: x.Dim(-1)})
		case columnOf(y.Shape, x.Shape):
			sharedRows(c, parallelSlices[T]{left: f.Sv, d: exec.Elems[T](c.OutOver(0, 1)), x: exec.Elems[T](y), y: exec.Elems[T](x), row: y.Dim(-1)})
		default:
			return general(c)
		}
		return nil
	}
}

// rowOf reports whether row is the shape of the last dimension of x alone.
func rowOf(x, row []int) bool {
	n := len(row)
	return n > 0 && n <= len(x) && row[n-1] == x[len(x)-1] && exec.NumElements(row) == row[n-1]
}

// columnOf reports whether column has a number for each row of x.
func columnOf(x, column []int) bool {
	last := len(x) - 1
	return last >= 0 && len(column) == len(x) && column[last] == 1 && exec.SameShape(column[:last], x[:last])
}
