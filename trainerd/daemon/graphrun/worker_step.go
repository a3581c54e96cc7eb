package graphrun

import (
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// workerStep returns the op that a worker of SyncReplicasOptimizer runs, if the
// named one is the update of its chief. TensorFlow puts only that into the
// collection train_op, though it waits for the gradients of all workers: who
// runs it as a step waits forever.
//
// The worker's op notes the step of a token, which it takes out of a queue
// after its gradients were given to accumulators.
func workerStep(g *graph.Graph, name string) (string, bool) {
	needs := func(name string, kind func(*tfpb.NodeDef) bool) bool {
		return len(program.Ancestors(g, []string{name}, kind)) > 0
	}
	if !needs(name, program.IsTakeGradient) {
		return "", false
	}
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		if !strings.HasPrefix(n.GetOp(), "Assign") || len(n.GetInput()) < 2 {
			continue
		}
		token, err := g.Node(n.GetInput()[1])
		if err != nil || !strings.HasPrefix(token.GetOp(), "QueueDequeue") {
			continue
		}
		if needs(token.GetName(), program.IsApplyGradient) && !needs(token.GetName(), program.IsTakeGradient) {
			return n.GetName(), true
		}
	}
	return "", false
}
