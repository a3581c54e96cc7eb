package math

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// lattice is a complex tensor in double precision.
type lattice struct {
	shape []int
	data  []complex128
}

func latticeOf(c *exec.KernelContext, t *exec.Tensor) *lattice {
	l := &lattice{shape: append([]int{}, t.Shape...), data: make([]complex128, c.CheckSize(t.Shape, 16))}
	switch t.DType {
	case exec.Complex64:
		for i, z := range exec.Elems[complex64](t) {
			l.data[i] = complex128(z)
		}
	case exec.Complex128:
		copy(l.data, exec.Elems[complex128](t))
	case exec.Float32:
		for i, v := range exec.Elems[float32](t) {
			l.data[i] = complex(float64(v), 0)
		}
	case exec.Bool:
		for i, v := range exec.Elems[bool](t) {
			l.data[i] = complex(elem.OneIf[float64](v), 0)
		}
	default:
		for i := range l.data {
			l.data[i] = complex(elem.RealAt(t, i), 0)
		}
	}
	return l
}

// store makes l an output of type dt.
func storeLattice(c *exec.KernelContext, l *lattice, dt tfpb.DataType) {
	d := c.Out(0, dt, l.shape...)
	switch dt {
	case exec.Complex64:
		storeAs(d, l, func(z complex128) complex64 { return complex64(z) })
	case exec.Complex128:
		copy(exec.Elems[complex128](d), l.data)
	case exec.Float32:
		storeAs(d, l, func(z complex128) float32 { return float32(real(z)) })
	case exec.Float64:
		storeAs(d, l, func(z complex128) float64 { return real(z) })
	}
}

func storeAs[T exec.Element](d *exec.Tensor, l *lattice, as func(z complex128) T) {
	ds := exec.Elems[T](d)
	for i, z := range l.data {
		ds[i] = as(z)
	}
}
