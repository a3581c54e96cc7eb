package optimizer

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// SyncReplicas says how replicas train together, as the arguments of
// tf.compat.v1.train.SyncReplicasOptimizer do: an update is made of the mean of
// the gradients of Aggregate replicas out of Total. Gradients that arrive
// after the update of their step are dropped.
type SyncReplicas struct {
	Aggregate, Total int
	// InitTokens is the number of tokens in the queue at the start. 0 means as
	// few as the first step needs: each additional token lets a replica begin
	// its next step before the update.
	InitTokens int
}

// Synced has the nodes with which replicas train together. They have the same
// names as those of SyncReplicasOptimizer.
type Synced struct {
	Train *graph.Node  // gives gradients, waits for a token, and notes its step
	Token graph.Output // the step that Train notes
	Give  *graph.Node  // the part of Train before it waits
	Rate  graph.Output // the learning rate

	Take      *graph.Node // waits for one more token, and notes its step
	NextToken graph.Output

	Update     *graph.Node // waits for gradients, applies their mean, and gives out tokens
	InitTokens *graph.Node
	ChiefInit  *graph.Node // before all steps of the chief; LocalInit of the others
	LocalInit  *graph.Node
	Ready      graph.Output // global variables without a value: neither may run yet

	// What a finished training may have left on a server: the number of
	// gradients in each accumulator, the ops that take them out, and the number
	// of tokens. Drain takes out as many tokens as TokenCount is fed, PutTokens
	// puts in as many of the current step.
	Left       graph.Output
	Discard    []*graph.Node
	Tokens     graph.Output
	Drain      *graph.Node
	PutTokens  *graph.Node
	TokenCount graph.Output
}

// syncScope is the name of the optimizer in TensorFlow.
const syncScope = "sync_replicas"

// accumulator holds the gradients of a variable.
type accumulator struct {
	ref    graph.Output
	v      *graph.Variable
	sparse bool
}

// synchronizer is a SyncReplicasOptimizer under construction.
type synchronizer struct {
	*graph.Builder
	SyncReplicas
	step, local  *graph.Variable
	accumulators []accumulator
	queue        graph.Output
	out          *Synced
}

// MinimizeSync is [Minimize] for replicas that wait for each other.
// Each replica runs the nodes of with by itself.
func MinimizeSync(b *graph.Builder, loss graph.Output, o Optimizer, lr LearningRate, r SyncReplicas, step *graph.Variable, vars []*graph.Variable, with ...*graph.Node) *Synced {
	s := &synchronizer{Builder: b, SyncReplicas: r, step: step, out: &Synced{}}
	grads, rate := prepareMinimize(b, loss, lr, step, vars)
	if grads == nil {
		return s.out
	}
	s.localStep()
	s.out.Ready = b.ReportUninitialized(b.Variables())
	given, means := s.accumulate(grads, vars)
	b.Colocate(step.Handle().Node, func() {
		s.out.Update, s.out.Rate = applyGradients(b, o, rate, step, vars, means, nil)
		s.tokenQueue()
	})
	s.train(append(given, with...))
	s.update()
	s.initialize()
	s.leftovers()
	b.AddNodes(graph.TrainOpKey, s.out.Train.Name())
	return s.out
}

// localStep adds the variable with the step whose values this replica has.
func (s *synchronizer) localStep() {
	anchor := s.Group("NoOp") // on the replica, where a variable by itself is not
	s.Colocate(anchor, func() {
		s.local = s.Variable(graph.VariableSpec{
			Name: "sync_rep_local_step", DType: s.step.DType, Local: true,
			Initial: func(b *graph.Builder, _ graph.Shape) graph.Output { return b.Const("initial_value", literal.Int64(0)) },
		})
	})
	s.out.LocalInit = s.Assign("AssignVariableOp", s.local, s.Read("", s.step))
}

// accumulate adds an accumulator for each variable. It returns what hands in
// this replica's gradients, and the means.
func (s *synchronizer) accumulate(grads []graph.Output, vars []*graph.Variable) (given []*graph.Node, means []graph.Output) {
	s.Scope(syncScope, func() {
		for i, v := range vars {
			local := s.Read("", s.local)
			s.Colocate(v.Handle().Node, func() {
				indices := s.Indices(grads[i])
				a := s.accumulator(v, indices.Valid())
				s.accumulators = append(s.accumulators, a)
				given = append(given, s.give(a, local, grads[i], indices))
				means = append(means, s.take(a, s.Aggregate).mean)
			})
		}
	})
	return given, means
}

