package graph

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Initial makes a variable's initial value of the given shape. Its nodes lie
// in the variable's scope "Initializer".
type Initial func(b *Builder, s Shape) Output

// constantLimit is the number of elements up to which a constant initial value
// is one Const node; larger ones are filled at run time, as in TensorFlow.
const constantLimit = 1000

// Zeros is an initial value of zeros.
func Zeros() Initial { return filled("zeros", 0) }

// Ones is an initial value of ones.
func Ones() Initial { return filled("ones", 1) }

// Constant is an initial value with all elements v.
func Constant(v float32) Initial { return filled("Const", v) }

func filled(name string, v float32) Initial {
	return func(b *Builder, s Shape) Output {
		if n, _ := s.NumElements(); n < constantLimit {
			return b.Const(name, literal.Filled(v, s.Proto()))
		}
		return b.Fill(name, s, literal.Float(v))
	}
}

// Value is an initial value that is one constant tensor.
func Value(t *tfpb.TensorProto) Initial {
	return func(b *Builder, _ Shape) Output { return b.Const("initial_value", t) }
}

// Seeds choose the stream of a random op. TensorFlow and the embedded runtime
// draw the same numbers from the same seeds; with both zero they draw
// different ones in each session.
type Seeds struct{ Graph, Op int64 }

// RandomUniform is an initial value drawn evenly from [low, high).
func RandomUniform(low, high float32, seeds Seeds) Initial {
	return func(b *Builder, s Shape) Output {
		const name = "random_uniform"
		var out Output
		shape := b.Const(name+"/shape", shapeTensor(s))
		lo := b.Const(name+"/min", literal.Float(low))
		hi := b.Const(name+"/max", literal.Float(high))
		raw := b.random("RandomUniform", name+"/RandomUniform", shape, s, seeds)
		span := b.Sub(name+"/sub", hi, lo)
		out = b.Mul(name+"/mul", raw, span)
		return b.AddV2(name, out, lo)
	}
}

// TruncatedNormal is an initial value drawn from a normal distribution whose
// values beyond two standard deviations are drawn again.
func TruncatedNormal(mean, stddev float32, seeds Seeds) Initial {
	return func(b *Builder, s Shape) Output {
		const name = "truncated_normal"
		shape := b.Const(name+"/shape", shapeTensor(s))
		m := b.Const(name+"/mean", literal.Float(mean))
		dev := b.Const(name+"/stddev", literal.Float(stddev))
		raw := b.random("TruncatedNormal", name+"/TruncatedNormal", shape, s, seeds)
		scaled := b.Mul(name+"/mul", raw, dev)
		return b.AddV2(name, scaled, m)
	}
}

func (b *Builder) random(op, name string, shape Output, s Shape, seeds Seeds) Output {
	return b.Add(NodeSpec{
		Op: op, Name: name, Inputs: []Output{shape},
		Attrs: Attrs{
			"T":     attr.Type(tfpb.DataType_DT_INT32),
			"dtype": attr.Type(tfpb.DataType_DT_FLOAT),
			"seed":  attr.Int(seeds.Graph),
			"seed2": attr.Int(seeds.Op),
		},
		Outputs: []OutputType{{tfpb.DataType_DT_FLOAT, s}},
	}).Output(0)
}

// GlorotUniform is the uniform initial value whose spread keeps the variance
// of a layer's inputs and gradients (Glorot and Bengio, 2010).
func GlorotUniform(seeds Seeds) Initial {
	return func(b *Builder, s Shape) Output {
		limit := float32(math.Sqrt(3 * glorotScale(s)))
		return RandomUniform(-limit, limit, seeds)(b, s)
	}
}

// truncatedStddev is the standard deviation of a standard normal distribution
// that is cut off at two.
const truncatedStddev = .87962566103423978

// GlorotNormal is the truncated normal counterpart of [GlorotUniform].
func GlorotNormal(seeds Seeds) Initial {
	return func(b *Builder, s Shape) Output {
		return TruncatedNormal(0, float32(math.Sqrt(glorotScale(s))/truncatedStddev), seeds)(b, s)
	}
}

// glorotScale is the variance for a matrix [inputs, outputs].
func glorotScale(s Shape) float64 {
	in, out := int64(1), int64(1)
	switch len(s.Dims) {
	case 0:
	case 1:
		in, out = s.Dims[0], s.Dims[0]
	default:
		in, out = s.Dims[len(s.Dims)-2], s.Dims[len(s.Dims)-1]
		for _, d := range s.Dims[:len(s.Dims)-2] {
			in, out = in*d, out*d
		}
	}
	return 1 / max(1, float64(in+out)/2)
}
