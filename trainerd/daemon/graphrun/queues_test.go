package graphrun

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// TestQueuesThatNothingFills has graphs whose step would wait forever: exported without a queue
// runner, as that of SyncReplicasOptimizer which only its hook starts.
func TestQueuesThatNothingFills(t *testing.T) {
	node := func(name, op string, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs}
	}
	common := []*tfpb.NodeDef{
		node("q", "FIFOQueueV2"), node("x", "Const"), node("put", "QueueEnqueueV2", "q", "x"), node("put/all", "NoOp", "^put"),
		node("close", "QueueCloseV2", "q"), node("cancel", "QueueCloseV2", "q"), node("take", "QueueDequeueV2", "q"),
		node("reader", "TextLineReaderV2"), node("read", "ReaderReadV2", "reader", "q"),
	}
	runner := &tfpb.QueueRunnerDef{QueueName: "q", EnqueueOpName: []string{"put/all"}, CloseOpName: "close", CancelOpName: "cancel"}
	const nothing = "graph.meta: the step takes from the queue q (%), which nothing fills; add its queue runner"
	tests := []struct {
		name, step, master string
		runner             *tfpb.QueueRunnerDef
		localInit          []string
		more               []*tfpb.NodeDef
		want               string
	}{
		{"no runner", "take", "", nil, nil, nil, strings.Replace(nothing, "%", "take", 1)},
		{"no runner of a reader's files", "read", "", nil, nil, nil, strings.Replace(nothing, "%", "read", 1)},
		{"a runner", "take", "", runner, nil, nil, ""},
		{"filled at the beginning", "take", "", nil, []string{"put/all"}, nil, ""},
		{"filled by the step", "both", "", nil, nil, []*tfpb.NodeDef{node("both", "NoOp", "^take", "^put")}, ""},
		{"on a server", "take", "grpc://localhost:1", nil, nil, nil, ""},
		{"no queue", "x", "", nil, nil, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			meta := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: slices.Concat(common, test.more)}}
			if test.runner != nil {
				wire, err := proto.Marshal(test.runner)
				if err != nil {
					t.Fatal(err)
				}
				list := &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{wire}}}
				meta.CollectionDef = map[string]*tfpb.CollectionDef{graph.QueueRunnersKey: {Kind: list}}
			}
			g, err := graph.Parse(meta)
			if err != nil {
				t.Fatal(err)
			}
			c := &config.Config{Master: test.master}
			p := &program.Program{Train: []string{test.step}, LocalInit: test.localInit}
			j := &graphJob{Validator: config.NewValidator(c), config: c, g: &graphFile{Graph: g, name: "g.meta"}, p: p}
			j.checkQueues(g)
			if err := j.Err(); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
