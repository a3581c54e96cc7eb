// Package optimizer adds training to a graph: [Minimize] adds an optimizer's slots,
// its updates by the gradients of a loss, and a learning rate that may change with
// the step; [MinimizeSync] does so for replicas that wait for each other. Slots,
// scopes and ops have TensorFlow's names, so that its checkpoints match.
//
// The package has no state; the graph belongs to the caller.
package optimizer

import (
	"cmp"
	"maps"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// Optimizer is a rule by which gradients change variables: [SGD], [Momentum],
// [Adagrad], [Adadelta], [Adam], [RMSProp] or [Ftrl].
type Optimizer interface {
	// prepare adds what all variables share and returns a function that adds
	// one variable's slots, and later its update.
	prepare(b *graph.Builder, vars []*graph.Variable) state
	// scopeName is the optimizer's name in TensorFlow, that of its slots and scope.
	scopeName() string
}

// state is an optimizer at work on one graph.
type state struct {
	// slots adds the values that are kept for v.
	slots func(v *graph.Variable) []*graph.Variable
	// hyper adds the constants of the optimizer's scope.
	hyper func()
	// update adds the op that changes v, in its own scope.
	update func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node
	// sparse adds the op that changes the rows of v at the given indices, which
	// are all different; nil where update takes all rows.
	sparse func(v *graph.Variable, slots []*graph.Variable, lr, rows, indices graph.Output) *graph.Node
	// finish adds what runs once all updates are done; may be nil.
	finish func(updates []*graph.Node) []*graph.Node
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

func (SGD) scopeName() string      { return "GradientDescent" }
func (Momentum) scopeName() string { return "Momentum" }
func (Adagrad) scopeName() string  { return "Adagrad" }
func (Adam) scopeName() string     { return "Adam" }
func (RMSProp) scopeName() string  { return "RMSProp" }

// Minimize adds the gradients of loss, the optimizer's slots and updates, and
// the train op, which runs all updates and then increments step. The train
// op is named in its collection. rate is the learning rate's tensor. The train
// op also runs the given nodes, such as updates of moving averages.
func Minimize(b *graph.Builder, loss graph.Output, o Optimizer, lr LearningRate, step *graph.Variable, vars []*graph.Variable, with ...*graph.Node) (train *graph.Node, rate graph.Output) {
	grads, rateOf := prepareMinimize(b, loss, lr, step, vars)
	if grads == nil {
		return b.Group("train"), rate
	}
	train, rate = applyGradients(b, o, rateOf, step, vars, grads, with)
	b.AddNodes(graph.TrainOpKey, train.Name())
	return train, rate
}

// prepareMinimize adds the gradients of loss; nil means that there are not all.
// rate gives the learning rate in the optimizer's scope.
func prepareMinimize(b *graph.Builder, loss graph.Output, lr LearningRate, step *graph.Variable, vars []*graph.Variable) (grads []graph.Output, rate func() graph.Output) {
	rate = func() graph.Output { return b.Const("learning_rate", literal.Float(lr.Initial)) }
	if lr.Changes() {
		changing := learningRate(b, lr, step)
		rate = func() graph.Output { return changing }
	}
	handles := make([]graph.Output, len(vars))
	for i, v := range vars {
		handles[i] = v.Handle()
	}
	grads = b.Gradients(loss, handles)
	for i, g := range grads {
		if !g.Valid() {
			b.Fail("variable %s: %s does not depend on it", vars[i].Name(), loss.Name())
			return nil, rate
		}
	}
	return grads, rate
}

func applyGradients(b *graph.Builder, o Optimizer, lr func() graph.Output, step *graph.Variable, vars []*graph.Variable, grads []graph.Output, with []*graph.Node) (train *graph.Node, rate graph.Output) {
	state := o.prepare(b, vars)
	slots := make([][]*graph.Variable, len(vars))
	for i, v := range vars {
		slots[i] = state.slots(v)
	}
	scope := b.UniqueName(o.scopeName())
	b.Scope(scope+"/", func() {
		rate = lr()
		state.hyper()
		updates := make([]*graph.Node, len(vars))
		for i, v := range vars {
			b.Scope("update_"+v.Name(), func() {
				b.Colocate(v.Handle().Node, func() { updates[i] = state.change(b, v, slots[i], rate, grads[i]) })
			})
		}
		if state.finish != nil {
			updates = append(updates, state.finish(updates)...)
		}
		train = countStep(b, scope, step, b.Group("update", append(updates, with...)...))
	})
	return train, rate
}

// countStep adds the op that raises the step after done, named as the
// optimizer is: it completes the whole training step.
func countStep(b *graph.Builder, name string, step *graph.Variable, done *graph.Node) (count *graph.Node) {
	b.Colocate(step.Handle().Node, func() {
		var one graph.Output
		b.After([]*graph.Node{done}, func() { one = b.Const("Const", literal.Int64(1)) })
		count = b.Add(graph.NodeSpec{
			Op: "AssignAddVariableOp", Name: name + "/", Inputs: []graph.Output{step.Handle(), one},
			Attrs: graph.Attrs{"dtype": attr.Type(step.DType)},
		})
	})
	return count
}

// slot adds a variable of v's shape that belongs to an optimizer.
func slot(b *graph.Builder, v *graph.Variable, name string, initial graph.Initial) *graph.Variable {
	return b.Variable(graph.VariableSpec{
		Name: v.Name() + "/" + name, DType: v.DType, Shape: v.Shape, Initial: initial, With: v,
	})
}

// apply adds an update op; they all take the variable and its slots first.
func apply(b *graph.Builder, op string, v *graph.Variable, slots []*graph.Variable, rest []graph.Output, attrs graph.Attrs) *graph.Node {
	ins := []graph.Output{v.Handle()}
	for _, s := range slots {
		ins = append(ins, s.Handle())
	}
	all := graph.Attrs{"T": attr.Type(v.DType), "use_locking": attr.Bool(false)}
	maps.Copy(all, attrs)
	return b.Add(graph.NodeSpec{Op: op, Inputs: append(ins, rest...), Attrs: all})
}

func (SGD) prepare(b *graph.Builder, _ []*graph.Variable) state {
	return state{
		slots: func(*graph.Variable) []*graph.Variable { return nil },
		hyper: func() {},
		update: func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
			return apply(b, "ResourceApplyGradientDescent", v, slots, []graph.Output{lr, grad}, nil)
		},
		sparse: func(v *graph.Variable, _ []*graph.Variable, lr, rows, indices graph.Output) *graph.Node {
			return scatterAdd(b, v, indices, b.Mul("mul", b.Neg("Neg", rows), lr))
		},
	}
}

func (o Momentum) prepare(b *graph.Builder, _ []*graph.Variable) state {
	var momentum graph.Output
	return state{
		slots: func(v *graph.Variable) []*graph.Variable {
			return []*graph.Variable{slot(b, v, "Momentum", graph.Zeros())}
		},
		hyper: func() { momentum = b.Const("momentum", literal.Float(o.Momentum)) },
		update: func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
			return apply(b, "ResourceApplyMomentum", v, slots, []graph.Output{lr, grad, momentum},
				graph.Attrs{"use_nesterov": attr.Bool(o.Nesterov)})
		},
		sparse: func(v *graph.Variable, slots []*graph.Variable, lr, rows, indices graph.Output) *graph.Node {
			return applySparse(b, "ResourceSparseApplyMomentum", v, slots, []graph.Output{lr, rows, indices, momentum},
				indices, graph.Attrs{"use_nesterov": attr.Bool(o.Nesterov)})
		},
	}
}

