package remote

import (
	"maps"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// opTypes maps the names of a graph's nodes to their ops.
type opTypes map[string]string

// graphIndex is what the client keeps of a session's graph. It is immutable; an extension makes a
// new one.
type graphIndex struct {
	ops opTypes
	// values maps the handle of a resource variable, as a tensor, to a tensor
	// with its value. Handles cannot be fetched.
	values map[string]string
}

// extended returns the index of the graph with more nodes.
func (g *graphIndex) extended(nodes []*tfpb.NodeDef) *graphIndex {
	e := &graphIndex{ops: make(opTypes, len(g.ops)+len(nodes)), values: maps.Clone(g.values)}
	maps.Copy(e.ops, g.ops)
	for _, n := range nodes {
		e.ops[n.GetName()] = n.GetOp()
	}
	for _, n := range nodes {
		if n.GetOp() != "ReadVariableOp" || len(n.GetInput()) != 1 {
			continue // one with a control input may be meant to read later
		}
		handle := tensorName(n.GetInput()[0])
		node, _, _ := strings.Cut(handle, ":")
		if _, ok := e.values[handle]; !ok && e.ops[node] == "VarHandleOp" {
			e.values[handle] = tensorName(n.GetName())
		}
	}
	return e
}

func newGraphIndex(graph *tfpb.GraphDef) *graphIndex {
	return (&graphIndex{values: map[string]string{}}).extended(graph.GetNode())
}

// fetched returns the tensor to fetch for name: a variable's value for its
// handle.
func (g *graphIndex) fetched(name string) string {
	if value, ok := g.values[name]; ok {
		return value
	}
	return name
}
