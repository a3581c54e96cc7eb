package graph

import (
	"cmp"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Optimizer is a rule by which gradients change variables: [SGD], [Momentum],
// [Adagrad], [Adadelta], [Adam], [RMSProp] or [Ftrl].
type Optimizer interface {
	// prepare adds what all variables share and returns a function that adds
	// one variable's slots, and later its update.
	prepare(b *Builder, vars []*Variable) optimizerState
	// name is the optimizer's name in TensorFlow, that of its slots and scope.
	name() string
}

// optimizerState is an optimizer at work on one graph.
type optimizerState struct {
	// slots adds the values that are kept for v.
	slots func(v *Variable) []*Variable
	// hyper adds the constants of the optimizer's scope.
	hyper func()
	// update adds the op that changes v, in its own scope.
	update func(v *Variable, slots []*Variable, lr, grad Output) *Node
	// sparse adds the op that changes the rows of v at the given indices, each
	// of which comes once; nil where it is update that takes all rows.
	sparse func(v *Variable, slots []*Variable, lr, rows, indices Output) *Node
	// finish adds what runs once all updates are done; may be nil.
	finish func(updates []*Node) []*Node
}

// SGD subtracts the gradient, times the learning rate.
type SGD struct{}

// Momentum keeps a sum of past gradients that decays with Momentum.
type Momentum struct {
	Momentum float32
	Nesterov bool
}

// Adagrad divides each element's rate by the root of the sum of its squared
// gradients, which begins at InitialAccumulator.
type Adagrad struct{ InitialAccumulator float32 }

// Adam keeps decaying means of the gradients and of their squares.
type Adam struct{ Beta1, Beta2, Epsilon float32 }

// RMSProp divides by the root of a decaying mean of squared gradients.
type RMSProp struct{ Decay, Momentum, Epsilon float32 }

func (SGD) name() string      { return "GradientDescent" }
func (Momentum) name() string { return "Momentum" }
func (Adagrad) name() string  { return "Adagrad" }
func (Adam) name() string     { return "Adam" }
func (RMSProp) name() string  { return "RMSProp" }

// Minimize adds the gradients of loss, the optimizer's slots and updates, and
// the train op, which runs all updates and then raises step by one. The train
// op is named in its collection. rate is the learning rate's tensor. The train
// op also runs the given nodes, such as updates of moving averages.
func (b *Builder) Minimize(loss Output, o Optimizer, lr LearningRate, step *Variable, vars []*Variable, with ...*Node) (train *Node, rate Output) {
	grads, rateOf := b.prepareMinimize(loss, lr, step, vars)
	if grads == nil {
		return b.Group("train"), rate
	}
	train, rate = b.applyGradients(o, rateOf, step, vars, grads, with)
	b.AddNodes(TrainOpKey, train.Name())
	return train, rate
}

// prepareMinimize adds the gradients of loss; nil means that there are not all.
// rate gives the learning rate in the optimizer's scope.
func (b *Builder) prepareMinimize(loss Output, lr LearningRate, step *Variable, vars []*Variable) (grads []Output, rate func() Output) {
	rate = func() Output { return b.Const("learning_rate", literal.Float(lr.Initial)) }
	if lr.Changes() {
		changing := b.learningRate(lr, step)
		rate = func() Output { return changing }
	}
	handles := make([]Output, len(vars))
	for i, v := range vars {
		handles[i] = v.handle
	}
	grads = b.Gradients(loss, handles)
	for i, g := range grads {
		if !g.Valid() {
			b.fail("variable %s: %s does not depend on it", vars[i].Name(), loss.Name())
			return nil, rate
		}
	}
	return grads, rate
}

func (b *Builder) applyGradients(o Optimizer, lr func() Output, step *Variable, vars []*Variable, grads []Output, with []*Node) (train *Node, rate Output) {
	state := o.prepare(b, vars)
	slots := make([][]*Variable, len(vars))
	for i, v := range vars {
		slots[i] = state.slots(v)
	}
	scope := b.names.unique(b.scope + o.name())
	b.Scope(scope+"/", func() {
		rate = lr()
		state.hyper()
		updates := make([]*Node, len(vars))
		for i, v := range vars {
			b.Scope("update_"+v.Name(), func() {
				b.Colocate(v.handle.Node, func() { updates[i] = state.change(b, v, slots[i], rate, grads[i]) })
			})
		}
		if state.finish != nil {
			updates = append(updates, state.finish(updates)...)
		}
		train = b.countStep(scope, step, b.Group("update", append(updates, with...)...))
	})
	return train, rate
}

// countStep adds the op that raises the step after done, named as the
// optimizer is: it stands for the whole training step.
func (b *Builder) countStep(name string, step *Variable, done *Node) (count *Node) {
	b.Colocate(step.handle.Node, func() {
		var one Output
		b.After([]*Node{done}, func() { one = b.Const("Const", literal.Int64(1)) })
		count = b.Add(NodeSpec{
			Op: "AssignAddVariableOp", Name: name + "/", Inputs: []Output{step.handle, one},
			Attrs: Attrs{"dtype": attr.Type(step.DType)},
		})
	})
	return count
}

// slot adds a variable of v's shape that belongs to an optimizer.
func (b *Builder) slot(v *Variable, name string, initial Initial) *Variable {
	return b.Variable(VariableSpec{
		Name: v.Name() + "/" + name, DType: v.DType, Shape: v.Shape, Initial: initial, With: v,
	})
}

// apply adds an update op; they all take the variable and its slots first.
func (b *Builder) apply(op string, v *Variable, slots []*Variable, rest []Output, attrs Attrs) *Node {
	ins := []Output{v.handle}
	for _, s := range slots {
		ins = append(ins, s.handle)
	}
	all := Attrs{"T": attr.Type(v.DType), "use_locking": attr.Bool(false)}
	for k, a := range attrs {
		all[k] = a
	}
	return b.Add(NodeSpec{Op: op, Inputs: append(ins, rest...), Attrs: all})
}

func (SGD) prepare(b *Builder, _ []*Variable) optimizerState {
	return optimizerState{
		slots: func(*Variable) []*Variable { return nil },
		hyper: func() {},
		update: func(v *Variable, slots []*Variable, lr, grad Output) *Node {
			return b.apply("ResourceApplyGradientDescent", v, slots, []Output{lr, grad}, nil)
		},
		sparse: func(v *Variable, _ []*Variable, lr, rows, indices Output) *Node {
			return b.scatterAdd(v, indices, b.Mul("mul", b.Neg("Neg", rows), lr))
		},
	}
}

func (o Momentum) prepare(b *Builder, _ []*Variable) optimizerState {
	var momentum Output
	return optimizerState{
		slots: func(v *Variable) []*Variable { return []*Variable{b.slot(v, "Momentum", Zeros())} },
		hyper: func() { momentum = b.Const("momentum", literal.Float(o.Momentum)) },
		update: func(v *Variable, slots []*Variable, lr, grad Output) *Node {
			return b.apply("ResourceApplyMomentum", v, slots, []Output{lr, grad, momentum},
				Attrs{"use_nesterov": attr.Bool(o.Nesterov)})
		},
		sparse: func(v *Variable, slots []*Variable, lr, rows, indices Output) *Node {
			return b.applySparse("ResourceSparseApplyMomentum", v, slots, []Output{lr, rows, indices, momentum},
				indices, Attrs{"use_nesterov": attr.Bool(o.Nesterov)})
		},
	}
}

func (o Adagrad) prepare(b *Builder, _ []*Variable) optimizerState {
	return optimizerState{
		slots: func(v *Variable) []*Variable {
			return []*Variable{b.slot(v, "Adagrad", Constant(o.InitialAccumulator))}
		},
		hyper: func() {},
		update: func(v *Variable, slots []*Variable, lr, grad Output) *Node {
			return b.apply("ResourceApplyAdagrad", v, slots, []Output{lr, grad},
				Attrs{"update_slots": attr.Bool(true)})
		},
		sparse: func(v *Variable, slots []*Variable, lr, rows, indices Output) *Node {
			return b.applySparse("ResourceSparseApplyAdagrad", v, slots, []Output{lr, rows, indices},
				indices, Attrs{"update_slots": attr.Bool(true)})
		},
	}
}

func (o RMSProp) prepare(b *Builder, _ []*Variable) optimizerState {
	var decay, momentum, epsilon Output
	return optimizerState{
		slots: func(v *Variable) []*Variable {
			return []*Variable{b.slot(v, "RMSProp", Ones()), b.slot(v, "RMSProp", Zeros())}
		},
		hyper: func() {
			decay = b.Const("decay", literal.Float(o.Decay))
			momentum = b.Const("momentum", literal.Float(o.Momentum))
			epsilon = b.Const("epsilon", literal.Float(o.Epsilon))
		},
		update: func(v *Variable, slots []*Variable, lr, grad Output) *Node {
			return b.apply("ResourceApplyRMSProp", v, slots, []Output{lr, decay, momentum, epsilon, grad}, nil)
		},
		sparse: func(v *Variable, slots []*Variable, lr, rows, indices Output) *Node {
			return b.applySparse("ResourceSparseApplyRMSProp", v, slots,
				[]Output{lr, decay, momentum, epsilon, rows, indices}, indices, nil)
		},
	}
}

// adamState holds what Adam shares between variables.
type adamState struct {
	Adam
	b                     *Builder
	power1, power2        *Variable // beta1^t, beta2^t
	beta1, beta2, epsilon Output
}

func (o Adam) prepare(b *Builder, vars []*Variable) optimizerState {
	s := &adamState{Adam: o, b: b}
	// TensorFlow keeps the two powers next to the variable first in order.
	first := slices.MinFunc(vars, func(x, y *Variable) int { return cmp.Compare(x.Name(), y.Name()) })
	power := func(name string, beta float32) *Variable {
		return b.Variable(VariableSpec{
			Name: name, DType: tfpb.DataType_DT_FLOAT, Initial: Value(literal.Float(beta)), With: first,
		})
	}
	s.power1, s.power2 = power("beta1_power", o.Beta1), power("beta2_power", o.Beta2)
	return optimizerState{
		slots: func(v *Variable) []*Variable {
			return []*Variable{b.slot(v, "Adam", Zeros()), b.slot(v, "Adam", Zeros())}
		},
		hyper:  s.hyper,
		update: s.update,
		finish: s.finish,
	}
}

func (s *adamState) hyper() {
	s.beta1 = s.b.Const("beta1", literal.Float(s.Beta1))
	s.beta2 = s.b.Const("beta2", literal.Float(s.Beta2))
	s.epsilon = s.b.Const("epsilon", literal.Float(s.Epsilon))
}

func (s *adamState) update(v *Variable, slots []*Variable, lr, grad Output) *Node {
	power1 := s.b.Read("ResourceApplyAdam/ReadVariableOp", s.power1)
	power2 := s.b.Read("ResourceApplyAdam/ReadVariableOp", s.power2)
	return s.b.apply("ResourceApplyAdam", v, slots,
		[]Output{power1, power2, lr, s.beta1, s.beta2, s.epsilon, grad},
		Attrs{"use_nesterov": attr.Bool(false)})
}

// finish raises both powers, after every update has read them.
func (s *adamState) finish(updates []*Node) []*Node {
	raise := func(power *Variable, beta Output) (n *Node) {
		s.b.Colocate(power.handle.Node, func() {
			var now Output
			s.b.After(updates, func() { now = s.b.Read("", power) })
			n = s.b.assign("AssignVariableOp", power, s.b.Mul("mul", now, beta))
		})
		return n
	}
	return []*Node{raise(s.power1, s.beta1), raise(s.power2, s.beta2)}
}