func (s *synchronizer) accumulator(v *graph.Variable, sparse bool) accumulator {
	op, name, shape := "ResourceConditionalAccumulator", "conditional_accumulator", v.Shape
	out := graph.OutputType{DType: tfpb.DataType_DT_RESOURCE, Shape: graph.Shape{}}
	if sparse {
		op, name, shape = "SparseConditionalAccumulator", "sparse_conditional_accumulator", graph.Shape{}
		out = graph.OutputType{DType: tfpb.DataType_DT_STRING_REF, Shape: graph.MakeShape(2)}
	}
	n := s.Add(graph.NodeSpec{Op: op, Name: name, Outputs: []graph.OutputType{out}, Attrs: graph.Attrs{
		"dtype": attr.Type(v.DType), "shape": attr.Shape(shape.Proto()), "container": attr.String(""),
		"shared_name": attr.String(v.Handle().Name() + "/grad_accum"), "reduction_type": attr.String("MEAN"),
	}})
	return accumulator{n.Output(0), v, sparse}
}

// op returns the name of an op for this kind of accumulator.
func (a accumulator) op(dense, sparse string) string {
	if a.sparse {
		return sparse
	}
	return dense
}

func (s *synchronizer) give(a accumulator, local, grad, indices graph.Output) *graph.Node {
	dtype := attr.Type(a.v.DType)
	if !a.sparse {
		return s.Add(graph.NodeSpec{Op: "ResourceAccumulatorApplyGradient", Inputs: []graph.Output{a.ref, local, grad}, Attrs: graph.Attrs{"dtype": dtype}})
	}
	if indices.DType() != tfpb.DataType_DT_INT64 {
		indices = s.Cast("Cast", indices, tfpb.DataType_DT_INT64)
	}
	shape := s.Const("Const", literal.Int64s(a.v.Shape.Dims...))
	return s.Add(graph.NodeSpec{
		Op: "SparseAccumulatorApplyGradient", Inputs: []graph.Output{a.ref, local, indices, grad, shape},
		Attrs: graph.Attrs{"dtype": dtype, "has_known_shape": attr.Bool(true)},
	})
}

// taken is an op that takes the mean of gradients out of an accumulator.
type taken struct {
	node *graph.Node
	mean graph.Output
}

func (s *synchronizer) take(a accumulator, count int) taken {
	op := a.op("ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient")
	name := s.UniqueName(op)
	spec := graph.NodeSpec{Op: op, Name: name + "/", Attrs: graph.Attrs{"dtype": attr.Type(a.v.DType)}}
	s.Scope(name+"/", func() { spec.Inputs = []graph.Output{a.ref, s.Const("num_required", literal.Int32(int32(count)))} })
	if !a.sparse {
		spec.Outputs = []graph.OutputType{{DType: a.v.DType, Shape: a.v.Shape}}
		n := s.Add(spec)
		return taken{n, n.Output(0)}
	}
	rows := graph.MakeShape(append([]int64{-1}, a.v.Shape.Dims[1:]...)...)
	spec.Outputs = []graph.OutputType{
		{DType: tfpb.DataType_DT_INT64, Shape: graph.MakeShape(-1)}, {DType: a.v.DType, Shape: rows}, {DType: tfpb.DataType_DT_INT64, Shape: graph.MakeShape(-1)},
	}
	n := s.Add(spec)
	s.SetIndices(n.Output(1), n.Output(0))
	return taken{n, n.Output(1)}
}

// tokenQueue adds the queue of tokens: each says which step comes next, and
// lets one replica make it.
func (s *synchronizer) tokenQueue() {
	s.queue = s.Add(graph.NodeSpec{
		Op: "FIFOQueueV2", Name: "sync_token_q",
		Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_RESOURCE, Shape: graph.Shape{}}},
		Attrs: graph.Attrs{
			"component_types": attr.Types(s.step.DType), "shapes": attr.Shapes(graph.Shape{}.Proto()),
			"capacity": attr.Int(-1), "container": attr.String(""), "shared_name": attr.String("sync_token_q"),
		},
	}).Output(0)
}

// train adds the ops that make a replica's step.
func (s *synchronizer) train(given []*graph.Node) {
	next := func(name string, after ...*graph.Node) (token graph.Output, take *graph.Node) {
		s.Colocate(s.step.Handle().Node, func() {
			token = s.Add(graph.NodeSpec{
				Op: "QueueDequeueV2", Name: name, Inputs: []graph.Output{s.queue}, Control: after,
				Outputs: []graph.OutputType{{DType: s.step.DType, Shape: graph.Shape{}}},
				Attrs:   graph.Attrs{"component_types": attr.Types(s.step.DType), "timeout_ms": attr.Int(-1)},
			}).Output(0)
		})
		return token, s.Assign("AssignVariableOp", s.local, token)
	}
	s.out.Token, s.out.Train = next("sync_token_q_Dequeue", given...)
	s.Scope(syncScope+"/", func() {
		s.out.Give = s.Group("give", given...)
		s.out.NextToken, s.out.Take = next("next")
	})
}

