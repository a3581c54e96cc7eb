package array

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildWhere(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	var zero func(t *exec.Tensor, i int) bool
	switch {
	case dt == exec.Bool:
		zero = func(t *exec.Tensor, i int) bool { return !exec.Elems[bool](t)[i] }
	case exec.Indices.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return t.IntAt(i) == 0 }
	case exec.Floats.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return t.FloatAt(i) == 0 }
	case exec.RealTypes.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return elem.RealAt(t, i) == 0 }
	case exec.Halves.Has(dt):
		zero = func(t *exec.Tensor, i int) bool { return exec.Elems[uint16](t)[i]&0x7fff == 0 }
	case dt == exec.Complex64:
		zero = func(t *exec.Tensor, i int) bool { return exec.Elems[complex64](t)[i] == 0 }
	case dt == exec.Complex128:
		zero = func(t *exec.Tensor, i int) bool { return exec.Elems[complex128](t)[i] == 0 }
	default:
		b.Fail("no kernel for T=%s", exec.TypeName(dt))
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		found := c.ScratchInts(0, 0)
		if dt == exec.Bool {
			found = appendTrue(found, exec.Elems[bool](x))
		} else {
			for i := range x.NumElements() {
				if !zero(x, i) {
					found = append(found, i)
				}
			}
		}
		c.KeepInts(0, found)
		rank := len(x.Shape)
		d := exec.Elems[int64](c.Out(0, exec.Int64, len(found), rank))
		if rank == 1 {
			for k, i := range found {
				d[k] = int64(i)
			}
			return nil
		}
		for k, i := range found {
			for j := rank - 1; j >= 0; j-- {
				d[k*rank+j] = int64(i % x.Shape[j])
				i /= x.Shape[j]
			}
		}
		return nil
	}, nil
}

// appendTrue appends where the conditions hold.
func appendTrue(list []int, cond []bool) []int {
	list = slices.Grow(list, len(cond))
	list = list[:len(cond)]
	n := 0
	for i, v := range cond {
		list[n] = i
		if v {
			n++
		}
	}
	return list[:n]
}
