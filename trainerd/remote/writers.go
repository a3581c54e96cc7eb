package remote

import (
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// writers says which nodes of a graph change variables, and which put
// something into a queue.
type writers struct {
	inputs    map[string][]string
	changes   map[string]bool
	feeds     map[string]bool // queues
	functions map[string]*tfpb.FunctionDef
	calls     map[string]bool // by function: whether it changes variables; one that calls itself may
}

func newWriters(def *tfpb.GraphDef) *writers {
	w := &writers{inputs: map[string][]string{}, changes: map[string]bool{}, feeds: map[string]bool{},
		functions: map[string]*tfpb.FunctionDef{}, calls: map[string]bool{}}
	w.add(def)
	return w
}

// add adds the nodes of an extended graph.
func (w *writers) add(def *tfpb.GraphDef) {
	for _, f := range def.GetLibrary().GetFunction() {
		w.functions[f.GetSignature().GetName()] = f
	}
	for _, n := range def.GetNode() {
		for _, in := range n.GetInput() {
			w.inputs[n.GetName()] = append(w.inputs[n.GetName()], graph.NodeName(in))
		}
		w.changes[n.GetName()] = w.nodeChanges(n)
		w.feeds[n.GetName()] = strings.HasPrefix(n.GetOp(), "QueueEnqueue")
	}
}

// nodeChanges reports whether a node, or a function that it calls, changes variables. One that
// the graph does not have may.
func (w *writers) nodeChanges(n *tfpb.NodeDef) bool {
	called := graph.CalledBy(n, w.functions)
	if len(called) == 0 {
		return changesVariables(n.GetOp())
	}
	return slices.ContainsFunc(called, func(name string) bool {
		f := w.functions[name]
		if f == nil {
			return true
		}
		changes, known := w.calls[name]
		if !known {
			w.calls[name] = true
			changes = slices.ContainsFunc(f.GetNodeDef(), w.nodeChanges)
			w.calls[name] = changes
		}
		return changes
	})
}

// changesVariables goes by TensorFlow's names. Ops that call functions may, which are not known
// here, and those that draw from a generator whose state is a variable.
func changesVariables(op string) bool {
	op = strings.TrimPrefix(strings.TrimPrefix(op, "Resource"), "Sparse")
	for _, prefix := range []string{"Apply", "Assign", "Scatter", "StridedSliceAssign", "CountUpTo", "Rng", "Stateful", "If", "While", "For", "Case", "RemoteCall", "DestroyResource", "NegTrain", "Sdca"} {
		if strings.HasPrefix(op, prefix) && op != "ScatterNd" {
			return true
		}
	}
	return false
}

// step reports whether a step with these fetches and targets changes
// variables. One that fills a queue does not count: it may wait for a step
// that empties the queue, and what it changes are counters of the input.
func (w *writers) step(feeds []string, names ...[]string) bool {
	seen := map[string]bool{}
	for _, name := range feeds {
		seen[graph.NodeName(name)] = true
	}
	var stack []string
	for _, list := range names {
		for _, name := range list {
			stack = append(stack, graph.NodeName(name))
		}
	}
	changes := false
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[n] {
			continue
		}
		seen[n] = true
		if w.feeds[n] {
			return false
		}
		changes = changes || w.changes[n]
		stack = append(stack, w.inputs[n]...)
	}
	return changes
}
