package graph

import (
	"cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// The methods in this file add one op each and infer the type and shape of its
// outputs. An empty name means the op's type.

// Const adds a constant.
func (b *Builder) Const(name string, t *tfpb.TensorProto) Output {
	return b.Add(NodeSpec{
		Op: "Const", Name: name,
		Attrs:   Attrs{"dtype": attr.Type(t.GetDtype()), "value": attr.Tensor(t)},
		Outputs: []OutputType{{t.GetDtype(), ShapeFromProto(t.GetTensorShape())}},
	}).Output(0)
}

// Placeholder adds a tensor that the caller feeds.
func (b *Builder) Placeholder(name string, t tfpb.DataType, s Shape) Output {
	return b.Add(NodeSpec{
		Op: "Placeholder", Name: name,
		Attrs:   Attrs{"dtype": attr.Type(t), "shape": attr.Shape(s.Proto())},
		Outputs: []OutputType{{t, s}},
	}).Output(0)
}

// PlaceholderWithDefault adds a tensor that may be fed, and is in otherwise.
func (b *Builder) PlaceholderWithDefault(name string, in Output, s Shape) Output {
	return b.Add(NodeSpec{
		Op: "PlaceholderWithDefault", Name: name, Inputs: []Output{in},
		Attrs:   Attrs{"dtype": attr.Type(in.DType()), "shape": attr.Shape(s.Proto())},
		Outputs: []OutputType{{in.DType(), s}},
	}).Output(0)
}

// MatMul adds the product of two matrices, each transposed first if requested.
func (b *Builder) MatMul(name string, x, y Output, transposeX, transposeY bool) Output {
	rows, inner := matrixDims(x.Shape(), transposeX)
	inner2, cols := matrixDims(y.Shape(), transposeY)
	if inner >= 0 && inner2 >= 0 && inner != inner2 {
		b.Fail("node %s (MatMul): shapes %v and %v have different inner dimensions", b.scope+name, x.Shape(), y.Shape())
	}
	return b.Add(NodeSpec{
		Op: "MatMul", Name: name, Inputs: []Output{x, y},
		Attrs: Attrs{
			"T":           attr.Type(x.DType()),
			"transpose_a": attr.Bool(transposeX),
			"transpose_b": attr.Bool(transposeY),
		},
		Outputs: []OutputType{{x.DType(), MakeShape(rows, cols)}},
	}).Output(0)
}

func matrixDims(s Shape, transpose bool) (rows, cols int64) {
	if s.Rank() != 2 {
		return -1, -1
	}
	if transpose {
		return s.Dims[1], s.Dims[0]
	}
	return s.Dims[0], s.Dims[1]
}

// BiasAdd adds the vector bias to every row of x.
func (b *Builder) BiasAdd(name string, x, bias Output) Output {
	return b.Add(NodeSpec{
		Op: "BiasAdd", Name: name, Inputs: []Output{x, bias},
		Attrs:   Attrs{"T": attr.Type(x.DType()), "data_format": attr.String("NHWC")},
		Outputs: []OutputType{{x.DType(), x.Shape()}},
	}).Output(0)
}

// elementwise adds an op whose inputs have one type and whose output has that
// type and the inputs' common shape.
func (b *Builder) elementwise(op, name string, ins ...Output) Output {
	return b.elementwiseTo(op, name, ins[0].DType(), ins...)
}

func (b *Builder) elementwiseTo(op, name string, out tfpb.DataType, ins ...Output) Output {
	shape := ins[0].Shape()
	for _, in := range ins[1:] {
		s, err := shape.broadcast(in.Shape())
		if err != nil {
			b.Fail("node %s%s (%s): %w", b.scope, name, op, err)
		}
		if in.DType() != ins[0].DType() {
			b.Fail("node %s%s (%s): inputs of types %v and %v", b.scope, name, op, ins[0].DType(), in.DType())
		}
		shape = s
	}
	return b.Add(NodeSpec{
		Op: op, Name: name, Inputs: ins,
		Attrs:   Attrs{"T": attr.Type(ins[0].DType())},
		Outputs: []OutputType{{out, shape}},
	}).Output(0)
}

// Identity passes x on.
func (b *Builder) Identity(name string, x Output) Output { return b.elementwise("Identity", name, x) }

// Relu adds max(x, 0).
func (b *Builder) Relu(name string, x Output) Output { return b.elementwise("Relu", name, x) }

// Sigmoid adds 1 / (1 + exp(-x)).
func (b *Builder) Sigmoid(name string, x Output) Output { return b.elementwise("Sigmoid", name, x) }

// Tanh adds the hyperbolic tangent of x.
func (b *Builder) Tanh(name string, x Output) Output { return b.elementwise("Tanh", name, x) }

// Softplus adds log(1 + exp(x)), computed so that it does not overflow.
func (b *Builder) Softplus(name string, x Output) Output { return b.elementwise("Softplus", name, x) }

// Square adds x * x.
func (b *Builder) Square(name string, x Output) Output { return b.elementwise("Square", name, x) }

// Neg adds -x.
func (b *Builder) Neg(name string, x Output) Output { return b.elementwise("Neg", name, x) }

// Floor adds the largest integers not above x.
func (b *Builder) Floor(name string, x Output) Output { return b.elementwise("Floor", name, x) }

// AddV2 adds x + y, with broadcasting.
func (b *Builder) AddV2(name string, x, y Output) Output { return b.elementwise("AddV2", name, x, y) }

// Sub adds x - y, with broadcasting.
func (b *Builder) Sub(name string, x, y Output) Output { return b.elementwise("Sub", name, x, y) }

// Mul adds x * y, with broadcasting.
func (b *Builder) Mul(name string, x, y Output) Output { return b.elementwise("Mul", name, x, y) }

// RealDiv adds x / y, with broadcasting.
func (b *Builder) RealDiv(name string, x, y Output) Output {
	return b.elementwise("RealDiv", name, x, y)
}

// Pow adds x to the power of y, with broadcasting.
func (b *Builder) Pow(name string, x, y Output) Output { return b.elementwise("Pow", name, x, y) }

// Greater adds x > y, with broadcasting.
func (b *Builder) Greater(name string, x, y Output) Output {
	return b.elementwiseTo("Greater", name, tfpb.DataType_DT_BOOL, x, y)
}

// Equal adds x == y, with broadcasting.
func (b *Builder) Equal(name string, x, y Output) Output {
	out := b.elementwiseTo("Equal", name, tfpb.DataType_DT_BOOL, x, y)
	out.Node.def.Attr["incompatible_shape_error"] = attr.Bool(true)
	return out
}

// AddN adds the sum of tensors of one shape. A single one is passed on.
func (b *Builder) AddN(name string, xs ...Output) Output {
	if len(xs) == 1 {
		return xs[0]
	}
	if len(xs) == 0 {
		b.Fail("node %s%s (AddN): no inputs", b.scope, name)
		return Output{}
	}
	out := b.elementwise("AddN", name, xs...)
	out.Node.def.Attr["N"] = attr.Int(int64(len(xs)))
	return out
}

// Cast converts the elements of x.
func (b *Builder) Cast(name string, x Output, to tfpb.DataType) Output {
	return b.Add(NodeSpec{
		Op: "Cast", Name: name, Inputs: []Output{x},
		Attrs:   Attrs{"SrcT": attr.Type(x.DType()), "DstT": attr.Type(to), "Truncate": attr.Bool(false)},
		Outputs: []OutputType{{to, x.Shape()}},
	}).Output(0)
}

// ArgMax adds the index of the largest element along an axis, as DT_INT64.
func (b *Builder) ArgMax(name string, x Output, axis int32) Output {
	name = cmp.Or(name, "ArgMax")
	out := UnknownShape
	if r := int32(x.Shape().Rank()); axis >= 0 && axis < r {
		out = Shape{}
		out.Dims = append(out.Dims, x.Shape().Dims[:axis]...)
		out.Dims = append(out.Dims, x.Shape().Dims[axis+1:]...)
	}
	dim := b.Const(name+"/dimension", literal.Int32(axis))
	return b.Add(NodeSpec{
		Op: "ArgMax", Name: name, Inputs: []Output{x, dim},
		Attrs: Attrs{
			"T":           attr.Type(x.DType()),
			"Tidx":        attr.Type(tfpb.DataType_DT_INT32),
			"output_type": attr.Type(tfpb.DataType_DT_INT64),
		},
		Outputs: []OutputType{{tfpb.DataType_DT_INT64, out}},
	}).Output(0)
}

// Mean adds the mean of all elements of x, whose rank must be known.
func (b *Builder) Mean(name string, x Output) Output { return b.reduceAll("Mean", name, x) }

// Sum adds the sum of all elements of x, whose rank must be known.
func (b *Builder) Sum(name string, x Output) Output { return b.reduceAll("Sum", name, x) }

func (b *Builder) reduceAll(op, name string, x Output) Output {
	rank := x.Shape().Rank()
	if rank < 0 {
		b.Fail("node %s%s (%s): the rank of %s is not known", b.scope, name, op, x.Name())
		rank = 0
	}
	axes := make([]int32, rank)
	for i := range axes {
		axes[i] = int32(i)
	}
	return b.reduce(op, name, x, b.Const("Const", literal.Int32s(axes...)), Shape{})
}

// reduce adds a reduction along the given axes, whose result has shape out.
func (b *Builder) reduce(op, name string, x, axes Output, out Shape) Output {
	return b.Add(NodeSpec{
		Op: op, Name: name, Inputs: []Output{x, axes},
		Attrs: Attrs{
			"T":         attr.Type(x.DType()),
			"Tidx":      attr.Type(tfpb.DataType_DT_INT32),
			"keep_dims": attr.Bool(false),
		},
		Outputs: []OutputType{{x.DType(), out}},
	}).Output(0)
}

// L2Loss adds half the sum of the squares of x.
func (b *Builder) L2Loss(name string, x Output) Output {
	return b.Add(NodeSpec{
		Op: "L2Loss", Name: name, Inputs: []Output{x},
		Attrs:   Attrs{"T": attr.Type(x.DType())},
		Outputs: []OutputType{{x.DType(), Shape{}}},
	}).Output(0)
}

// SparseSoftmaxCrossEntropyWithLogits adds each row's loss for its class.
func (b *Builder) SparseSoftmaxCrossEntropyWithLogits(name string, logits, labels Output) Output {
	return b.Add(NodeSpec{
		Op: "SparseSoftmaxCrossEntropyWithLogits", Name: name, Inputs: []Output{logits, labels},
		Attrs: Attrs{"T": attr.Type(logits.DType()), "Tlabels": attr.Type(labels.DType())},
		Outputs: []OutputType{
			{logits.DType(), labels.Shape()},
			{logits.DType(), logits.Shape()},
		},
	}).Output(0)
}

// ShapeOf adds the shape of x as a vector of DT_INT32.
func (b *Builder) ShapeOf(name string, x Output) Output {
	rank := int64(x.Shape().Rank())
	return b.Add(NodeSpec{
		Op: "Shape", Name: name, Inputs: []Output{x},
		Attrs:   Attrs{"T": attr.Type(x.DType()), "out_type": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{tfpb.DataType_DT_INT32, MakeShape(rank)}},
	}).Output(0)
}

// Reshape gives x the given shape, in which one dimension may be -1: it
// follows from the number of elements.
func (b *Builder) Reshape(name string, x Output, shape Shape) Output {
	name = cmp.Or(name, "Reshape")
	return b.reshapeTo(name, x, b.Const(name+"/shape", shapeTensor(shape)), shape)
}

func (b *Builder) reshapeTo(name string, x, shape Output, known Shape) Output {
	return b.Add(NodeSpec{
		Op: "Reshape", Name: name, Inputs: []Output{x, shape},
		Attrs:   Attrs{"T": attr.Type(x.DType()), "Tshape": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{x.DType(), known}},
	}).Output(0)
}

// Fill adds a tensor of a known shape whose elements are all value, a scalar.
func (b *Builder) Fill(name string, shape Shape, value *tfpb.TensorProto) Output {
	name = cmp.Or(name, "Fill")
	dims := b.Const(name+"/shape_as_tensor", shapeTensor(shape))
	v := b.Const(name+"/Const", value)
	return b.Add(NodeSpec{
		Op: "Fill", Name: name, Inputs: []Output{dims, v},
		Attrs:   Attrs{"T": attr.Type(v.DType()), "index_type": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{v.DType(), shape}},
	}).Output(0)
}

// Pack stacks tensors of one shape along a new first axis.
func (b *Builder) Pack(name string, xs ...Output) Output {
	if len(xs) == 0 {
		b.Fail("node %s%s (Pack): no inputs", b.scope, name)
		return Output{}
	}
	shape := xs[0].Shape()
	if !shape.UnknownRank {
		shape = Shape{Dims: append([]int64{int64(len(xs))}, shape.Dims...)}
	}
	return b.Add(NodeSpec{
		Op: "Pack", Name: name, Inputs: xs,
		Attrs:   Attrs{"T": attr.Type(xs[0].DType()), "N": attr.Int(int64(len(xs))), "axis": attr.Int(0)},
		Outputs: []OutputType{{xs[0].DType(), shape}},
	}).Output(0)
}
