package trainerd_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/graph/optimizer"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// plainGraph is a graph as a program makes it that knows nothing of
// supervisors: w goes half of the way to 4 in each step. It has no saver and
// no init, ready or summary op.
func plainGraph() (*tfpb.MetaGraphDef, error) {
	b := graph.NewBuilder()
	step := b.GlobalStep()
	w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Zeros(), Trainable: true})
	rate := b.Variable(graph.VariableSpec{Name: "bias", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Ones()})
	miss := b.Sub("miss", b.Read("", w), b.Const("goal", literal.Float(4)))
	loss := b.Square("loss", miss)
	b.ScalarSummary("summaries/loss", "loss", loss)
	train, _ := optimizer.Minimize(b, loss, optimizer.SGD{}, optimizer.LearningRate{Initial: 0.25}, step, []*graph.Variable{w})
	b.Group("train", train)
	b.Identity("bias_value", b.Read("", rate))
	x := b.Placeholder("x", tfpb.DataType_DT_FLOAT, graph.MakeShape())
	b.AddV2("x_plus_w", x, b.Read("", w))
	return b.MetaGraph()
}

func mustPlainGraph(t testing.TB) *tfpb.MetaGraphDef {
	t.Helper()
	meta, err := plainGraph()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// scalarOf reads a scalar of a session.
func scalarOf(t *testing.T, sess session.Session, name string) float32 {
	t.Helper()
	out, err := sess.Run(t.Context(), nil, []string{name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ckptfmt.Values[float32](out[0])
	if err != nil || len(v) != 1 {
		t.Fatalf("%s: %v, %v; want one float", name, v, err)
	}
	return v[0]
}

// A plain graph is enough for a chief at every master: it is initialised, saved
// and restored.
func TestPlainGraphAtEveryMaster(t *testing.T) {
	for _, kind := range masters {
		t.Run(kind.name, func(t *testing.T) {
			logdir := t.TempDir()
			for run := range 2 {
				// A new master, whose variables have no values.
				sv := &trainerd.Supervisor{MetaGraph: mustPlainGraph(t), Open: kind.open(), Master: kind.master(t), Logdir: logdir}
				err := sv.Run(t.Context(), func(ctx context.Context, sess session.Session) error {
					if got, want := scalarOf(t, sess, "loss:0"), float32(16)/float32(int(1)<<(4*run)); got != want {
						t.Errorf("run %d begins with loss %v, want %v", run, got, want)
					}
					for range 2 {
						if _, err := sess.Run(ctx, nil, nil, []string{"train"}); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			latest, err := ckptdir.LatestCheckpoint(logdir, nil)
			if err != nil || filepath.Base(latest) != "model.ckpt-4" {
				t.Errorf("newest checkpoint: %s, %v; want model.ckpt-4", latest, err)
			}
		})
	}
}

// masters are the kinds of masters. Each call of master begins a new one.
var masters = []masterKind{
	{"this process", false, func(*testing.T) string { return "" }},
	{"local", false, func(*testing.T) string { return target.Local }},
	{"server", false, newServer},
	{"server with a disk", true, newServer},
}

type masterKind struct {
	name   string
	disk   bool // checkpoints by the graph's ops
	master func(t *testing.T) string
}

// open returns what makes sessions there.
func (k masterKind) open() func(context.Context, string, *tfpb.MetaGraphDef) (session.Session, error) {
	return (&target.Options{ServerDisk: k.disk}).Open
}

// newServer serves a session of this process and returns its master string.
func newServer(t *testing.T) string {
	t.Helper()
	s, err := (&target.Options{}).Serve(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Master()
}

// A worker with the same plain graph waits for the chief's initialisation.
func TestPlainGraphWorkerWaits(t *testing.T) {
	master, logdir := newServer(t), t.TempDir()
	waiting := make(chan struct{}, 100)
	worker := &trainerd.Supervisor{MetaGraph: mustPlainGraph(t), Open: target.Open, Master: master, Logdir: logdir, NonChief: true,
		RecoveryWait: 10 * time.Millisecond, OnWait: func(error) { waiting <- struct{}{} }}
	ended := make(chan error, 1)
	go func() {
		ended <- worker.Run(t.Context(), func(ctx context.Context, sess session.Session) error {
			_, err := sess.Run(ctx, nil, nil, []string{"train"})
			return err
		})
	}()
	<-waiting
	chief := &trainerd.Supervisor{MetaGraph: mustPlainGraph(t), Open: target.Open, Master: master, Logdir: logdir}
	err := chief.Run(t.Context(), func(context.Context, session.Session) error { return <-ended })
	if err != nil {
		t.Fatal(err)
	}
	latest, err := ckptdir.LatestCheckpoint(logdir, nil)
	if err != nil || filepath.Base(latest) != "model.ckpt-1" {
		t.Errorf("newest checkpoint: %s, %v; want model.ckpt-1: the worker's step", latest, err)
	}
}

// What Open is given with has to agree.
func TestOpenOptions(t *testing.T) {
	meta := mustPlainGraph(t)
	none := func(context.Context) (session.Session, error) { return nil, nil }
	for want, sv := range map[string]*trainerd.Supervisor{
		"none of Open, NewSession":    {},
		"without MetaGraph":           {Open: target.Open},
		"together with NewSession":    {Open: target.Open, MetaGraph: meta, NewSession: none},
		`Master is "local" without`:   {NewSession: none, Master: "local"},
		`not of the form grpc://`:     {Open: target.Open, MetaGraph: meta, Master: "localhost"},
		`the port is missing`:         {Open: target.Open, MetaGraph: meta, Master: "grpc://localhost"},
		`Supervisor.MetaGraph: graph`: {Open: target.Open, MetaGraph: brokenGraph()},
	} {
		err := sv.Run(t.Context(), func(context.Context, session.Session) error { return nil })
		wantErrorWith(t, err, want)
	}
}

// brokenGraph has a node whose input there is not.
func brokenGraph() *tfpb.MetaGraphDef {
	return &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a", Op: "Identity", Input: []string{"b"}}}}}
}

func wantErrorWith(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v; want one with %q", err, want)
	}
}
