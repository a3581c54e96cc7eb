package graph

import (
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// gradStop lets nothing back.
func gradStop(b *backward) []Output { return make([]Output, len(b.n.inputs)) }

func gradSquaredDifference(b *backward) []Output {
	x, y := b.n.inputs[0], b.n.inputs[1]
	twice := b.Mul("Mul", b.Const("scalar", literal.Float(2)), b.grads[0])
	gx := b.Mul("Mul_1", twice, b.Sub("sub", x, y))
	var gy Output
	if b.wants[1] {
		gy = b.Neg("Neg", gx)
	}
	return b.unbroadcast(gx, gy)
}

func gradRsqrt(b *backward) []Output {
	return []Output{b.elementwise("RsqrtGrad", "", b.n.Output(0), b.grads[0])}
}

func gradSelect(b *backward) []Output {
	condition, zeros := b.n.inputs[0], b.zerosLike("zeros_like", b.grads[0])
	out := make([]Output, 3)
	if b.wants[1] {
		out[1] = b.SelectV2("SelectV2", condition, b.grads[0], zeros)
	}
	if b.wants[2] {
		out[2] = b.SelectV2("SelectV2_1", condition, zeros, b.grads[0])
	}
	return out
}

// keepsDims reports whether a reduction leaves its axes as dimensions of one.
func (b *backward) keepsDims() bool { return b.n.def.Attr["keep_dims"].GetB() }

// repeat is the gradient of a sum that kept its dimensions.
func (b *backward) repeat(shape Output) Output {
	return b.broadcastTo("BroadcastTo", b.grads[0], shape, b.n.inputs[0].Shape())
}

// gradMeanKept is the gradient of a mean that kept its dimensions.
func gradMeanKept(b *backward) []Output {
	shape := b.ShapeOf("Shape", b.n.inputs[0])
	sum := b.repeat(shape)
	sizes := b.Elements("Gather", shape, b.n.inputs[1])
	count := b.reduce("Prod", "Prod", sizes, b.Const("Const", literal.Int32s(0)), Shape{})
	return []Output{b.RealDiv("truediv", sum, b.Cast("Cast", count, sum.DType())), {}}
}

func gradConv2D(b *backward) []Output {
	x, kernel, g := b.n.inputs[0], b.n.inputs[1], b.grads[0]
	out := make([]Output, 2)
	if b.wants[0] {
		out[0] = b.Add(NodeSpec{
			Op: "Conv2DBackpropInput", Inputs: []Output{b.ShapeOf("ShapeN", x), kernel, g},
			Attrs: convAttrs(g.DType()), Outputs: []OutputType{{g.DType(), x.Shape()}},
		}).Output(0)
	}
	if b.wants[1] {
		out[1] = b.Add(NodeSpec{
			Op: "Conv2DBackpropFilter", Inputs: []Output{x, b.Const("Shape", shapeTensor(kernel.Shape())), g},
			Attrs: convAttrs(g.DType()), Outputs: []OutputType{{g.DType(), kernel.Shape()}},
		}).Output(0)
	}
	return out
}

func gradMaxPool(b *backward) []Output {
	x := b.n.inputs[0]
	attrs := Attrs{}
	for _, name := range []string{"T", "ksize", "strides", "padding", "explicit_paddings", "data_format"} {
		attrs[name] = b.n.def.Attr[name]
	}
	return []Output{b.Add(NodeSpec{
		Op: "MaxPoolGrad", Inputs: []Output{x, b.n.Output(0), b.grads[0]},
		Attrs: attrs, Outputs: []OutputType{{x.DType(), x.Shape()}},
	}).Output(0)}
}

// gradResourceGather gives the gradient of the rows that were read, not of the
// whole variable: a row for each index. See [Builder.indices].
func gradResourceGather(b *backward) []Output {
	g, indices := b.grads[0], b.n.inputs[1]
	width := b.n.outputs[0].Shape.Dims[indices.Shape().Rank():]
	rows := b.Reshape("Reshape", g, MakeShape(append([]int64{-1}, width...)...))
	b.SetIndices(rows, b.Reshape("Reshape_1", indices, MakeShape(-1)))
	return []Output{rows, {}}
}
