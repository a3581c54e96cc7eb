package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that add elements around a tensor.
var padOps = exec.OpTable{
	"Pad":           {Types: exec.ValueTypes, Build: exec.WithoutAttrs(pad)},
	"PadV2":         {Types: exec.ValueTypes, Build: exec.WithoutAttrs(pad)},
	"MirrorPad":     {Types: exec.ValueTypes, Build: buildMirrorPad},
	"MirrorPadGrad": {Types: exec.Floats, Build: buildMirrorPadGrad},
}

// paddings returns the rows of input 1, checked against x.
func paddings(c *exec.KernelContext, x *exec.Tensor) ([]int, error) {
	p := c.In(1)
	if len(p.Shape) != 2 || p.Shape[1] != 2 || p.Shape[0] != len(x.Shape) {
		return nil, c.Invalid("paddings %s do not fit %s", p.Describe(), x.Describe())
	}
	pads := c.IntsOf(1, p)
	for _, v := range pads {
		if v < 0 {
			return nil, c.Invalid("a padding is %d", v)
		}
	}
	return pads, ranked(c, x)
}

func pad(c *exec.KernelContext) error {
	x := c.In(0)
	pads, err := paddings(c, x)
	if err != nil {
		return err
	}
	shape := c.ScratchInts(0, len(x.Shape))
	for i, n := range x.Shape {
		shape[i] = pads[2*i] + n + pads[2*i+1]
	}
	d := c.Out(0, x.DType, shape...)
	elem.Zero(d)
	if c.NumInputs() == 3 {
		if c.In(2).NumElements() != 1 {
			return c.Invalid("the padding must be a scalar, not %s", c.In(2).Describe())
		}
		elem.Fill(d, c.In(2))
	}
	stride := elem.RowMajor(c, 2, shape)
	start := 0
	for i, s := range stride {
		start += pads[2*i] * s
	}
	elem.ScatterStrided(d, x, stride, start)
	return nil
}
