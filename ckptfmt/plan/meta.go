package plan

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

const refTypes = 100 // what a reference type adds to the type

// FromMeta returns the variables that a MetaGraph would restore: those that
// its Saver's ops name; without a Saver, all of its global variables; without
// that collection, every op that holds a variable.
func FromMeta(m *tfpb.MetaGraphDef) ([]Variable, error) {
	graph := newGraph(m)
	variables, err := graph.collected(m.GetCollectionDef()["variables"])
	if err != nil {
		return nil, err
	}
	if len(variables) == 0 {
		variables = graph.variables()
	}
	restored, err := graph.restored(m.GetSaverDef())
	if err != nil || len(restored) == 0 {
		return variables, err
	}
	known := make(map[string]Variable, len(variables))
	for _, v := range variables {
		known[v.Name] = v
	}
	for i, v := range restored {
		if k, ok := known[v.Name]; ok && v.AnyShape {
			restored[i].Shape, restored[i].AnyShape = k.Shape, k.AnyShape
		}
	}
	return restored, nil
}

// graph finds nodes by name.
type graph struct {
	nodes []*tfpb.NodeDef
	named map[string]*tfpb.NodeDef
}

func newGraph(m *tfpb.MetaGraphDef) graph {
	g := graph{nodes: m.GetGraphDef().GetNode(), named: make(map[string]*tfpb.NodeDef)}
	for _, n := range g.nodes {
		g.named[n.GetName()] = n
	}
	return g
}

// input returns the node that gives an input, or a tensor of a name.
func (g graph) input(name string) *tfpb.NodeDef {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "^"), ":")
	return g.named[name]
}

// collected returns the variables of a collection.
func (g graph) collected(c *tfpb.CollectionDef) ([]Variable, error) {
	var list []Variable
	seen := make(map[string]bool)
	for _, b := range c.GetBytesList().GetValue() {
		d := &tfpb.VariableDef{}
		if err := proto.Unmarshal(b, d); err != nil {
			return nil, &ckptfmt.CorruptError{Name: "variables", Part: "collection", Err: err}
		}
		v := g.variable(g.input(d.GetVariableName()), d.GetVariableName())
		if s := d.GetSaveSliceInfoDef(); s != nil {
			v.Name, v.Shape, v.AnyShape = s.GetFullName(), s.GetFullShape(), false
		}
		if !seen[v.Name] { // the parts of a partitioned variable have one name
			list = append(list, v)
		}
		seen[v.Name] = true
	}
	return list, nil
}

// variables returns what the ops that hold variables are saved as.
func (g graph) variables() []Variable {
	var list []Variable
	for _, n := range g.nodes {
		switch n.GetOp() {
		case "Variable", "VariableV2", "VarHandleOp":
			list = append(list, g.variable(n, n.GetName()))
		}
	}
	return list
}

// variable describes what a node holds; n may be nil.
func (g graph) variable(n *tfpb.NodeDef, name string) Variable {
	name, _, _ = strings.Cut(name, ":")
	attr := n.GetAttr()
	v := Variable{Name: name, DType: attr["dtype"].GetType() % refTypes}
	if shared := attr["shared_name"].GetS(); n.GetOp() == "VarHandleOp" && len(shared) > 0 {
		v.Name = string(shared)
	}
	shape := attr["shape"].GetShape()
	v.AnyShape = shape == nil || shape.GetUnknownRank()
	for _, d := range shape.GetDim() {
		v.Shape = append(v.Shape, d.GetSize())
	}
	return v
}

// restored returns what the ops of a Saver read. Shapes are known only of
// slices.
func (g graph) restored(s *tfpb.SaverDef) ([]Variable, error) {
	file := g.input(s.GetFilenameTensorName())
	if file == nil {
		return nil, nil
	}
	var list []Variable
	seen := make(map[string]bool)
	for _, n := range g.nodes {
		in := n.GetInput()
		if n.GetOp() != "RestoreV2" || len(in) < 3 || !g.leadsTo(in[0], file.GetName()) {
			continue
		}
		found, err := g.restore(n)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", n.GetName(), err)
		}
		for _, v := range found {
			if !seen[v.Name] {
				list = append(list, v)
			}
			seen[v.Name] = true
		}
	}
	return list, nil
}

// leadsTo reports whether an input is a node's output, perhaps passed on by
// others that have one input.
func (g graph) leadsTo(input, name string) bool {
	const most = 8
	for range most {
		n := g.input(input)
		if n == nil {
			return false
		}
		if n.GetName() == name {
			return true
		}
		if len(n.GetInput()) == 0 {
			return false
		}
		input = n.GetInput()[0]
	}
	return false
}

// restore returns what one RestoreV2 reads.
func (g graph) restore(n *tfpb.NodeDef) ([]Variable, error) {
	names, err := g.constant(n.GetInput()[1])
	if err != nil {
		return nil, err
	}
	specs, err := g.constant(n.GetInput()[2])
	if err != nil {
		return nil, err
	}
	types := n.GetAttr()["dtypes"].GetList().GetType()
	if len(names) != len(specs) || len(names) != len(types) {
		return nil, fmt.Errorf("%d names, %d slices and %d types", len(names), len(specs), len(types))
	}
	list := make([]Variable, len(names))
	for i, name := range names {
		list[i] = Variable{Name: string(name), DType: types[i] % refTypes, AnyShape: true}
		full, _, _, err := ckptfmt.ParseShapeAndSlice(string(specs[i]))
		if err != nil {
			return nil, err
		}
		if len(specs[i]) > 0 {
			list[i].Shape, list[i].AnyShape = full, false
		}
	}
	return list, nil
}

// constant returns the strings of a Const node.
func (g graph) constant(input string) ([][]byte, error) {
	n := g.input(input)
	if n.GetOp() != "Const" {
		return nil, fmt.Errorf("its input %q is not a constant", input)
	}
	t, err := ckptfmt.TensorFromProto(n.GetAttr()["value"].GetTensor())
	if err != nil {
		return nil, fmt.Errorf("its input %q: %w", input, err)
	}
	return t.Strings, nil
}
