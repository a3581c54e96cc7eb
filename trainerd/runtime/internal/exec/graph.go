package exec

import (
	"fmt"
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// output names one output of a node.
type output struct {
	node  int // index in graph.nodes
	index int
}

// node is one NodeDef with its edges resolved.
type node struct {
	name, op string
	def      *tfpb.NodeDef
	inputs   []output
	control  []int
	calls    []string // the functions that it calls
	loop     *loop    // that the compiler put this node in the place of
}

// graph is a GraphDef, checked and indexed. It does not change.
type graph struct {
	nodes  []node
	byName map[string]int
}

func newGraph(defs []*tfpb.NodeDef) (*graph, error) {
	g := &graph{nodes: make([]node, len(defs)), byName: make(map[string]int, len(defs))}
	for i, d := range defs {
		if d.GetName() == "" {
			return nil, graphError("node %d has no name", i)
		}
		if j, ok := g.byName[d.GetName()]; ok {
			return nil, graphError("nodes %d and %d are both named %q", j, i, d.GetName())
		}
		g.byName[d.GetName()] = i
		g.nodes[i] = node{name: d.GetName(), op: d.GetOp(), def: d, calls: functionsOf(d)}
	}
	for i := range g.nodes {
		if err := g.link(&g.nodes[i]); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// defs returns the nodes that the graph was made of.
func (g *graph) defs() []*tfpb.NodeDef {
	list := make([]*tfpb.NodeDef, len(g.nodes))
	for i := range g.nodes {
		list[i] = g.nodes[i].def
	}
	return list
}

func (g *graph) link(n *node) error {
	for _, in := range n.def.GetInput() {
		if name, ok := strings.CutPrefix(in, "^"); ok {
			j, ok := g.byName[name]
			if !ok {
				return graphError("node %s depends on %q, which is not in the graph", n.name, name)
			}
			n.control = append(n.control, j)
			continue
		}
		out, err := g.lookup(in)
		if err != nil {
			return graphError("input of node %s: %v", n.name, err)
		}
		if len(n.control) > 0 {
			return graphError("node %s has the input %q after a control input", n.name, in)
		}
		n.inputs = append(n.inputs, out)
	}
	return nil
}

// lookup resolves a tensor's name, "node:output" or "node".
func (g *graph) lookup(name string) (output, error) {
	base, index := name, 0
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		v, err := strconv.Atoi(name[i+1:])
		if err != nil || v < 0 {
			return output{}, fmt.Errorf("%q is not the name of a tensor", name)
		}
		base, index = name[:i], v
	}
	j, ok := g.byName[base]
	if !ok {
		return output{}, fmt.Errorf("%q is not in the graph", name)
	}
	return output{j, index}, nil
}

func graphError(format string, args ...any) error {
	return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: "graph: " + fmt.Sprintf(format, args...)}
}
