package graphrun

import (
	"fmt"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// checkQueues reports the queues that the step takes from and that nothing fills: it would wait
// forever. The queues of a session that others share may be filled by them.
func (j *graphJob) checkQueues(g *graph.Graph) {
	if j.config.Master != "" {
		return
	}
	nodes := graph.NodesOf(g.Meta.GetGraphDef())
	filled := j.filledQueues(g, nodes)
	for _, op := range program.InputOps(g, j.targets()) {
		in, queue := nodes.Node(op).GetInput(), 0
		if strings.HasPrefix(nodes.Node(op).GetOp(), "Reader") {
			queue = 1
		}
		if queue >= len(in) {
			continue
		}
		n := nodes.Node(graph.NodeName(in[queue]))
		if name := nodes.StoreName(n.GetName()); strings.Contains(n.GetOp(), "Queue") && !filled[name] {
			filled[name] = true // said once
			j.Require(false, "graph.meta", fmt.Sprintf("the step takes from the queue %s (%s), which nothing fills", name, op),
				"add its queue runner to the graph before the export, with tf.compat.v1.train.add_queue_runner")
		}
	}
}

// filledQueues returns the queues into which the step, the queue runners or the init ops put
// something.
func (j *graphJob) filledQueues(g *graph.Graph, nodes graph.Nodes) map[string]bool {
	ops := slices.Concat(j.targets(), j.p.Init, j.p.LocalInit)
	runners, err := g.QueueRunners()
	j.bad("graph.meta", err)
	for _, r := range runners {
		ops = append(ops, r.GetEnqueueOpName()...)
	}
	filled := map[string]bool{}
	graph.Walk(nodes.Node, ops, func(n *tfpb.NodeDef) bool {
		if strings.HasPrefix(n.GetOp(), "QueueEnqueue") && len(n.GetInput()) > 0 {
			filled[nodes.StoreName(graph.NodeName(n.GetInput()[0]))] = true
		}
		return true
	})
	return filled
}