func (o Adagrad) prepare(b *graph.Builder, _ []*graph.Variable) state {
	return state{
		slots: func(v *graph.Variable) []*graph.Variable {
			return []*graph.Variable{slot(b, v, "Adagrad", graph.Constant(o.InitialAccumulator))}
		},
		hyper: func() {},
		update: func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
			return apply(b, "ResourceApplyAdagrad", v, slots, []graph.Output{lr, grad},
				graph.Attrs{"update_slots": attr.Bool(true)})
		},
		sparse: func(v *graph.Variable, slots []*graph.Variable, lr, rows, indices graph.Output) *graph.Node {
			return applySparse(b, "ResourceSparseApplyAdagrad", v, slots, []graph.Output{lr, rows, indices},
				indices, graph.Attrs{"update_slots": attr.Bool(true)})
		},
	}
}

func (o RMSProp) prepare(b *graph.Builder, _ []*graph.Variable) state {
	var decay, momentum, epsilon graph.Output
	return state{
		slots: func(v *graph.Variable) []*graph.Variable {
			return []*graph.Variable{slot(b, v, "RMSProp", graph.Ones()), slot(b, v, "RMSProp", graph.Zeros())}
		},
		hyper: func() {
			decay = b.Const("decay", literal.Float(o.Decay))
			momentum = b.Const("momentum", literal.Float(o.Momentum))
			epsilon = b.Const("epsilon", literal.Float(o.Epsilon))
		},
		update: func(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
			return apply(b, "ResourceApplyRMSProp", v, slots, []graph.Output{lr, decay, momentum, epsilon, grad}, nil)
		},
		sparse: func(v *graph.Variable, slots []*graph.Variable, lr, rows, indices graph.Output) *graph.Node {
			return applySparse(b, "ResourceSparseApplyRMSProp", v, slots,
				[]graph.Output{lr, decay, momentum, epsilon, rows, indices}, indices, nil)
		},
	}
}

