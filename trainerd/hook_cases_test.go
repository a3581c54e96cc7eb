package trainerd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// hookGraph is the graph of most of TensorFlow's tests of hooks: op train
// raises the step by stepsPerRun, noop does nothing, each fetch of
// my_summary:0 writes one more than the last one, tensors a, b, c are 0 unless
// fed, and sum is theirs.
func hookGraph(t *testing.T, stepName string, stepsPerRun int64) *tfpb.MetaGraphDef {
	t.Helper()
	b := graph.NewBuilder()
	step := b.Variable(graph.VariableSpec{Name: stepName, DType: tfpb.DataType_DT_INT64, Initial: graph.Value(literal.Int64(0))})
	b.Group("train", assignAdd(b, "raise", step, b.Const("steps", literal.Int64(stepsPerRun))))
	b.Group("noop")
	count := b.Variable(graph.VariableSpec{Name: "count", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Zeros()})
	var value graph.Output
	b.After([]*graph.Node{assignAdd(b, "more", count, b.Const("one", literal.Float(1)))}, func() { value = b.Read("counted", count) })
	b.ScalarSummary("my_summary", "my_summary", value)
	b.ScalarSummary("my_summary2", "my_summary2", b.AddV2("twice", value, value))
	var zeros []graph.Output
	for _, name := range []string{"a", "b", "c"} {
		zeros = append(zeros, b.PlaceholderWithDefault(name, b.Const(name+"_zero", literal.Float(0)), graph.MakeShape()))
	}
	b.AddN("sum", zeros...)
	b.Identity("five", b.Const("five_value", literal.Float(5)))
	b.Identity("ten", b.Const("ten_value", literal.Float(10)))
	b.Identity("plus_one", b.AddV2("x_plus_one", b.Placeholder("x", tfpb.DataType_DT_FLOAT, graph.MakeShape()), b.Const("x_one", literal.Float(1))))
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func assignAdd(b *graph.Builder, name string, v *graph.Variable, by graph.Output) *graph.Node {
	return b.Add(graph.NodeSpec{Op: "AssignAddVariableOp", Name: name, Inputs: []graph.Output{v.Handle(), by},
		Attrs: graph.Attrs{"dtype": attr.Type(v.DType)}})
}

// hooked returns a Supervisor of a hookGraph that does nothing besides its hooks.
func hooked(t *testing.T, hooks ...trainerd.Hook) *trainerd.Supervisor {
	t.Helper()
	return &trainerd.Supervisor{MetaGraph: hookGraph(t, "global_step", 1), Open: target.Open, Logdir: t.TempDir(),
		SaveModelEvery: -1, SaveSummariesEvery: -1, NoReport: true, Hooks: hooks}
}

// run is Supervisor.Run of a training that must go well.
func run(t *testing.T, sv *trainerd.Supervisor, train func(ctx context.Context, sess session.Session) error) {
	t.Helper()
	if err := sv.Run(t.Context(), train); err != nil {
		t.Fatal(err)
	}
}

// times returns a training that runs op train so often.
func times(n int) func(ctx context.Context, sess session.Session) error {
	return func(ctx context.Context, sess session.Session) error {
		for range n {
			if err := trainerd.RunOps(ctx, sess, "train"); err != nil {
				return err
			}
		}
		return nil
	}
}

// points returns the scalars of a logdir with a tag, by step.
func points(t *testing.T, logdir, tag string) map[int64]float64 {
	t.Helper()
	found := map[int64]float64{}
	for _, e := range sessiontest.Events(t, logdir) {
		for _, v := range e.GetSummary().GetValue() {
			if x, ok := decode.Scalar(v); ok && v.GetTag() == tag {
				found[e.GetStep()] = x
			}
		}
	}
	return found
}

// fakeHook is a hook that asks for what it is told to, and counts.
type fakeHook struct {
	hook.Funcs
	request        *hook.RunArgs
	stop           bool
	begun, ended   int
	before, after  int
	context        *hook.RunContext
	values         *hook.RunValues
	failBefore     error
	failBeforeCall int
}

func (h *fakeHook) Begin(context.Context, session.Session) error { h.begun++; return nil }
func (h *fakeHook) End(context.Context, session.Session) error   { h.ended++; return nil }

func (h *fakeHook) BeforeRun(_ context.Context, c *hook.RunContext) (*hook.RunArgs, error) {
	h.before++
	h.context = c
	if h.before == h.failBeforeCall {
		return nil, h.failBefore
	}
	return h.request, nil
}

func (h *fakeHook) AfterRun(_ context.Context, c *hook.RunContext, v *hook.RunValues) error {
	h.after++
	h.values = v
	if h.stop {
		c.RequestStop()
	}
	return nil
}

func float(v float32) *ckptfmt.Tensor { return ckptfmt.Scalar(v) }

// floatsOf returns the scalars of tensors.
func floatsOf(t *testing.T, tensors []*ckptfmt.Tensor) []float32 {
	t.Helper()
	var list []float32
	for _, v := range tensors {
		x, err := ckptfmt.Values[float32](v)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x...)
	}
	return list
}

// logged is a logger and what it was told.
func logged() (*slog.Logger, func() string) {
	var mu sync.Mutex
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	}), nil))
	return log, func() string {
		mu.Lock()
		defer mu.Unlock()
		return b.String()
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var errHook = errors.New("the hook fails")
