package elem

import (
	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// conversion applies a function to each element, on several processors when they are many.
type conversion[S, D exec.Element] struct {
	f func(S) D
	d []D
	x []S
}

// Part implements [parallel.Job].
func (w *conversion[S, D]) Part(i, n int) {
	from, to := parallel.Span(len(w.d), SpreadStep, i, n)
	d := w.d[from:to]
	for i, v := range w.x[from:to] {
		d[i] = w.f(v)
	}
}

// Convert is the kernel of a function of one element that changes its type.
func Convert[S, D exec.Element](f func(S) D) exec.Kernel {
	dt := exec.DTypeOf[D]()
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		w := exec.InFrame[conversion[S, D]](c)
		*w = conversion[S, D]{f, exec.Elems[D](c.OutLike(0, dt, x)), exec.Elems[S](x)}
		if len(w.d) < ParallelElements {
			w.Part(0, 1)
		} else {
			parallel.Run(exec.MaxParts, w)
		}
		*w = conversion[S, D]{}
		return nil
	}
}

// Unary is the kernel of a function of one element.
func Unary[T exec.Element](f func(T) T) exec.Kernel { return Convert(f) }

// ConvertBool is Convert of booleans to 1 and 0.
func ConvertBool[D exec.Number](c *exec.KernelContext) error {
	x := c.In(0)
	d := exec.Elems[D](c.OutLike(0, exec.DTypeOf[D](), x))
	for i, v := range x.Data[:len(d)] { // a byte for each
		d[i] = D(v)
	}
	return nil
}

// OneIf returns 1 or 0.
func OneIf[T exec.Number](v bool) T {
	if v {
		return 1
	}
	return 0
}

// ConvertSlices is the kernel of a function of slices that makes elements another type.
func ConvertSlices[S, D exec.Element](dt tfpb.DataType, f func(d []D, x []S)) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		exec.ConvertSlices(c, f, exec.Elems[D](c.OutLike(0, dt, x)), exec.Elems[S](x))
		return nil
	}
}