// adamState holds what Adam shares between variables.
type adamState struct {
	Adam
	b                     *graph.Builder
	power1, power2        *graph.Variable // beta1^t, beta2^t
	beta1, beta2, epsilon graph.Output
}

func (o Adam) prepare(b *graph.Builder, vars []*graph.Variable) state {
	s := &adamState{Adam: o, b: b}
	// TensorFlow keeps the two powers next to the variable first in order.
	first := slices.MinFunc(vars, func(x, y *graph.Variable) int { return cmp.Compare(x.Name(), y.Name()) })
	power := func(name string, beta float32) *graph.Variable {
		return b.Variable(graph.VariableSpec{
			Name: name, DType: tfpb.DataType_DT_FLOAT, Initial: graph.Value(literal.Float(beta)), With: first,
		})
	}
	s.power1, s.power2 = power("beta1_power", o.Beta1), power("beta2_power", o.Beta2)
	return state{
		slots: func(v *graph.Variable) []*graph.Variable {
			return []*graph.Variable{slot(b, v, "Adam", graph.Zeros()), slot(b, v, "Adam", graph.Zeros())}
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

func (s *adamState) update(v *graph.Variable, slots []*graph.Variable, lr, grad graph.Output) *graph.Node {
	power1 := s.b.Read("ResourceApplyAdam/ReadVariableOp", s.power1)
	power2 := s.b.Read("ResourceApplyAdam/ReadVariableOp", s.power2)
	return apply(s.b, "ResourceApplyAdam", v, slots,
		[]graph.Output{power1, power2, lr, s.beta1, s.beta2, s.epsilon, grad},
		graph.Attrs{"use_nesterov": attr.Bool(false)})
}

// finish raises both powers, after every update has read them.
func (s *adamState) finish(updates []*graph.Node) []*graph.Node {
	raise := func(power *graph.Variable, beta graph.Output) (n *graph.Node) {
		s.b.Colocate(power.Handle().Node, func() {
			var now graph.Output
			s.b.After(updates, func() { now = s.b.Read("", power) })
			n = s.b.Assign("AssignVariableOp", power, s.b.Mul("mul", now, beta))
		})
		return n
	}
	return []*graph.Node{raise(s.power1, s.beta1), raise(s.power2, s.beta2)}
}
