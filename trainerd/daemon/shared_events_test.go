package daemon

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// TestSharedEvents has graphs whose summary writers write into the logdir, into a folder in it,
// or where only a feed says: the first is told, before the run and in it.
func TestSharedEvents(t *testing.T) {
	text := graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_STRING)}
	for _, tt := range []struct {
		below string // the logdir
		fed   bool
		want  bool
	}{{".", false, true}, {"graph", false, false}, {".", true, false}} {
		b := graph.NewBuilder()
		w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Value(literal.Float(8)), Trainable: true})
		b.Add(graph.NodeSpec{Op: "AssignSubVariableOp", Name: "lower", Inputs: []graph.Output{w.Handle(), b.Const("one", literal.Float(1))},
			Attrs: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_FLOAT)}})
		logdir := filepath.Join(t.TempDir(), "logs")
		dir := b.Const("dir", literal.String(filepath.Join(logdir, tt.below)))
		if tt.fed {
			dir = b.Add(graph.NodeSpec{Op: "PlaceholderWithDefault", Name: "fed", Inputs: []graph.Output{dir}, Attrs: text}).Output(0)
		}
		same := b.Add(graph.NodeSpec{Op: "Identity", Name: "same", Inputs: []graph.Output{dir}, Attrs: graph.Attrs{"T": text["dtype"]}})
		writer := b.Add(graph.NodeSpec{Op: "SummaryWriter", Name: "writer", Attrs: graph.Attrs{"shared_name": attr.String("w"), "container": attr.String("")}})
		ten := b.Const("ten", literal.Int32(10))
		b.Add(graph.NodeSpec{Op: "CreateSummaryFileWriter", Name: "open",
			Inputs: []graph.Output{writer.Output(0), same.Output(0), ten, ten, b.Const("suffix", literal.String(".v2"))}})
		c := graphConfig(t, modelFile(t, b), `train_op = "lower"`, "[train]", "steps = 2")
		c.Logdir = logdir
		const says = "the graph's summary writers write into the logdir"
		var report strings.Builder
		overrides := []config.Override{{Flag: "--logdir", Assignment: "logdir=" + strconv.Quote(logdir)}}
		if err := Check(t.Context(), c.File(), overrides, &report); err != nil || strings.Contains(report.String(), says) != tt.want {
			t.Errorf("%+v: check: %v\n%s", tt, err, &report)
		}
		if _, log := runJob(t, t.Context(), c); strings.Contains(log, says) != tt.want {
			t.Errorf("%+v: the log is\n%s", tt, log)
		}
	}
}
