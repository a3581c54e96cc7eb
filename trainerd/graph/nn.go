package graph

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Rsqrt adds 1 / sqrt(x).
func (b *Builder) Rsqrt(name string, x Output) Output { return b.elementwise("Rsqrt", name, x) }

// Cos adds the cosine of x.
func (b *Builder) Cos(name string, x Output) Output { return b.elementwise("Cos", name, x) }

// Minimum adds the smaller of x and y, with broadcasting.
func (b *Builder) Minimum(name string, x, y Output) Output {
	return b.elementwise("Minimum", name, x, y)
}

// Maximum adds the larger of x and y, with broadcasting.
func (b *Builder) Maximum(name string, x, y Output) Output {
	return b.elementwise("Maximum", name, x, y)
}

// SquaredDifference adds (x - y) * (x - y), with broadcasting.
func (b *Builder) SquaredDifference(name string, x, y Output) Output {
	return b.elementwise("SquaredDifference", name, x, y)
}

// GreaterEqual adds x >= y, with broadcasting.
func (b *Builder) GreaterEqual(name string, x, y Output) Output {
	return b.elementwiseTo("GreaterEqual", name, tfpb.DataType_DT_BOOL, x, y)
}

// StopGradient passes x on and blocks its gradient.
func (b *Builder) StopGradient(name string, x Output) Output {
	return b.elementwise("StopGradient", name, x)
}

// SelectV2 adds x if the condition, a scalar, is true, else y.
func (b *Builder) SelectV2(name string, condition, x, y Output) Output {
	if !condition.Shape().isScalar() || !x.Shape().Equal(y.Shape()) {
		b.Fail("node %s%s (SelectV2): want a scalar condition and two values of one shape, got %v, %v and %v",
			b.scope, name, condition.Shape(), x.Shape(), y.Shape())
	}
	return b.Add(NodeSpec{
		Op: "SelectV2", Name: name, Inputs: []Output{condition, x, y},
		Attrs:   Attrs{"T": attr.Type(x.DType())},
		Outputs: []OutputType{{x.DType(), x.Shape()}},
	}).Output(0)
}

// MeanOver adds the mean of x along the given axes, which are kept with size
// one.
func (b *Builder) MeanOver(name string, x Output, axes ...int32) Output {
	return b.reduceKept("Mean", name, x, axes)
}

// SumOver adds the sum of x along the given axes, which are kept with size
// one.
func (b *Builder) SumOver(name string, x Output, axes ...int32) Output {
	return b.reduceKept("Sum", name, x, axes)
}

func (b *Builder) reduceKept(op, name string, x Output, axes []int32) Output {
	shape := Shape{Dims: slices.Clone(x.Shape().Dims)}
	for _, axis := range axes {
		if axis < 0 || int(axis) >= len(shape.Dims) {
			b.Fail("node %s%s (%s): %s has no axis %d", b.scope, name, op, x.Name(), axis)
			return x
		}
		shape.Dims[axis] = 1
	}
	out := b.reduce(op, name, x, b.Const(name+"/reduction_indices", literal.Int32s(axes...)), shape)
	out.Node.def.Attr["keep_dims"] = attr.Bool(true)
	return out
}

// broadcastTo repeats x to a shape, a vector of DT_INT32.
func (b *Builder) broadcastTo(name string, x, shape Output, known Shape) Output {
	return b.Add(NodeSpec{
		Op: "BroadcastTo", Name: name, Inputs: []Output{x, shape},
		Attrs:   Attrs{"T": attr.Type(x.DType()), "Tidx": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{x.DType(), known}},
	}).Output(0)
}

// zerosLike adds zeros of the shape of x.
func (b *Builder) zerosLike(name string, x Output) Output { return b.elementwise("ZerosLike", name, x) }

// ExpandLast adds a dimension of size one at the end of x.
func (b *Builder) ExpandLast(name string, x Output) Output {
	return b.Add(NodeSpec{
		Op: "ExpandDims", Name: name, Inputs: []Output{x, b.Const(name+"/dim", literal.Int32(-1))},
		Attrs:   Attrs{"T": attr.Type(x.DType()), "Tdim": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{x.DType(), MakeShape(append(slices.Clone(x.Shape().Dims), 1)...)}},
	}).Output(0)
}

// Conv2D adds the convolution of a batch of images [batch, height, width,
// channels] with a kernel [height, width, channels, filters]; the borders are
// padded with zeros, so that the images keep their size.
func (b *Builder) Conv2D(name string, x, kernel Output) Output {
	sx, sk := x.Shape(), kernel.Shape()
	if sx.Rank() != 4 || sk.Rank() != 4 || sx.Dims[3] != sk.Dims[2] {
		b.Fail("node %s%s (Conv2D): images have shape %v and the kernel %v; want rank 4 each, and the same number of channels", b.scope, name, sx, sk)
		return x
	}
	return b.Add(NodeSpec{
		Op: "Conv2D", Name: name, Inputs: []Output{x, kernel},
		Attrs:   convAttrs(x.DType()),
		Outputs: []OutputType{{x.DType(), MakeShape(sx.Dims[0], sx.Dims[1], sx.Dims[2], sk.Dims[3])}},
	}).Output(0)
}