// update adds the op that the chief runs again and again.
func (s *synchronizer) update() {
	s.Colocate(s.step.Handle().Node, func() {
		applied := s.out.Update
		s.After([]*graph.Node{applied}, func() { s.out.Update = s.putTokens(max(s.Aggregate, s.Total)) })
		close := func(name string, pending bool) {
			s.Add(graph.NodeSpec{Op: "QueueCloseV2", Name: name, Inputs: []graph.Output{s.queue}, Attrs: graph.Attrs{"cancel_pending_enqueues": attr.Bool(pending)}})
		}
		close("sync_token_q_Close", false)
		close("sync_token_q_Close", true)
	})
}

// putTokens adds an op that puts tokens of the present step into the queue.
func (s *synchronizer) putTokens(count int) *graph.Node {
	return s.enqueueTokens(graph.MakeShape(int64(count)), func() graph.Output { return s.Const("dims", literal.Int32s(int32(count))) })
}

// enqueueTokens adds an op that puts tokens of the present step into the queue,
// of a shape that the output of dims gives.
func (s *synchronizer) enqueueTokens(shape graph.Shape, dims func() graph.Output) *graph.Node {
	name := s.UniqueName("Fill")
	var shapeOf, step graph.Output
	s.Scope(name+"/", func() { shapeOf, step = dims(), s.Read("", s.step) })
	tokens := s.Add(graph.NodeSpec{
		Op: "Fill", Name: name + "/", Inputs: []graph.Output{shapeOf, step},
		Attrs:   graph.Attrs{"T": attr.Type(step.DType()), "index_type": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []graph.OutputType{{DType: step.DType(), Shape: shape}},
	}).Output(0)
	return s.Add(graph.NodeSpec{
		Op: "QueueEnqueueManyV2", Name: "sync_token_q_EnqueueMany", Inputs: []graph.Output{s.queue, tokens},
		Attrs: graph.Attrs{"Tcomponents": attr.Types(s.step.DType), "timeout_ms": attr.Int(-1)},
	})
}

// initialize adds what runs before the first step.
func (s *synchronizer) initialize() {
	all := []*graph.Node{s.out.LocalInit}
	s.Scope(syncScope+"/", func() {
		for _, a := range s.accumulators {
			s.Colocate(a.v.Handle().Node, func() {
				all = append(all, s.Add(graph.NodeSpec{
					Op: a.op("ResourceAccumulatorSetGlobalStep", "AccumulatorSetGlobalStep"), Name: "SetGlobalStep",
					Inputs: []graph.Output{a.ref, s.Read("", s.step)},
				}))
			})
		}
		s.out.ChiefInit = s.Group("group_deps", all...)
	})
	tokens := s.InitTokens
	if tokens == 0 {
		tokens = max(0, s.Aggregate-s.Total)
	}
	if tokens == 0 {
		s.out.InitTokens = s.Group("no_init_tokens")
		return
	}
	s.Colocate(s.step.Handle().Node, func() { s.out.InitTokens = s.putTokens(tokens) })
}

// leftovers adds what empties the accumulators, and what empties and fills the queue.
func (s *synchronizer) leftovers() {
	s.Scope(syncScope+"/left", func() {
		var counts []graph.Output
		for _, a := range s.accumulators {
			s.Colocate(a.v.Handle().Node, func() {
				counts = append(counts, s.Add(graph.NodeSpec{
					Op: a.op("ResourceAccumulatorNumAccumulated", "AccumulatorNumAccumulated"), Inputs: []graph.Output{a.ref},
					Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_INT32, Shape: graph.Shape{}}},
				}).Output(0))
				s.out.Discard = append(s.out.Discard, s.take(a, 1).node)
			})
		}
		s.out.Left = s.Pack("counts", counts...)
		s.Colocate(s.step.Handle().Node, func() {
			s.out.Tokens = s.Add(graph.NodeSpec{Op: "QueueSizeV2", Inputs: []graph.Output{s.queue}, Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_INT32, Shape: graph.Shape{}}}}).Output(0)
		})
		s.out.TokenCount = s.Placeholder("count", tfpb.DataType_DT_INT32, graph.Shape{})
		s.Colocate(s.step.Handle().Node, func() {
			s.out.Drain = s.Add(graph.NodeSpec{
				Op: "QueueDequeueManyV2", Inputs: []graph.Output{s.queue, s.out.TokenCount},
				Outputs: []graph.OutputType{{DType: s.step.DType, Shape: graph.MakeShape(-1)}},
				Attrs:   graph.Attrs{"component_types": attr.Types(s.step.DType), "timeout_ms": attr.Int(-1)},
			})
			s.out.PutTokens = s.enqueueTokens(graph.MakeShape(-1), func() graph.Output {
				return s.Reshape("dims", s.out.TokenCount, graph.MakeShape(1))
			})
		})
	})
}
