package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Patches of images.
var imagePatchesOps = exec.OpTable{
	"ExtractImagePatches": {Types: exec.PlainTypes | exec.Halves | exec.ComplexTypes, Build: buildPatches},
}

// patchWindow returns the window of an op whose dilations are called rates.
func patchWindow(b *exec.OpConstruction) window {
	w := window{padding: b.String("padding")}
	if w.padding != "SAME" && w.padding != "VALID" {
		b.Fail("attribute padding is %q", w.padding)
	}
	w.sh, w.sw = spatial(b, "strides", 1)
	w.dh, w.dw = spatial(b, "rates", 1)
	return w
}

// buildPatches builds the op that lays the pixels under each position of a
// window out in the channels; outside the image they are zero.
func buildPatches(b *exec.OpConstruction) (exec.Kernel, error) {
	w := patchWindow(b)
	kh, kw := spatial(b, "ksizes", 0)
	if kh < 1 || kw < 1 {
		b.Fail("attribute ksizes is missing")
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		g, err := w.geometry(c, x.Shape, kh, kw)
		if err != nil {
			return err
		}
		c.CheckSize([]int{kh, kw, g.cin}, 1)
		d := c.Out(0, x.DType, g.batch, g.h.out, g.w.out, g.column)
		elem.Zero(d)
		g.taps(func(out, from, k int) {
			exec.CopyElems(d, out*g.column+k*g.cin, x, from*g.cin, g.cin)
		})
		return nil
	}, nil
}