func convAttrs(t tfpb.DataType) Attrs {
	return Attrs{
		"T": attr.Type(t), "strides": attr.Ints(1, 1, 1, 1), "dilations": attr.Ints(1, 1, 1, 1),
		"padding": attr.String("SAME"), "explicit_paddings": attr.Ints(), "data_format": attr.String("NHWC"),
		"use_cudnn_on_gpu": attr.Bool(true),
	}
}

// MaxPool adds the maximum of each square of size by size elements of a batch
// of images. A square at the border may be smaller.
func (b *Builder) MaxPool(name string, x Output, size int64) Output {
	s := x.Shape()
	if s.Rank() != 4 || size < 1 {
		b.Fail("node %s%s (MaxPool): want images and a size of 1 or more, got %v and %d", b.scope, name, s, size)
		return x
	}
	return b.Add(NodeSpec{
		Op: "MaxPool", Name: name, Inputs: []Output{x},
		Attrs:   poolAttrs(x.DType(), size),
		Outputs: []OutputType{{x.DType(), MakeShape(s.Dims[0], pooled(s.Dims[1], size), pooled(s.Dims[2], size), s.Dims[3])}},
	}).Output(0)
}

func poolAttrs(t tfpb.DataType, size int64) Attrs {
	return Attrs{
		"T": attr.Type(t), "ksize": attr.Ints(1, size, size, 1), "strides": attr.Ints(1, size, size, 1),
		"padding": attr.String("SAME"), "explicit_paddings": attr.Ints(), "data_format": attr.String("NHWC"),
	}
}

func pooled(n, size int64) int64 {
	if n < 0 {
		return n
	}
	return (n + size - 1) / size
}

// GatherVariable adds the rows of a variable at the given indices.
func (b *Builder) GatherVariable(name string, v *Variable, indices Output) Output {
	return b.Add(NodeSpec{
		Op: "ResourceGather", Name: name, Inputs: []Output{v.handle, indices},
		Attrs: Attrs{
			"dtype": attr.Type(v.DType), "Tindices": attr.Type(indices.DType()),
			"batch_dims": attr.Int(0), "validate_indices": attr.Bool(true),
		},
		Outputs: []OutputType{{v.DType, MakeShape(slices.Concat(indices.Shape().Dims, v.Shape.Dims[1:])...)}},
	}).Output(0)
}

// Elements adds the elements of the vector x at the given indices.
func (b *Builder) Elements(name string, x, indices Output) Output {
	axis := b.Const(name+"/axis", literal.Int32(0))
	return b.Add(NodeSpec{
		Op: "GatherV2", Name: name, Inputs: []Output{x, indices, axis},
		Attrs: Attrs{
			"Tparams": attr.Type(x.DType()), "Tindices": attr.Type(indices.DType()),
			"Taxis": attr.Type(axis.DType()), "batch_dims": attr.Int(0),
		},
		Outputs: []OutputType{{x.DType(), indices.Shape()}},
	}).Output(0)
}

// Dropout sets elements of x to zero, each with the probability rate, and
// scales the others up so that the sum stays about the same. The dropped
// elements are a function of the seed and the step, so a resumed training
// drops the same ones.
func (b *Builder) Dropout(name string, x, rate, step Output, seed int64) (out Output) {
	b.Scope(name, func() {
		seeds := b.Pack("seed", b.Const("key", literal.Int64(seed)), step)
		uniform := b.Add(NodeSpec{
			Op: "StatelessRandomUniform", Name: "random_uniform", Inputs: []Output{b.ShapeOf("Shape", x), seeds},
			Attrs: Attrs{
				"T": attr.Type(tfpb.DataType_DT_INT32), "dtype": attr.Type(x.DType()), "Tseed": attr.Type(tfpb.DataType_DT_INT64),
			},
			Outputs: []OutputType{{x.DType(), x.Shape()}},
		}).Output(0)
		keep := b.Cast("Cast", b.GreaterEqual("GreaterEqual", uniform, rate), x.DType())
		one := b.Const("one", literal.Float(1))
		scale := b.RealDiv("truediv", one, b.Sub("sub", one, rate))
		out = b.Mul("mul_1", b.Mul("mul", x, scale), keep)
	})
	return out
}

// MoveAverage adds the op that moves a variable towards a value: it subtracts
// rate times the difference. The value takes part in no gradient.
func (b *Builder) MoveAverage(name string, v *Variable, value Output, rate float32) (update *Node) {
	b.Scope(name, func() {
		difference := b.Sub("sub", b.Read("ReadVariableOp", v), value)
		update = b.Add(NodeSpec{
			Op: "AssignSubVariableOp", Inputs: []Output{v.handle, b.Mul("mul", difference, b.Const("rate", literal.Float(rate)))},
			Attrs: Attrs{"dtype": attr.Type(v.DType)},
		})
	})
	b.AddNodes(UpdateOpsKey, update.Name())
	return update
}
