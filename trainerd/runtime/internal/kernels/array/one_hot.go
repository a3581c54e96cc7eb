package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildOneHot(b *exec.OpConstruction) (exec.Kernel, error) {
	axis := b.Int("axis")
	return func(c *exec.KernelContext) error {
		x, on, off := c.In(0), c.In(2), c.In(3)
		depth, err := c.IntScalar(1, "the depth")
		if err != nil {
			return err
		}
		a := axis
		if a < 0 {
			a += len(x.Shape) + 1
		}
		if depth < 0 || a < 0 || a > len(x.Shape) || len(on.Shape) != 0 || len(off.Shape) != 0 {
			return c.Invalid("indices %s with depth %d on axis %d, values %s and %s", x.Describe(), depth, axis, on.Describe(), off.Describe())
		}
		shape := append(append(append(c.ScratchInts(0, 0), x.Shape[:a]...), depth), x.Shape[a:]...)
		d := c.Out(0, on.DType, shape...)
		if err := elem.FillAll(c, d, off); err != nil {
			return err
		}
		inner := exec.NumElements(x.Shape[a:])
		for i := range x.NumElements() {
			hot := int(elem.SmallIntAt(x, i))
			if hot >= 0 && hot < depth {
				exec.CopyElems(d, (i/inner*depth+hot)*inner+i%inner, on, 0, 1)
			}
		}
		return nil
	}, nil
}
