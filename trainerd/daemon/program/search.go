package program

import (
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// IsTakeGradient reports whether a node takes the mean of gradients that workers
// have contributed.
func IsTakeGradient(n *tfpb.NodeDef) bool {
	return strings.HasSuffix(n.GetOp(), "AccumulatorTakeGradient")
}

// IsApplyGradient reports whether a node contributes a gradient to such a mean.
func IsApplyGradient(n *tfpb.NodeDef) bool {
	return strings.HasSuffix(n.GetOp(), "AccumulatorApplyGradient")
}

// Ancestors returns the nodes of a kind among those that running the named ones
// takes.
func Ancestors(g *graph.Graph, names []string, kind func(*tfpb.NodeDef) bool) []string {
	if !slices.ContainsFunc(g.Meta.GetGraphDef().GetNode(), kind) {
		return nil // as in most graphs; walking takes much longer than looking
	}
	var found []string
	node := func(name string) *tfpb.NodeDef {
		n, _ := g.Node(name)
		return n
	}
	graph.Walk(node, names, func(n *tfpb.NodeDef) bool {
		if kind(n) {
			found = append(found, n.GetName())
		}
		return true
	})
	slices.Sort(found)
	return found
}

// InputOps returns the nodes among those that the named ones need which take
// something from a queue or a reader.
func InputOps(g *graph.Graph, names []string) []string {
	return Ancestors(g, names, isInput)
}

func isInput(n *tfpb.NodeDef) bool {
	return strings.HasPrefix(n.GetOp(), "QueueDequeue") || strings.HasPrefix(n.GetOp(), "ReaderRead")
}

// NodeOf returns the node of a tensor whose name is canonical.
func NodeOf(tensor string) string { return tensor[:strings.LastIndexByte(tensor, ':')] }

// NonEmpty returns a list of one name, or of none for "".
func NonEmpty(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// TakesInput reports whether a step takes elements of the graph's input with a
// node.
func TakesInput(n *tfpb.NodeDef) bool {
	return isInput(n) || strings.HasPrefix(n.GetOp(), "IteratorGetNext")
}

// waiting begins the names of ops that wait until others have put something in,
// or taken something out.
var waiting = []string{"QueueDequeue", "QueueEnqueue", "ReaderRead", "IteratorGetNext", "BarrierTake",
	"Stage", "Unstage", "MapStage", "MapUnstage", "MapPeek", "OrderedMapStage", "OrderedMapUnstage", "OrderedMapPeek"}

// MayWait reports whether a node may wait without end for what others do.
func MayWait(n *tfpb.NodeDef) bool {
	return IsTakeGradient(n) || slices.ContainsFunc(waiting, func(prefix string) bool { return strings.HasPrefix(n.GetOp(), prefix) }) &&
		!strings.HasSuffix(n.GetOp(), "Size") && !strings.HasSuffix(n.GetOp(), "Clear")
}
