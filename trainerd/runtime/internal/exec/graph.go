package exec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/trainerd/trainerd/internal/opdef"
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
	declared          // by the op's definition
	loop     *loop    // that the compiler put this node in the place of
}

// declared is what the definition of a node's op says of its inputs and outputs.
type declared struct {
	ins, outs     []opdef.Tensor
	inErr, outErr error // why that cannot be known
}

// declare asks the definition of the node's op. It appends to list, which many nodes
// share, and returns that.
func (n *node) declare(list []opdef.Tensor) []opdef.Tensor {
	first := len(list)
	list, n.inErr = opdef.AppendInputs(list, n.def)
	last := len(list)
	n.ins = list[first:last:last]
	list, n.outErr = opdef.AppendOutputs(list, n.def)
	n.outs = list[last:len(list):len(list)]
	return list
}

// graph is a GraphDef, checked and indexed. It does not change.
type graph struct {
	nodes  []node
	byName map[string]int
	// built notes the nodes that were found to build, so that each is tried once.
	built []atomic.Bool
}

func newGraph(defs []*tfpb.NodeDef) (*graph, error) {
	g := &graph{nodes: make([]node, len(defs)), byName: make(map[string]int, len(defs)), built: make([]atomic.Bool, len(defs))}
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
	const usual = 3 // inputs and outputs of a node
	list, edges := make([]opdef.Tensor, 0, usual*len(defs)), makeLinks(defs)
	for i := range g.nodes {
		n := &g.nodes[i]
		if err := g.link(n, edges); err != nil {
			return nil, err
		}
		list = n.declare(list)
	}
	return g, nil
}

// links are the edges to many nodes, which share their memory.
type links struct {
	inputs  []output
	control []int
}

func makeLinks(defs []*tfpb.NodeDef) *links {
	control, all := 0, 0
	for _, d := range defs {
		all += len(d.GetInput())
		for _, in := range d.GetInput() {
			if isControl(in) {
				control++
			}
		}
	}
	return &links{make([]output, 0, all-control), make([]int, 0, control)}
}

func isControl(input string) bool { return strings.HasPrefix(input, "^") }

// defs returns the nodes that the graph was made of.
func (g *graph) defs() []*tfpb.NodeDef {
	list := make([]*tfpb.NodeDef, len(g.nodes))
	for i := range g.nodes {
		list[i] = g.nodes[i].def
	}
	return list
}

// link resolves the inputs of a node.
func (g *graph) link(n *node, l *links) error {
	inputs, control := len(l.inputs), len(l.control)
	for _, in := range n.def.GetInput() {
		if name, ok := strings.CutPrefix(in, "^"); ok {
			j, ok := g.byName[name]
			if !ok {
				return graphError("node %s depends on %q, which is not in the graph", n.name, name)
			}
			l.control = append(l.control, j)
			continue
		}
		out, err := g.lookup(in)
		if err != nil {
			return graphError("input of node %s: %v", n.name, err)
		}
		if len(l.control) > control {
			return graphError("node %s has the input %q after a control input", n.name, in)
		}
		l.inputs = append(l.inputs, out)
	}
	n.inputs, n.control = slices.Clip(l.inputs[inputs:]), slices.Clip(l.control[control:])
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
