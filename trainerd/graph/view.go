package graph

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Graph is a MetaGraphDef, indexed and checked. It is safe for concurrent
// reading.
type Graph struct {
	Meta  *tfpb.MetaGraphDef
	nodes map[string]*tfpb.NodeDef
	vars  map[string][]VariableRef // by collection
}

// Placeholder is a tensor that a run must feed.
type Placeholder struct {
	Name  string // the tensor's, "x:0"
	DType tfpb.DataType
	Shape Shape
}

// VariableRef is a variable of a parsed graph.
type VariableRef struct {
	Def   *tfpb.VariableDef
	DType tfpb.DataType
	Shape Shape
}

// Name returns the variable's name as a checkpoint has it, without ":0".
func (v VariableRef) Name() string {
	t, err := ParseTensorName(v.Def.GetVariableName())
	if err != nil {
		return v.Def.GetVariableName()
	}
	return t.Node
}

// Error is a fault in a MetaGraphDef.
type Error struct {
	Node       string // the node at fault, "" if it is not a node
	Op         string
	Collection string // the collection at fault, "" if it is not a collection
	Message    string
}

func (e *Error) Error() string {
	switch {
	case e.Node != "":
		return fmt.Sprintf("graph: node %s (%s): %s", e.Node, e.Op, e.Message)
	case e.Collection != "":
		return fmt.Sprintf("graph: collection %s: %s", e.Collection, e.Message)
	}
	return "graph: " + e.Message
}

// Parse indexes meta and checks that every input and every name in the known
// collections exists. The Graph refers to meta, which must not change.
func Parse(meta *tfpb.MetaGraphDef) (*Graph, error) {
	defs := meta.GetGraphDef().GetNode()
	if len(defs) == 0 {
		return nil, &Error{Message: "the MetaGraphDef has no nodes"}
	}
	g := &Graph{Meta: meta, nodes: make(map[string]*tfpb.NodeDef, len(defs)), vars: map[string][]VariableRef{}}
	for i, n := range defs {
		if n.GetName() == "" {
			return nil, &Error{Message: fmt.Sprintf("node number %d (%s) has no name", i, n.GetOp())}
		}
		if g.nodes[n.GetName()] != nil {
			return nil, &Error{Node: n.GetName(), Op: n.GetOp(), Message: "there are two nodes of this name"}
		}
		g.nodes[n.GetName()] = n
	}
	for _, n := range defs {
		if err := g.checkInputs(n); err != nil {
			return nil, err
		}
	}
	if err := g.checkCollections(); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *Graph) checkInputs(n *tfpb.NodeDef) error {
	if n.GetOp() == "" {
		return &Error{Node: n.GetName(), Message: "it has no op"}
	}
	control := false
	for i, in := range n.GetInput() {
		t, err := ParseTensorName(in)
		if err != nil {
			return &Error{Node: n.GetName(), Op: n.GetOp(), Message: fmt.Sprintf("input %d: %v", i, err)}
		}
		if g.nodes[t.Node] == nil {
			return &Error{Node: n.GetName(), Op: n.GetOp(), Message: fmt.Sprintf("input %d: there is no node %s", i, t.Node)}
		}
		if control && !t.Control {
			return &Error{Node: n.GetName(), Op: n.GetOp(), Message: fmt.Sprintf("input %d: %s comes after a control input", i, in)}
		}
		control = t.Control
	}
	return nil
}

// Node returns the node that a tensor's or node's name refers to.
func (g *Graph) Node(name string) (*tfpb.NodeDef, error) {
	t, err := ParseTensorName(name)
	if err != nil {
		return nil, &Error{Message: err.Error()}
	}
	n := g.nodes[t.Node]
	if n == nil {
		return nil, &Error{Message: fmt.Sprintf("there is no node %s", t.Node)}
	}
	return n, nil
}

func (g *Graph) node(name string) *tfpb.NodeDef { return g.nodes[name] }

// Placeholders lists the tensors that must be fed, in the graph's order.
func (g *Graph) Placeholders() []Placeholder {
	var list []Placeholder
	for _, n := range g.Meta.GetGraphDef().GetNode() {
		if n.GetOp() != "Placeholder" && n.GetOp() != "PlaceholderV2" {
			continue
		}
		list = append(list, Placeholder{
			Name:  n.GetName() + ":0",
			DType: n.GetAttr()["dtype"].GetType(),
			Shape: placeholderShape(n),
		})
	}
	return list
}

// placeholderShape reads a placeholder's shape. Graphs of producers up to
// version 21 wrote a scalar's shape where they meant an unknown one; what they
// inferred is the better witness.
func placeholderShape(n *tfpb.NodeDef) Shape {
	if inferred := n.GetAttr()[attrShapes].GetList().GetShape(); len(inferred) > 0 {
		return ShapeFromProto(inferred[0])
	}
	return ShapeFromProto(n.GetAttr()["shape"].GetShape())
}

// Ops counts the nodes of each op.
func (g *Graph) Ops() map[string]int {
	ops := map[string]int{}
	for _, n := range g.nodes {
		ops[n.GetOp()]++
	}
	return ops
}

// Variables lists the global variables, those that a checkpoint holds, in the
// order of their collection.
func (g *Graph) Variables() []VariableRef { return slices.Clone(g.vars[GlobalVariables]) }

// LocalVariables lists the variables that are set up again at every start.
func (g *Graph) LocalVariables() []VariableRef { return slices.Clone(g.vars[LocalVariables]) }

// TrainableVariables lists the variables that the training changes.
func (g *Graph) TrainableVariables() []VariableRef { return slices.Clone(g.vars[TrainableVariables]) }

// variable completes a VariableDef with what its node says.
func (g *Graph) variable(collection string, wire []byte) (VariableRef, error) {
	def := &tfpb.VariableDef{}
	if err := proto.Unmarshal(wire, def); err != nil {
		return VariableRef{}, &Error{Collection: collection, Message: fmt.Sprintf("an entry is not a VariableDef: %v", err)}
	}
	n, err := g.Node(def.GetVariableName())
	if err != nil {
		return VariableRef{}, &Error{Collection: collection,
			Message: fmt.Sprintf("variable %q has no node", def.GetVariableName())}
	}
	v := VariableRef{
		Def:   def,
		DType: n.GetAttr()["dtype"].GetType(),
		Shape: ShapeFromProto(n.GetAttr()["shape"].GetShape()),
	}
	for _, name := range []string{def.GetInitializerName(), v.valueTensor()} {
		if name == "" {
			continue
		}
		if _, err := g.Node(name); err != nil {
			return VariableRef{}, &Error{Collection: collection,
				Message: fmt.Sprintf("variable %s: there is no node %s", v.Name(), name)}
		}
	}
	return v, nil
}
