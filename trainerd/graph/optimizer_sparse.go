package graph

import (
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// change adds the op that changes v by its gradient, of all rows or of some.
func (s optimizerState) change(b *Builder, v *Variable, slots []*Variable, lr, grad Output) *Node {
	indices := b.indices[grad]
	switch {
	case !indices.Valid():
		return s.update(v, slots, lr, grad)
	case s.sparse == nil:
		rows := b.Const("num_rows", literal.Int32(int32(v.Shape.Dims[0])))
		return s.update(v, slots, lr, b.segmentSum("gradient", grad, indices, rows, v.Shape))
	}
	rows, at := b.unique(grad, indices)
	return s.sparse(v, slots, lr, rows, at)
}

// applySparse is apply for the ops that change some rows.
func (b *Builder) applySparse(op string, v *Variable, slots []*Variable, rest []Output, indices Output, attrs Attrs) *Node {
	n := b.apply(op, v, slots, rest, attrs)
	n.def.Attr["Tindices"] = attr.Type(indices.DType())
	return n
}

func (b *Builder) scatterAdd(v *Variable, indices, rows Output) *Node {
	return b.Add(NodeSpec{
		Op: "ResourceScatterAdd", Inputs: []Output{v.handle, indices, rows},
		Attrs: Attrs{"dtype": attr.Type(v.DType), "Tindices": attr.Type(indices.DType())},
	})
}

// Adadelta scales gradients by decaying means of past updates and of past
// squared gradients.
type Adadelta struct{ Rho, Epsilon float32 }

func (Adadelta) name() string { return "Adadelta" }

func (o Adadelta) prepare(b *Builder, _ []*Variable) optimizerState {
	var rho, epsilon Output
	return optimizerState{
		slots: func(v *Variable) []*Variable {
			return []*Variable{b.slot(v, "Adadelta", Zeros()), b.slot(v, "Adadelta", Zeros())}
		},
		hyper: func() {
			rho, epsilon = b.Const("rho", literal.Float(o.Rho)), b.Const("epsilon", literal.Float(o.Epsilon))
		},
		update: func(v *Variable, slots []*Variable, lr, grad Output) *Node {
			return b.apply("ResourceApplyAdadelta", v, slots, []Output{lr, rho, epsilon, grad}, nil)
		},
		sparse: func(v *Variable, slots []*Variable, lr, rows, indices Output) *Node {
			return b.applySparse("ResourceSparseApplyAdadelta", v, slots, []Output{lr, rho, epsilon, rows, indices}, indices, nil)
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

func (Ftrl) name() string { return "Ftrl" }

func (o Ftrl) prepare(b *Builder, _ []*Variable) optimizerState {
	var l1, l2, power Output
	multiply := Attrs{"multiply_linear_by_lr": attr.Bool(false)}
	return optimizerState{
		slots: func(v *Variable) []*Variable {
			return []*Variable{b.slot(v, "Ftrl", Constant(o.InitialAccumulator)), b.slot(v, "Ftrl", Zeros())}
		},
		hyper: func() {
			l1 = b.Const("l1_regularization_strength", literal.Float(o.L1))
			l2 = b.Const("adjusted_l2_regularization_strength", literal.Float(o.L2))
			power = b.Const("learning_rate_power", literal.Float(o.Power))
		},
		update: func(v *Variable, slots []*Variable, lr, grad Output) *Node {
			return b.apply("ResourceApplyFtrl", v, slots, []Output{grad, lr, l1, l2, power}, multiply)
		},
		sparse: func(v *Variable, slots []*Variable, lr, rows, indices Output) *Node {
			return b.applySparse("ResourceSparseApplyFtrl", v, slots, []Output{rows, indices, lr, l1, l2, power}, indices, multiply)
		},
	}
}
