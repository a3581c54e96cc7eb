package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that repeat tensors to larger shapes.
var broadcastOps = exec.OpTable{
	"BroadcastTo":           {Types: exec.ValueTypes, Build: buildMove(broadcastTo[uint8], broadcastTo[uint16], broadcastTo[uint32], broadcastTo[uint64], broadcastTo[complex128], broadcastTo[[]byte])},
	"BroadcastArgs":         {Types: exec.Indices, Build: exec.WithoutAttrs(broadcastArgs)},
	"BroadcastGradientArgs": {Types: exec.Indices, Build: buildBroadcastGradientArgs},
}

func broadcastTo[T exec.Element](c *exec.KernelContext) error {
	x := c.In(0)
	s := c.In(1)
	if len(s.Shape) != 1 {
		return c.Invalid("the shape must be a vector, not %s", s.Describe())
	}
	shape := c.IntsOf(0, s)
	var b elem.Broadcast
	if err := b.Init(shape, x.Shape); err != nil {
		return c.Invalid("%v", err)
	}
	if !exec.SameShape(b.Shape(), shape) {
		return c.Invalid("shape %s does not broadcast to %s", exec.ShapeString(x.Shape), exec.ShapeString(shape))
	}
	xs, d := exec.Elems[T](x), exec.Elems[T](c.Out(0, x.DType, shape...))
	elem.Spread(c, d, xs, shape, x.Shape)
	return nil
}

func broadcastArgs(c *exec.KernelContext) error {
	x, y := c.IntsOf(0, c.In(0)), c.IntsOf(1, c.In(1))
	var b elem.Broadcast
	if err := b.Init(x, y); err != nil {
		return c.Invalid("%v", err)
	}
	d := c.Out(0, c.In(0).DType, b.Rank)
	for i, v := range b.Shape() {
		exec.SetInt(d, i, v)
	}
	return nil
}

func buildBroadcastGradientArgs(b *exec.OpConstruction) (exec.Kernel, error) {
	return broadcastGradientArgs, nil
}

// broadcastGradientArgs returns, for each of two shapes, the axes along which
// the gradient of a broadcast operation must be summed. As in TensorFlow, a
// dimension of one on both sides is summed as well, which changes nothing.
func broadcastGradientArgs(c *exec.KernelContext) error {
	x, y := c.IntsOf(0, c.In(0)), c.IntsOf(1, c.In(1))
	var b elem.Broadcast
	if err := b.Init(x, y); err != nil {
		return c.Invalid("%v", err)
	}
	rx, ry := c.ScratchInts(2, 0), c.ScratchInts(3, 0)
	same := exec.SameShape(x, y)
	for i := range b.Rank {
		if !same && elem.DimFrom(x, b.Rank, i) == 1 {
			rx = append(rx, i)
		}
		if !same && elem.DimFrom(y, b.Rank, i) == 1 {
			ry = append(ry, i)
		}
	}
	for k, axes := range [][]int{rx, ry} {
		d := c.Out(k, c.In(0).DType, len(axes))
		for i, a := range axes {
			exec.SetInt(d, i, a)
		}
	}
	return nil
}
