package cluster

import (
	"cmp"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// waitingOp is an op that may wait.
type waitingOp struct {
	node     *tfpb.NodeDef
	function *tfpb.FunctionDef // that it is in, nil for the graph
	path     string            // its name, after those of the ops that call its function
	device   string            // its own, else that of the nearest call that has one
}

// waitFinder finds ops that may wait, in a graph and in the functions that it
// calls.
type waitFinder struct {
	functions map[string]*tfpb.FunctionDef
	seen      map[string]bool // functions; one that is called twice counts for both
	found     []waitingOp
}

// findWaits returns those that the named nodes need.
func findWaits(def *tfpb.GraphDef, roots []string) []waitingOp {
	f := &waitFinder{functions: make(map[string]*tfpb.FunctionDef), seen: make(map[string]bool)}
	for _, fn := range def.GetLibrary().GetFunction() {
		f.functions[fn.GetSignature().GetName()] = fn
	}
	f.exclude(def)
	f.walk(def.GetNode(), roots, waitingOp{})
	slices.SortFunc(f.found, func(a, b waitingOp) int { return strings.Compare(a.path, b.path) })
	return f.found
}

// exclude leaves out functions that are not called by the ops of a step, such as those of data
// sets: their ops may not depend on the state of a server.
func (f *waitFinder) exclude(def *tfpb.GraphDef) {
	nodes := slices.Clone(def.GetNode())
	for _, fn := range def.GetLibrary().GetFunction() {
		nodes = append(nodes, fn.GetNodeDef()...)
	}
	var out []string
	for _, n := range nodes {
		if !calls(n) {
			out = append(out, graph.CalledBy(n, nil)...) // not the one that it is a call of
		}
	}
	for len(out) > 0 {
		name := out[len(out)-1]
		out = out[:len(out)-1]
		if f.seen[name] {
			continue
		}
		f.seen[name] = true
		for _, n := range f.functions[name].GetNodeDef() {
			out = append(out, graph.CalledBy(n, f.functions)...)
		}
	}
}

// walk visits the named nodes and the nodes that they need. at is the call that has led here.
func (f *waitFinder) walk(nodes []*tfpb.NodeDef, roots []string, at waitingOp) {
	byName := make(map[string]*tfpb.NodeDef, len(nodes))
	for _, n := range nodes {
		byName[n.GetName()] = n
	}
	seen := make(map[string]bool)
	for stack := slices.Clone(roots); len(stack) > 0; {
		name := nodeOfInput(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		n := byName[name]
		if n == nil || seen[name] {
			continue
		}
		seen[name] = true
		stack = append(stack, n.GetInput()...)
		here := waitingOp{node: n, function: at.function, path: at.path + name, device: cmp.Or(n.GetDevice(), at.device)}
		if program.MayWait(n) {
			f.found = append(f.found, here)
		}
		if calls(n) || f.functions[n.GetOp()] != nil {
			f.enter(graph.CalledBy(n, f.functions), here)
		}
	}
}

// enter visits functions that a node calls.
func (f *waitFinder) enter(names []string, call waitingOp) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		fn := f.functions[name]
		if fn == nil || f.seen[name] {
			continue
		}
		f.seen[name] = true
		var roots []string
		for _, output := range fn.GetRet() {
			roots = append(roots, output)
		}
		for _, node := range fn.GetControlRet() {
			roots = append(roots, node)
		}
		f.walk(fn.GetNodeDef(), roots, waitingOp{function: fn, path: call.path + "/" + name + "/", device: call.device})
	}
}

// calls reports whether a node runs its functions as parts of the step.
func calls(n *tfpb.NodeDef) bool {
	switch n.GetOp() {
	case "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "For":
		return true
	}
	return false
}
