package trainerd_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// memoryBound is the bound of the sessions here. A model of bigVariable fits once,
// and not a second time.
const (
	memoryBound = 16 << 20
	bigVariable = 3 << 19 // floats
)

// bigGraph counts steps next to a large variable. Its node "waste" needs as many
// bytes as "size" says.
func bigGraph(t *testing.T) *tfpb.MetaGraphDef {
	t.Helper()
	b := graph.NewBuilder()
	step := b.GlobalStep()
	b.Variable(graph.VariableSpec{Name: "big", DType: tfpb.DataType_DT_FLOAT, Shape: graph.MakeShape(bigVariable), Initial: graph.Zeros()})
	b.Group("train", b.Assign("count", step, b.AddV2("next", b.Read("", step), b.Const("one", literal.Int64(1)))))
	size := b.Placeholder("size", tfpb.DataType_DT_INT32, graph.MakeShape(1))
	b.Add(graph.NodeSpec{Op: "Fill", Name: "waste", Inputs: []graph.Output{size, b.Const("zero", literal.Float(0))},
		Attrs:   graph.Attrs{"T": attr.Type(tfpb.DataType_DT_FLOAT), "index_type": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_FLOAT}}})
	meta, err := b.MetaGraph()
	sessiontest.MustNoErr(t, err)
	return meta
}

func waste(ctx context.Context, s session.Session, bytes int32) error {
	size, err := ckptfmt.FromValues([]int64{1}, []int32{bytes / 4})
	if err != nil {
		return err
	}
	_, err = s.Run(ctx, map[string]*ckptfmt.Tensor{"size:0": size}, nil, []string{"waste"})
	return err
}

var errExhausted = &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED}

// Sessions that end because the loss is NaN, or because they are lost, give
// back their memory: the bound is that of one session, however many there were.
// A session that needs too much is not a lost one, and nothing to go back for: its
// error ends the run, and the last checkpoint stays.
func TestMemoryBoundOfSessionsInARow(t *testing.T) {
	for name, failure := range map[string]error{
		"rewind": &hook.NaNError{Step: 3}, "lost": session.ErrUnavailable,
	} {
		for _, master := range []string{"", target.Local} {
			t.Run(name+" "+master, func(t *testing.T) {
				dir, sessions := t.TempDir(), 0
				sv := &trainerd.Supervisor{MetaGraph: bigGraph(t), Open: (&target.Options{MaxMemory: memoryBound}).Open, Master: master, Logdir: dir,
					MaxRewinds: 4, MaxRestarts: 1}
				err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
					sessions++
					for range 3 {
						sessiontest.MustNoErr(t, trainerd.RunOps(ctx, s, "train"))
						_, err := sv.Save(ctx)
						sessiontest.MustNoErr(t, err)
					}
					sessiontest.MustNoErr(t, waste(ctx, s, 2<<20))
					if sessions < 4 {
						return failure
					}
					return waste(ctx, s, memoryBound)
				})
				if sessions != 4 || !errors.Is(err, errExhausted) {
					t.Errorf("%d sessions, %v; want the fourth to end the run with RESOURCE_EXHAUSTED", sessions, err)
				}
				saved, _ := sv.LastSave()
				latest, err := ckptdir.LatestCheckpoint(dir, nil)
				if sessiontest.MustNoErr(t, err); filepath.Base(latest) != filepath.Base(saved.Prefix) || saved.Step < 3 {
					t.Errorf("newest checkpoint %s; want %s", latest, saved.Prefix)
				}
			})
		}
	}
}
