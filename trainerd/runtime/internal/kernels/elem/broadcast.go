package elem

import (
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Broadcast is the loop nest that combines two tensors of different shapes.
type Broadcast struct {
	Rank int
	Out  [exec.MaxRank]int // the result's shape
	// The loops, outermost first: neighbouring dimensions that both inputs
	// walk in step are one loop. A stride of 0 repeats the input.
	loops       int
	dim, sa, sb [exec.MaxRank]int
}

// Shape returns the result's shape.
func (b *Broadcast) Shape() []int { return b.Out[:b.Rank] }

// Init computes the loops for inputs of shapes x and y, or reports why they do
// not fit.
func (b *Broadcast) Init(x, y []int) error {
	b.Rank = max(len(x), len(y))
	if b.Rank > exec.MaxRank {
		return fmt.Errorf("shapes %s and %s have more than %d dimensions", exec.ShapeString(x), exec.ShapeString(y), exec.MaxRank)
	}
	var dx, dy [exec.MaxRank]int
	for i := range b.Rank {
		dx[i], dy[i] = DimFrom(x, b.Rank, i), DimFrom(y, b.Rank, i)
		switch {
		case dx[i] == dy[i] || dy[i] == 1:
			b.Out[i] = dx[i]
		case dx[i] == 1:
			b.Out[i] = dy[i]
		default:
			return fmt.Errorf("shapes %s and %s do not broadcast", exec.ShapeString(x), exec.ShapeString(y))
		}
	}
	b.collapse(&dx, &dy)
	return nil
}

// DimFrom is dimension i of a shape widened to rank by leading ones.
func DimFrom(shape []int, rank, i int) int {
	if i -= rank - len(shape); i >= 0 {
		return shape[i]
	}
	return 1
}

func (b *Broadcast) collapse(dx, dy *[exec.MaxRank]int) {
	b.loops = 0
	// From the innermost dimension out; reversed at the end.
	nx, ny := 1, 1
	modeOf := func(i int) int {
		switch {
		case dx[i] == dy[i]:
			return 0
		case dy[i] == 1:
			return 1
		}
		return 2
	}
	mode := -1
	for i := b.Rank - 1; i >= 0; i-- {
		if b.Out[i] == 1 {
			continue
		}
		m := modeOf(i)
		if m == mode {
			b.dim[b.loops-1] *= b.Out[i]
		} else {
			b.dim[b.loops], b.sa[b.loops], b.sb[b.loops] = b.Out[i], nx, ny
			if m == 1 {
				b.sb[b.loops] = 0
			}
			if m == 2 {
				b.sa[b.loops] = 0
			}
			b.loops++
			mode = m
		}
		nx *= dx[i]
		ny *= dy[i]
	}
	if b.loops == 0 {
		b.dim[0], b.sa[0], b.sb[0] = 1, 1, 1
		b.loops = 1
	}
	for i, j := 0, b.loops-1; i < j; i, j = i+1, j-1 {
		b.dim[i], b.dim[j] = b.dim[j], b.dim[i]
		b.sa[i], b.sa[j] = b.sa[j], b.sa[i]
		b.sb[i], b.sb[j] = b.sb[j], b.sb[i]
	}
}

// Loops is one binary operation on a run of elements: both inputs running, or
// one of them standing still.
type Loops[T, R any] struct {
	Vv func(d []R, x, y []T)
	Vs func(d []R, x []T, y T)
	Sv func(d []R, x T, y []T)
}

// Elements returns the loops as chains need them.
func Elements(f *Loops[float32, float32]) *exec.Elements {
	return &exec.Elements{Vv: f.Vv, Vs: f.Vs, Sv: f.Sv}
}

// LoopsOf makes the loops of a function of two elements.
func LoopsOf[T, R any](f func(x, y T) R) *Loops[T, R] {
	return &Loops[T, R]{
		Vv: func(d []R, x, y []T) {
			for i := range d {
				d[i] = f(x[i], y[i])
			}
		},
		Vs: func(d []R, x []T, y T) {
			for i := range d {
				d[i] = f(x[i], y)
			}
		},
		Sv: func(d []R, x T, y []T) {
			for i := range d {
				d[i] = f(x, y[i])
			}
		},
	}
}

// Zip runs a loop nest.
func Zip[T, R any](b *Broadcast, d []R, x, y []T, f *Loops[T, R]) {
	if len(d) == 0 {
		return
	}
	if vv, ok := any(f.Vv).(func(d, x, y []float32)); ok && b.zipShort(any(d).([]float32), any(x).([]float32), any(y).([]float32), vv) {
		return
	}
	inner := b.loops - 1
	n := b.dim[inner]
	var p place
	for o := 0; o < len(d); o += n {
		switch {
		case b.sa[inner] == 0:
			f.Sv(d[o:o+n], x[p.x], y[p.y:p.y+n])
		case b.sb[inner] == 0:
			f.Vs(d[o:o+n], x[p.x:p.x+n], y[p.y])
		default:
			f.Vv(d[o:o+n], x[p.x:p.x+n], y[p.y:p.y+n])
		}
		b.advance(&p, inner-1)
	}
}

// place is a place in the result of a broadcast.
type place struct {
	at   [exec.MaxRank]int // by loop
	x, y int               // of the elements there in the two inputs
}

// placeOf returns the place of a result.
func (b *Broadcast) placeOf(o int) (p place) {
	for i := b.loops - 1; i >= 0 && o > 0; i-- {
		p.at[i] = o % b.dim[i]
		o /= b.dim[i]
		p.x += p.at[i] * b.sa[i]
		p.y += p.at[i] * b.sb[i]
	}
	return p
}

// advance goes to the next place of a loop and of those around it.
func (b *Broadcast) advance(p *place, loop int) {
	for i := loop; i >= 0; i-- {
		p.x += b.sa[i]
		p.y += b.sb[i]
		if p.at[i]++; p.at[i] < b.dim[i] {
			return
		}
		p.x -= b.sa[i] * b.dim[i]
		p.y -= b.sb[i] * b.dim[i]
		p.at[i] = 0
	}
}

// Combine is the kernel of an operation on two tensors that are broadcast
// against each other; the result has type R.
func Combine[T, R exec.Element](f *Loops[T, R]) exec.Kernel {
	dt := exec.DTypeOf[R]()
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		if exec.SameShape(x.Shape, y.Shape) {
			z := c.OutLike(0, dt, x)
			f.Vv(exec.Elems[R](z), exec.Elems[T](x), exec.Elems[T](y))
			return nil
		}
		var b Broadcast
		if err := b.Init(x.Shape, y.Shape); err != nil {
			return c.Invalid("%v", err)
		}
		z := c.Out(0, dt, b.Shape()...)
		zipShared(c, &b, exec.Elems[R](z), exec.Elems[T](x), exec.Elems[T](y), f)
		return nil
	}
}

// Pairs calls f with each result's number and the numbers of the two inputs it
// is made of.
func (b *Broadcast) Pairs(f func(o, x, y int)) { b.PairsIn(0, exec.NumElements(b.Shape()), f) }

// PairsIn is Pairs for some of the results.
func (b *Broadcast) PairsIn(from, to int, f func(o, x, y int)) {
	p := b.placeOf(from)
	for o := from; o < to; o++ {
		f(o, p.x, p.y)
		b.advance(&p, b.loops-1)
	}
}

// OutShaped returns output 0 with the shape that input i holds.
func OutShaped(c *exec.KernelContext, i int, dt tfpb.DataType) (*exec.Tensor, error) {
	s := c.In(i)
	if !exec.Indices.Has(s.DType) || len(s.Shape) > 1 {
		return nil, c.Invalid("the shape must be a vector of integers, not %s", s.Describe())
	}
	return c.Out(0, dt, c.IntsOf(0, s)...), nil
}
