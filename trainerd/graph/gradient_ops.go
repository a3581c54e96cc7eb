package graph

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// gradients holds the ops that Builder.Gradients can go through.
var gradients = map[string]gradientFunc{
	"AddN":           gradAddN,
	"AddV2":          gradAdd,
	"BiasAdd":        gradBiasAdd,
	"Cast":           gradCast,
	"ConcatV2":       gradConcat,
	"Conv2D":         gradConv2D,
	"Identity":       passOn,
	"L2Loss":         gradL2Loss,
	"MatMul":         gradMatMul,
	"MaxPool":        gradMaxPool,
	"Mean":           gradMean,
	"Mul":            gradMul,
	"Neg":            gradNeg,
	"ReadVariableOp": passOn,
	"Relu":           gradFromOutput("ReluGrad", true),
	"Reshape":        gradReshape,
	"ResourceGather": gradResourceGather,
	"Rsqrt":          gradRsqrt,
	"SelectV2":       gradSelect,
	"Sigmoid":        gradFromOutput("SigmoidGrad", false),
	"Softplus":       gradSoftplus,
	"Square":         gradSquare,
	"StopGradient":   gradStop,
	"Sub":            gradSub,
	"Sum":            gradSum,
	"Tanh":           gradFromOutput("TanhGrad", false),

	"SparseSoftmaxCrossEntropyWithLogits": gradSparseSoftmaxCrossEntropy,
	"SquaredDifference":                   gradSquaredDifference,
}

func passOn(b *backward) []Output { return b.grads[:1] }

func gradAddN(b *backward) []Output {
	out := make([]Output, len(b.n.inputs))
	for i := range out {
		out[i] = b.grads[0]
	}
	return out
}

func gradAdd(b *backward) []Output { return b.unbroadcast(b.grads[0], b.grads[0]) }

func gradSub(b *backward) []Output {
	var gy Output
	if b.wants[1] {
		gy = b.Neg("Neg", b.grads[0])
	}
	return b.unbroadcast(b.grads[0], gy)
}

func gradMul(b *backward) []Output {
	var gx, gy Output
	if b.wants[0] {
		gx = b.Mul("Mul", b.grads[0], b.n.inputs[1])
	}
	if b.wants[1] {
		gy = b.Mul("Mul_1", b.grads[0], b.n.inputs[0])
	}
	return b.unbroadcast(gx, gy)
}

