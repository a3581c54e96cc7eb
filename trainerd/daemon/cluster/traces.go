package cluster

import (
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// traces are what evaluating tensors leaves in a session.
type traces struct {
	random  []string // nodes that draw from streams of random numbers
	written []string // variables that it may assign

	nodes     map[string]*tfpb.NodeDef
	functions map[string]*tfpb.FunctionDef
	drawing   map[string]bool // by function; false while it is looked into
	assigns   map[string]bool // by function and argument; false while it is looked into
}

// RandomOps returns the nodes that draw from streams of random numbers when the
// named ones are run.
func RandomOps(def *tfpb.GraphDef, names []string) []string {
	random := findTraces(def, names).random
	slices.Sort(random)
	return random
}

// findTraces returns the traces of evaluating tensors of a graph. An unknown op counts as one,
// because an evaluation on a copy gives the same values.
func findTraces(def *tfpb.GraphDef, fetches []string) *traces {
	t := &traces{nodes: map[string]*tfpb.NodeDef{}, functions: map[string]*tfpb.FunctionDef{}, drawing: map[string]bool{}, assigns: map[string]bool{}}
	for _, n := range def.GetNode() {
		t.nodes[n.GetName()] = n
	}
	for _, f := range def.GetLibrary().GetFunction() {
		t.functions[f.GetSignature().GetName()] = f
	}
	seen, written := map[string]bool{}, map[string]bool{}
	for stack := fetches; len(stack) > 0; {
		name := nodeOfInput(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		n := t.nodes[name]
		if n == nil || seen[name] {
			continue
		}
		seen[name] = true
		if t.draws(n) {
			t.random = append(t.random, name)
		}
		for i, input := range n.GetInput() {
			if v := t.variableOf(input); v != "" && !written[v] && t.mayAssign(n, i) {
				written[v] = true
				t.written = append(t.written, v)
			}
		}
		stack = append(stack[:len(stack):len(stack)], n.GetInput()...)
	}
	return t
}

// nodeOfInput returns the node that an input, or a fetch, names.
func nodeOfInput(name string) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "^"), ":")
	return name
}

// hasStream reports whether an op draws from a stream that the attributes seed
// and seed2 begin. A queue that shuffles has them too, but evaluations take
// nothing from queues, and servers reject a queue whose seeds have changed.
func hasStream(op string) bool {
	return opdef.AttrDef(op, "seed").GetType() == "int" && opdef.AttrDef(op, "seed2").GetType() == "int" && !strings.Contains(op, "Queue")
}

// draws reports whether a node, or a function that it calls, draws.
func (t *traces) draws(n *tfpb.NodeDef) bool {
	if hasStream(n.GetOp()) {
		return true
	}
	return slices.ContainsFunc(graph.CalledBy(n, t.functions), func(name string) bool {
		known, ok := t.drawing[name]
		if !ok {
			t.drawing[name] = false
			known = slices.ContainsFunc(t.functions[name].GetNodeDef(), t.draws)
			t.drawing[name] = known
		}
		return known
	})
}

// passes are the ops that pass a variable on unchanged.
var passes = map[string]bool{"Identity": true, "Enter": true, "Exit": true, "Switch": true, "Merge": true, "NextIteration": true,
	"RefIdentity": true, "RefEnter": true, "RefExit": true, "RefSwitch": true, "RefMerge": true, "RefNextIteration": true}

// readers are the ops that take a variable without changing it.
var readers = map[string]bool{"ReadVariableOp": true, "VarIsInitializedOp": true, "VariableShape": true,
	"ResourceGather": true, "ResourceGatherNd": true, "IsVariableInitialized": true}

// variableOf returns the variable that an input is, "" for a value.
func (t *traces) variableOf(input string) string {
	if strings.HasPrefix(input, "^") {
		return ""
	}
	for range len(t.nodes) { // a loop of the graph would be without end
		n := t.nodes[nodeOfInput(input)]
		switch op := n.GetOp(); {
		case isVariable(op):
			return n.GetName()
		case !passes[op] || len(n.GetInput()) == 0:
			return ""
		}
		input = n.GetInput()[0]
	}
	return ""
}

func isVariable(op string) bool { return op == "VarHandleOp" || op == "VariableV2" || op == "Variable" }

// mayAssign reports whether a node may change the variable that is its input i.
func (t *traces) mayAssign(n *tfpb.NodeDef, i int) bool {
	op := n.GetOp()
	if readers[op] || passes[op] {
		return false
	}
	if inputs, err := opdef.Inputs(n); err == nil && i < len(inputs) && !inputs[i].Ref && inputs[i].Type != tfpb.DataType_DT_RESOURCE {
		return false // it takes the value
	}
	first, calls := callers[op]
	if !calls || i < first {
		return true
	}
	for _, name := range graph.CalledBy(n, nil) {
		if f := t.functions[name]; f == nil || t.functionMayAssign(f, i-first) {
			return true
		}
	}
	return false
}

// callers are the ops that call functions with their inputs from the given one
// on as arguments.
var callers = map[string]int{"PartitionedCall": 0, "StatefulPartitionedCall": 0, "While": 0, "StatelessWhile": 0,
	"If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1}

// functionMayAssign reports whether a function may change the variable that is
// its argument arg.
func (t *traces) functionMayAssign(f *tfpb.FunctionDef, arg int) bool {
	args := f.GetSignature().GetInputArg()
	if arg >= len(args) {
		return true
	}
	name := args[arg].GetName()
	key := f.GetSignature().GetName() + " " + name
	if known, ok := t.assigns[key]; ok {
		return known
	}
	t.assigns[key] = false // unless its other uses do
	aliases := map[string]bool{name: true}
	for grown := true; grown; {
		grown = false
		for _, n := range f.GetNodeDef() {
			for i, input := range n.GetInput() {
				switch {
				case !aliases[nodeOfInput(input)] || strings.HasPrefix(input, "^"):
				case passes[n.GetOp()]:
					grown = grown || !aliases[n.GetName()]
					aliases[n.GetName()] = true
				case t.mayAssign(n, i):
					t.assigns[key] = true
					return true
				}
			}
		}
	}
	return false
}

// attrsOf returns the attributes of a node, to be added to.
func attrsOf(n *tfpb.NodeDef) graph.Attrs {
	if n.Attr == nil {
		n.Attr = make(map[string]*tfpb.AttrValue)
	}
	return n.Attr
}
