package optimizer

import (
	"maps"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// change adds the op that changes v by its gradient, of all rows or of some.
func (s state) change(b *graph.Builder, v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
	indices := b.Indices(grad)
	switch {
	case !indices.Valid():
		return s.update(v, slots, lr, grad)
	case s.sparse == nil:
		rows := b.Const("num_rows", literal.Int32(int32(v.Shape.Dims[0])))
		return s.update(v, slots, lr, segmentSum(b, "gradient", grad, indices, rows, v.Shape))
	}
	rows, at := unique(b, grad, indices)
	return s.sparse(v, slots, lr, rows, at)
}

// applySparse is apply for the ops that change some rows.
func applySparse(b *graph.Builder, op string, v *graph.Variable, slots []*graph.Variable, rest []graph.Output, indices graph.Output, attrs graph.Attrs) *graph.Node {
	all := graph.Attrs{"Tindices": attr.Type(indices.DType())}
	maps.Copy(all, attrs)
	return apply(b, op, v, slots, rest, all)
}

func scatterAdd(b *graph.Builder, v *graph.Variable, indices, rows graph.Output) *graph.Node {
	return b.Add(graph.NodeSpec{
		Op: "ResourceScatterAdd", Inputs: []graph.Output{v.Handle(), indices, rows},
		Attrs: graph.Attrs{"dtype": attr.Type(v.DType), "Tindices": attr.Type(indices.DType())},
	})
}

// Adadelta scales gradients by decaying means of past updates and of past
// squared gradients.
type Adadelta struct{ Rho, Epsilon float32 }

func (Adadelta) scopeName() string { return "Adadelta" }

func (o Adadelta) prepare(b *graph.Builder, _ []*graph.Variable) state {
	var rho, epsilon graph.Output
	return state{
		slots: func(v *graph.Variable) []*graph.Variable {
			return []*graph.Variable{slot(b, v, "Adadelta", graph.Zeros()), slot(b, v, "Adadelta", graph.Zeros())}
		},
		hyper: func() {
			rho, epsilon = b.Const("rho", literal.Float(o.Rho)), b.Const("epsilon", literal.Float(o.Epsilon))
		},
		update: func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
			return apply(b, "ResourceApplyAdadelta", v, slots, []graph.Output{lr, rho, epsilon, grad}, nil)
		},
		sparse: func(v *graph.Variable, slots []*graph.Variable, lr, rows, indices graph.Output) *graph.Node {
			return applySparse(b, "ResourceSparseApplyAdadelta", v, slots, []graph.Output{lr, rho, epsilon, rows, indices}, indices, nil)
		},
	}
}

// Ftrl follows the regularised leader: it keeps sums of gradients and of their
// squares, and L1 makes weights exactly zero.
type Ftrl struct {
	Power              float32 // of the squared gradients' sum in the rate; -0.5 in most uses
	InitialAccumulator float32
	L1, L2             float32
}

func (Ftrl) scopeName() string { return "Ftrl" }

func (o Ftrl) prepare(b *graph.Builder, _ []*graph.Variable) state {
	var l1, l2, power graph.Output
	multiply := graph.Attrs{"multiply_linear_by_lr": attr.Bool(false)}
	return state{
		slots: func(v *graph.Variable) []*graph.Variable {
			return []*graph.Variable{slot(b, v, "Ftrl", graph.Constant(o.InitialAccumulator)), slot(b, v, "Ftrl", graph.Zeros())}
		},
		hyper: func() {
			l1 = b.Const("l1_regularization_strength", literal.Float(o.L1))
			l2 = b.Const("adjusted_l2_regularization_strength", literal.Float(o.L2))
			power = b.Const("learning_rate_power", literal.Float(o.Power))
		},
		update: func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
			return apply(b, "ResourceApplyFtrl", v, slots, []graph.Output{grad, lr, l1, l2, power}, multiply)
		},
		sparse: func(v *graph.Variable, slots []*graph.Variable, lr, rows, indices graph.Output) *graph.Node {
			return applySparse(b, "ResourceSparseApplyFtrl", v, slots, []graph.Output{rows, indices, lr, l1, l2, power}, indices, multiply)
		},
	}
}

// unique sums the rows of a sparse gradient that stand for one index.
func unique(b *graph.Builder, rows, indices graph.Output) (sums, at graph.Output) {
	n := b.Add(graph.NodeSpec{
		Op: "Unique", Inputs: []graph.Output{indices},
		Attrs: graph.Attrs{"T": attr.Type(indices.DType()), "out_idx": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []graph.OutputType{
			{DType: indices.DType(), Shape: graph.MakeShape(-1)},
			{DType: tfpb.DataType_DT_INT32, Shape: graph.MakeShape(-1)},
		},
	})
	count := b.Reshape("Reshape", b.ShapeOf("Shape", n.Output(0)), graph.Shape{})
	return segmentSum(b, "UnsortedSegmentSum", rows, n.Output(1), count, rows.Shape()), n.Output(0)
}

// segmentSum adds up the rows of each segment.
func segmentSum(b *graph.Builder, name string, rows, segments, count graph.Output, out graph.Shape) graph.Output {
	return b.Add(graph.NodeSpec{
		Op: "UnsortedSegmentSum", Name: name, Inputs: []graph.Output{rows, segments, count},
		Attrs: graph.Attrs{
			"T": attr.Type(rows.DType()), "Tindices": attr.Type(segments.DType()), "Tnumsegments": attr.Type(tfpb.DataType_DT_INT32),
		},
		Outputs: []graph.OutputType{{DType: rows.DType(), Shape: out}},
	}).Output(0)
}