// unbroadcast sums the gradients of an element-wise op over the dimensions
// along which its inputs were repeated.
func (b *backward) unbroadcast(gx, gy Output) []Output {
	x, y := b.n.inputs[0], b.n.inputs[1]
	if sx, sy := x.Shape(), y.Shape(); sx.Equal(sy) && (sx.defined() || x == y) {
		return []Output{gx, gy}
	}
	shapeX, shapeY := b.ShapeOf("Shape", x), b.ShapeOf("Shape_1", y)
	axes := b.Add(NodeSpec{
		Op: "BroadcastGradientArgs", Inputs: []Output{shapeX, shapeY},
		Attrs: Attrs{"T": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{
			{tfpb.DataType_DT_INT32, MakeShape(-1)},
			{tfpb.DataType_DT_INT32, MakeShape(-1)},
		},
	})
	if b.wants[0] {
		gx = b.reshapeTo("Reshape", b.reduce("Sum", "Sum", gx, axes.Output(0), UnknownShape), shapeX, x.Shape())
	}
	if b.wants[1] {
		gy = b.reshapeTo("Reshape_1", b.reduce("Sum", "Sum_1", gy, axes.Output(1), UnknownShape), shapeY, y.Shape())
	}
	return []Output{gx, gy}
}

func gradNeg(b *backward) []Output { return []Output{b.Neg("Neg", b.grads[0])} }

func gradSquare(b *backward) []Output {
	x := b.n.inputs[0]
	two := b.Cast("Cast", b.Const("Const", literal.Float(2)), x.DType())
	return []Output{b.Mul("Mul_1", b.grads[0], b.Mul("Mul", x, two))}
}

func gradBiasAdd(b *backward) []Output {
	g := b.grads[0]
	bias := b.Add(NodeSpec{
		Op: "BiasAddGrad", Inputs: []Output{g},
		Attrs:   Attrs{"T": attr.Type(g.DType()), "data_format": attr.String("NHWC")},
		Outputs: []OutputType{{g.DType(), b.n.inputs[1].Shape()}},
	}).Output(0)
	return []Output{g, bias}
}

func gradMatMul(b *backward) []Output {
	x, y, g := b.n.inputs[0], b.n.inputs[1], b.grads[0]
	tx := b.n.def.Attr["transpose_a"].GetB()
	ty := b.n.def.Attr["transpose_b"].GetB()
	out := make([]Output, 2)
	switch {
	case !b.wants[0]:
	case tx:
		out[0] = b.MatMul("MatMul", y, g, ty, true)
	default:
		out[0] = b.MatMul("MatMul", g, y, false, !ty)
	}
	switch {
	case !b.wants[1]:
	case ty:
		out[1] = b.MatMul("MatMul_1", g, x, true, tx)
	default:
		out[1] = b.MatMul("MatMul_1", x, g, !tx, false)
	}
	return out
}

// gradFromOutput is the gradient of an activation that is computed from its
// result; TensorFlow's ops take gradient and result in either order.
func gradFromOutput(op string, gradFirst bool) gradientFunc {
	return func(b *backward) []Output {
		args := []Output{b.n.Output(0), b.grads[0]}
		if gradFirst {
			args[0], args[1] = args[1], args[0]
		}
		return []Output{b.elementwise(op, "", args...)}
	}
}

func gradSoftplus(b *backward) []Output {
	return []Output{b.elementwise("SoftplusGrad", "", b.grads[0], b.n.inputs[0])}
}

func gradL2Loss(b *backward) []Output {
	return []Output{b.Mul("mul", b.n.inputs[0], b.grads[0])}
}

func gradCast(b *backward) []Output {
	from := b.n.inputs[0].DType()
	if from != tfpb.DataType_DT_FLOAT && from != tfpb.DataType_DT_DOUBLE {
		return make([]Output, 1) // nothing flows into integers
	}
	return []Output{b.Cast("Cast", b.grads[0], from)}
}

func gradReshape(b *backward) []Output {
	x := b.n.inputs[0]
	return []Output{b.reshapeTo("Reshape", b.grads[0], b.ShapeOf("Shape", x), x.Shape()), {}}
}

func gradSum(b *backward) []Output {
	if b.keepsDims() {
		return []Output{b.repeat(b.ShapeOf("Shape", b.n.inputs[0])), {}}
	}
	return []Output{b.spread(b.ShapeOf("Shape", b.n.inputs[0])), {}}
}

func gradMean(b *backward) []Output {
	if b.keepsDims() {
		return gradMeanKept(b)
	}
	shape := b.ShapeOf("Shape", b.n.inputs[0])
	sum := b.spread(shape)
	count := b.reduce("Prod", "Prod", shape, b.Const("Const", literal.Int32s(0)), Shape{})
	return []Output{b.RealDiv("truediv", sum, b.Cast("Cast", count, sum.DType())), {}}
}

// spread repeats the gradient of a reduction to a scalar for every element.
func (b *backward) spread(shape Output) Output {
	grad, x := b.grads[0], b.n.inputs[0].Shape()
	if !b.n.Output(0).Shape().isScalar() || x.UnknownRank {
		b.Fail("node %s (%s): only a reduction of all elements to a scalar has a gradient", b.n.Name(), b.n.Op())
		return grad
	}
	ones := Shape{Dims: make([]int64, x.Rank())}
	for i := range ones.Dims {
		ones.Dims[i] = 1
	}
	return b.Add(NodeSpec{
		Op: "Tile", Inputs: []Output{b.Reshape("Reshape", grad, ones), shape},
		Attrs:   Attrs{"T": attr.Type(grad.DType()), "Tmultiples": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{grad.DType(), x}},
	}).Output(0)
}

// gradSparseSoftmaxCrossEntropy uses that the op's second output is the
// gradient for a loss of weight one.
func gradSparseSoftmaxCrossEntropy(b *backward) []Output {
	if b.grads[1].Valid() {
		b.Fail("node %s (%s): its second output has no gradient", b.n.Name(), b.n.Op())
	}
	g := b.grads[0]
	if !g.Valid() {
		return make([]Output, 2)
	}
	column := b.ExpandLast("ExpandDims", g)
	return []Output{b.Mul("mul", column, b.n.Output(1)), {}}
}
