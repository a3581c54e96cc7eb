package daemon

import (
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/graph/optimizer"
)

// queueGraph is a graph whose loss adds what a queue gives to what is fed.
func queueGraph(t *testing.T) string {
	const float = tfpb.DataType_DT_FLOAT
	b := graph.NewBuilder()
	step := b.GlobalStep()
	x := b.Placeholder("x", float, graph.MakeShape(-1, 2))
	w := b.Variable(graph.VariableSpec{Name: "w", DType: float, Initial: graph.Ones(), Trainable: true})
	types := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{float}}}}
	queue := b.Add(graph.NodeSpec{Op: "FIFOQueueV2", Name: "queue", Attrs: graph.Attrs{"component_types": types},
		Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_RESOURCE}}})
	taken := b.Add(graph.NodeSpec{Op: "QueueDequeueV2", Name: "taken", Inputs: []graph.Output{queue.Output(0)}, Attrs: graph.Attrs{"component_types": types},
		Outputs: []graph.OutputType{{DType: float}}}).Output(0)
	put := b.Add(graph.NodeSpec{Op: "QueueEnqueueV2", Name: "put", Inputs: []graph.Output{queue.Output(0), b.Const("one", literal.Float(1))},
		Attrs: graph.Attrs{"Tcomponents": types}})
	b.AddBytes(graph.QueueRunnersKey, tfproto.Marshal(&tfpb.QueueRunnerDef{
		QueueName: queue.Name(), EnqueueOpName: []string{put.Name()}, CloseOpName: put.Name(), CancelOpName: put.Name()}))
	taken = b.PlaceholderWithDefault("row", taken, graph.MakeShape())
	fed := b.Mean("fed_loss", b.Square("square", b.Mul("product", x, b.Read("w/read", w))))
	b.AddV2("loss", fed, b.StopGradient("constant", taken))
	b.Fill("pair", graph.MakeShape(2), literal.Float(1))
	optimizer.Minimize(b, fed, optimizer.SGD{}, optimizer.LearningRate{Initial: .01}, step, []*graph.Variable{w})
	return modelFile(t, b)
}

// TestEvaluationTakesNoInput evaluates nothing that would take rows out of a
// queue of the training.
func TestEvaluationTakesNoInput(t *testing.T) {
	meta := queueGraph(t)
	tests := []struct {
		name      string
		overrides []string
		metrics   int
		want      string // in the error
	}{
		{"asked for", []string{"eval.fetches=['fed_loss', 'loss']"}, 0, "loss is computed from what taken takes, so an evaluation would take it from the training"},
		{"asked for by its time", []string{"eval.fetches=[]", "eval.steps=5"}, 0, "eval.fetches: loss is computed from what taken takes"},
		{"not asked for", []string{"eval.fetches=[]"}, 0, ""},
		{"fed", []string{"eval.fetches=['loss']", "graph.eval_feeds={ row = 1.0 }"}, 1, ""},
		{"many numbers", []string{"eval.fetches=['fed_loss', 'pair']"}, 0, "eval.fetches: pair has the shape [2]; name an op that gives one number, such as its mean"},
		{"a loss of many numbers", []string{"eval.fetches=['fed_loss']", "graph.loss=pair:0"}, 0, "graph.loss: pair:0 has the shape [2]; name"},
		{"independent", []string{"eval.fetches=['fed_loss']"}, 1, ""},
	}
	for _, tt := range tests {
		c := noisyConfig(t, meta, tt.overrides...)
		j, err := newJob(t.Context(), c)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(j.program.Metrics) != tt.metrics {
			t.Errorf("%s: evaluates %v, want %d metrics", tt.name, j.program.Metrics, tt.metrics)
		}
		j.close()
	}
}
