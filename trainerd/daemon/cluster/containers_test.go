package cluster

import (
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// TestOwnInputs gives a worker's own queues and readers a container, another one
// each time, and leaves alone what others share.
func TestOwnInputs(t *testing.T) {
	const worker = "/job:worker/task:1"
	tests := []struct {
		name string
		node *tfpb.NodeDef
		own  bool
	}{
		{"queue", &tfpb.NodeDef{Op: "FIFOQueueV2"}, true},
		{"old queue on the worker", &tfpb.NodeDef{Op: "RandomShuffleQueue", Device: worker + "/device:CPU:0"}, true},
		{"queue on any worker", &tfpb.NodeDef{Op: "PaddingFIFOQueueV2", Device: "/job:worker"}, true},
		{"reader", &tfpb.NodeDef{Op: "TFRecordReaderV2"}, true},
		{"iterator", &tfpb.NodeDef{Op: "OneShotIterator"}, true},
		{"queue with a shared name", &tfpb.NodeDef{Op: "FIFOQueueV2", Attr: graph.Attrs{"shared_name": attr.String("tokens")}}, false},
		{"queue on a parameter server", &tfpb.NodeDef{Op: "FIFOQueueV2", Device: "/job:ps/task:0"}, false},
		{"queue on another worker", &tfpb.NodeDef{Op: "FIFOQueueV2", Device: "/job:worker/task:0"}, false},
		{"queue in a container", &tfpb.NodeDef{Op: "FIFOQueueV2", Attr: graph.Attrs{"container": attr.String("mine")}}, false},
		{"variable", &tfpb.NodeDef{Op: "VarHandleOp"}, false},
		{"op on a queue", &tfpb.NodeDef{Op: "QueueDequeueV2"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := string(test.node.GetAttr()["container"].GetS())
			ownInputs(&tfpb.GraphDef{Node: []*tfpb.NodeDef{test.node}}, worker)
			first := string(test.node.GetAttr()["container"].GetS())
			if own := first != before; own != test.own {
				t.Errorf("the container is %q", first)
			}
			again := &tfpb.NodeDef{Op: test.node.Op}
			ownInputs(&tfpb.GraphDef{Node: []*tfpb.NodeDef{again}}, worker)
			if test.own && string(again.GetAttr()["container"].GetS()) == first {
				t.Errorf("two sessions have the same container")
			}
		})
	}
}
