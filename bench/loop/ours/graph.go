package main

import (
	"context"
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// graphState is the large state in a session of the embedded runtime.
type graphState struct {
	sess    *runtime.Session
	train   *runtime.Callable
	copying bool // all is copied at the cut, as in a session that cannot do better
	made    int64
}

// copyingSession hides that a session can do without a copy.
type copyingSession struct{ session.VariableStore }

func newGraphState(o options) (model, error) {
	b := graph.NewBuilder()
	float := tfpb.DataType_DT_FLOAT
	var updates []*graph.Node
	add := func(name, op, amount string, v *graph.Variable, inputs ...graph.Output) {
		updates = append(updates, b.Add(graph.NodeSpec{Op: op, Name: name, Inputs: append([]graph.Output{v.Handle()}, inputs...),
			Attrs: graph.Attrs{amount: attr.Type(v.DType)}}))
	}
	hot := b.Variable(graph.VariableSpec{Name: "hot", DType: float, Shape: graph.MakeShape(1000), Initial: graph.Zeros()})
	add("change", "AssignAddVariableOp", "dtype", hot, b.Const("ones", literal.Filled(1, hot.Shape.Proto())))
	add("count", "AssignAddVariableOp", "dtype", b.GlobalStep(), b.Const("one", literal.Int64(1)))
	large := graph.MakeShape(tensorMiB << 20 / 4)
	var rate, gradient graph.Output
	if o.all {
		rate, gradient = b.Const("rate", literal.Float(0.1)), b.Const("gradient", literal.Filled(1, large.Proto()))
	}
	for i := range o.mib / tensorMiB {
		v := b.Variable(graph.VariableSpec{Name: fmt.Sprintf("weights/%03d", i), DType: float, Shape: large, Initial: graph.Constant(float32(i))})
		if o.all {
			add("", "ResourceApplyGradientDescent", "T", v, rate, gradient)
		}
	}
	b.Group("train", updates...)
	meta, err := b.MetaGraph()
	if err != nil {
		return nil, err
	}
	s := &graphState{copying: o.copying}
	if s.sess, err = runtime.New(meta.GetGraphDef(), nil); err != nil {
		return nil, err
	}
	for _, v := range b.Variables() {
		if _, err := s.sess.Run(context.Background(), nil, nil, []string{v.Name() + "/Assign"}); err != nil {
			return nil, err
		}
	}
	s.train, err = s.sess.MakeCallable(context.Background(), nil, nil, []string{"train"})
	return s, err
}

// Session is what the Supervisor trains.
func (s *graphState) Session(context.Context) (session.Session, error) {
	if s.copying {
		return copyingSession{s.sess}, nil
	}
	return s.sess, nil
}

func (s *graphState) step() (int64, error) {
	s.made++
	_, err := s.train.Run(context.Background(), nil)
	return s.made, err
}
