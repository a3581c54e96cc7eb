package graph

import (
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// NodeName returns the name of the node that a tensor's name refers to.
func NodeName(tensor string) string {
	tensor = strings.TrimPrefix(tensor, "^")
	if i := strings.LastIndexByte(tensor, ':'); i >= 0 {
		return tensor[:i]
	}
	return tensor
}

// Walk calls visit once for each node that the named tensors or nodes need, and for those
// themselves. What a node needs in turn is visited if visit returns true for it. node looks
// up a name, and returns nil for one that the graph lacks.
func Walk(node func(name string) *tfpb.NodeDef, names []string, visit func(*tfpb.NodeDef) bool) {
	seen := make(map[*tfpb.NodeDef]bool)
	for stack := slices.Clone(names); len(stack) > 0; {
		n := node(NodeName(stack[len(stack)-1]))
		stack = stack[:len(stack)-1]
		if n == nil || seen[n] {
			continue
		}
		seen[n] = true
		if visit(n) {
			stack = append(stack, n.GetInput()...)
		}
	}
}

// Nodes are the nodes of a graph, by name.
type Nodes struct {
	list   []*tfpb.NodeDef
	byName map[string]*tfpb.NodeDef
}

// NodesOf indexes the nodes of a graph.
func NodesOf(def *tfpb.GraphDef) Nodes {
	n := Nodes{list: def.GetNode(), byName: make(map[string]*tfpb.NodeDef, len(def.GetNode()))}
	for _, node := range n.list {
		n.byName[node.GetName()] = node
	}
	return n
}

// Node returns the node of that name, nil if there is none.
func (n Nodes) Node(name string) *tfpb.NodeDef { return n.byName[name] }

// Type returns the type of a variable.
func (n Nodes) Type(variable string) (tfpb.DataType, bool) {
	node, ok := n.byName[variable]
	return node.GetAttr()["dtype"].GetType(), ok
}

// StoreName returns a session's name for the variable of a node: its shared
// name, if it has one.
func (n Nodes) StoreName(variable string) string {
	if shared := n.byName[variable].GetAttr()["shared_name"].GetS(); len(shared) > 0 {
		return string(shared)
	}
	return variable
}

// Reads finds, for the name of a variable, a node that only reads the
// variable, so it can be run at any time.
func (n Nodes) Reads() map[string]string {
	reads := make(map[string]string)
	for _, node := range n.list {
		if op := node.GetOp(); op != "Identity" && op != "ReadVariableOp" || len(node.GetInput()) != 1 {
			continue
		}
		if name := NodeName(node.GetInput()[0]); reads[name] == "" {
			reads[name] = node.GetName()
		}
	}
	return reads
}

// Placeholder returns a placeholder that computing one of the named tensors
// needs: its value has to be fed.
func (n Nodes) Placeholder(names []string) (placeholder string, needed bool) {
	Walk(n.Node, names, func(node *tfpb.NodeDef) bool {
		if op := node.GetOp(); !needed && (op == "Placeholder" || op == "PlaceholderV2") {
			placeholder, needed = node.GetName(), true
		}
		return !needed
	})
	return placeholder, needed
}

// ValueTensor returns the tensor with the value of a variable. The name of a
// resource variable is that of its handle.
func (g Collections) ValueTensor(variable string) string {
	for _, key := range []string{GlobalStepKey, GlobalVariables} {
		vars, _ := g.Variables(key)
		for _, v := range vars {
			if v.GetIsResource() && NodeName(v.GetVariableName()) == variable && v.GetSnapshotName() != "" {
				return v.GetSnapshotName()
			}
		}
	}
	return variable + ":0"
}

// ReadableTensor returns the tensor with the value of a variable, "" if the graph
// does not say.
func (g Collections) ReadableTensor(variable string) string {
	if value := g.ValueTensor(variable); value != variable+":0" {
		return value
	}
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		if n.GetName() == variable && (n.GetOp() == "VariableV2" || n.GetOp() == "Variable") {
			return variable + ":0"
		}
	}
	return ""
}
