package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// producerVersion is the GraphDef version that the graphs are written for: the
// one that TensorFlow 2.21 stamps. Older versions load them too, for they
// hold nothing that is new.
const producerVersion = 2474

// attrShapes is the attribute in which TensorFlow exports the shapes it
// inferred; importers check it, displays show it.
const attrShapes = "_output_shapes"

// attrColocation is the attribute that lists the nodes to be placed with.
const attrColocation = "_class"

// Builder builds a graph. It keeps the first error, and [Builder.MetaGraph]
// returns it. A Builder is for one goroutine.
type Builder struct {
	nodes       []*Node
	byName      map[string]*Node
	names       namer
	scope       string  // "" or "outer/inner/"
	colocate    string  // the node that new nodes are placed with, "" for none
	control     []*Node // what every new node waits for
	vars        []*Variable
	collections map[string]*tfpb.CollectionDef
	saver       *tfpb.SaverDef
	meta        *tfpb.MetaGraphDef // what the graph was started from, nil when new
	// indices marks sparse gradients: a tensor of rows is the gradient of those
	// rows of a variable whose numbers are in the vector that it maps to.
	indices map[Output]Output
	err     error
}

// NewBuilder returns a Builder of an empty graph.
func NewBuilder() *Builder {
	return &Builder{
		byName:      map[string]*Node{},
		names:       namer{used: map[string]int{}},
		collections: map[string]*tfpb.CollectionDef{},
		indices:     map[Output]Output{},
	}
}

// Node is a node of a graph under construction.
type Node struct {
	def     *tfpb.NodeDef
	index   int // position in the graph; inputs come before
	inputs  []Output
	outputs []OutputType
}

// OutputType is what is known of one output of a node.
type OutputType struct {
	DType tfpb.DataType
	Shape Shape
}

// Name returns the node's full name.
func (n *Node) Name() string { return n.def.GetName() }

// Op returns the node's op type.
func (n *Node) Op() string { return n.def.GetOp() }

// Output returns the node's i-th output.
func (n *Node) Output(i int) Output { return Output{Node: n, Index: i} }

// Output is one output of a node. The zero Output means "none".
type Output struct {
	Node  *Node
	Index int
}

// Valid reports whether o is not the zero Output.
func (o Output) Valid() bool { return o.Node != nil }

// Name returns the tensor's name, "node:0", or "" for no output.
func (o Output) Name() string {
	if o.Node == nil {
		return ""
	}
	return TensorName{Node: o.Node.Name(), Index: o.Index}.Tensor()
}

// DType returns the tensor's type, DT_INVALID if unknown.
func (o Output) DType() tfpb.DataType { return o.typ().DType }

// Shape returns what is known of the tensor's shape.
func (o Output) Shape() Shape { return o.typ().Shape }

func (o Output) typ() OutputType {
	if o.Node == nil || o.Index >= len(o.Node.outputs) {
		return OutputType{Shape: UnknownShape}
	}
	return o.Node.outputs[o.Index]
}

// Attrs are a node's attributes by name.
type Attrs map[string]*tfpb.AttrValue

// NodeSpec describes a node to add.
type NodeSpec struct {
	Op      string
	Name    string // relative to the scope; "" means the op's type; made unique; with a trailing "/", taken literally
	Inputs  []Output
	Control []*Node // must run before
	Attrs   Attrs
	Outputs []OutputType
}

// Add adds a node and returns it, even after a mistake, so that calls can be
// nested.
func (b *Builder) Add(s NodeSpec) *Node {
	name := b.nodeName(s)
	n := &Node{
		def:     &tfpb.NodeDef{Name: name, Op: s.Op, Attr: map[string]*tfpb.AttrValue{}},
		index:   len(b.nodes),
		inputs:  s.Inputs,
		outputs: s.Outputs,
	}
	b.check(n)
	for _, in := range s.Inputs {
		if in.Node != nil {
			n.def.Input = append(n.def.Input, TensorName{Node: in.Node.Name(), Index: in.Index}.String())
		}
	}
	n.def.Input = append(n.def.Input, controlInputs(b.control, s.Control)...)
	maps.Copy(n.def.Attr, s.Attrs)
	if len(s.Outputs) > 0 {
		shapes := make([]*tfpb.TensorShapeProto, len(s.Outputs))
		for i, o := range s.Outputs {
			shapes[i] = o.Shape.Proto()
		}
		n.def.Attr[attrShapes] = attr.Shapes(shapes...)
	}
	if b.colocate != "" {
		n.def.Attr[attrColocation] = attr.Strings("loc:@" + b.colocate)
	}
	b.nodes = append(b.nodes, n)
	b.byName[name] = n
	return n
}

func (b *Builder) nodeName(s NodeSpec) string {
	if full, ok := strings.CutSuffix(s.Name, "/"); ok && full != "" {
		b.names.reserve(full)
		return full
	}
	return b.UniqueName(cmp.Or(s.Name, s.Op))
}

func (b *Builder) check(n *Node) {
	switch {
	case !nodeNames().MatchString(n.Name()):
		b.Fail("node %q (%s): not a name that TensorFlow accepts", n.Name(), n.Op())
	case b.byName[n.Name()] != nil:
		b.Fail("node %s (%s): there is a node of this name", n.Name(), n.Op())
	}
	for i, in := range n.inputs {
		if in.Node == nil {
			b.Fail("node %s (%s): input %d is missing", n.Name(), n.Op(), i)
		}
	}
}

// controlInputs returns "^name" of every node once, sorted as TensorFlow does.
func controlInputs(lists ...[]*Node) []string {
	var names []string
	for _, n := range slices.Concat(lists...) {
		if n != nil {
			names = append(names, "^"+n.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Scope runs body with every new name below name, made unique if it is taken.
// With a trailing "/" the name is taken literally, to enter a scope again.
func (b *Builder) Scope(name string, body func()) {
	outer := b.scope
	defer func() { b.scope = outer }()
	if strings.HasSuffix(name, "/") {
		b.scope = name
	} else {
		b.scope = b.names.unique(outer+name) + "/"
	}
	body()
}

// UniqueName returns the full name that a node of this name gets in the current
// scope, and reserves it.
func (b *Builder) UniqueName(name string) string { return b.names.unique(b.scope + name) }

// Colocate runs body with every new node placed with n.
func (b *Builder) Colocate(n *Node, body func()) {
	outer := b.colocate
	defer func() { b.colocate = outer }()
	b.colocate = n.Name()
	body()
}

// After runs body with every new node waiting for the given ones.
func (b *Builder) After(nodes []*Node, body func()) {
	outer := b.control
	defer func() { b.control = outer }()
	b.control = slices.Concat(outer, nodes)
	body()
}

// Group adds a NoOp that waits for the given nodes.
func (b *Builder) Group(name string, nodes ...*Node) *Node {
	return b.Add(NodeSpec{Op: "NoOp", Name: name, Control: nodes})
}

// Err returns the first mistake made so far.
func (b *Builder) Err() error { return b.err }

// Fail notes a mistake, unless there was one before. Err and MetaGraph return it.
func (b *Builder) Fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// MetaGraph returns the graph. The Builder must not be used afterwards.
func (b *Builder) MetaGraph() (*tfpb.MetaGraphDef, error) {
	if b.err != nil {
		return nil, b.err
	}
	if len(b.nodes) == 0 {
		return nil, errors.New("the graph has no nodes")
	}
	meta := b.meta
	if meta == nil {
		meta = &tfpb.MetaGraphDef{MetaInfoDef: &tfpb.MetaGraphDef_MetaInfoDef{}}
	}
	if meta.GraphDef == nil {
		meta.GraphDef = &tfpb.GraphDef{}
	}
	if meta.GraphDef.Versions == nil {
		meta.GraphDef.Versions = &tfpb.VersionDef{Producer: producerVersion}
	}
	meta.GraphDef.Node = make([]*tfpb.NodeDef, len(b.nodes))
	for i, n := range b.nodes {
		meta.GraphDef.Node[i] = n.def
	}
	meta.CollectionDef = b.collections
	if b.saver != nil {
		meta.SaverDef = b.saver
	}
	return meta, nil
}

// extend returns a Builder that continues where a copy of meta ends. The copy
// has the nodes of meta, which no Builder changes: copying those of a large graph
// takes longer than all else that is done to it before a training.
func extend(meta *tfpb.MetaGraphDef) *Builder {
	b := NewBuilder()
	b.meta = proto.CloneOf(without(meta, "graph_def"))
	if graph := meta.GetGraphDef(); graph != nil {
		b.meta.GraphDef = proto.CloneOf(without(graph, "node"))
		b.meta.GraphDef.Node = graph.GetNode()
	}
	defs := b.meta.GetGraphDef().GetNode()
	nodes := make([]Node, len(defs))
	b.nodes, b.byName = make([]*Node, len(defs)), make(map[string]*Node, len(defs))
	for i, def := range defs {
		nodes[i] = Node{def: def, index: i}
		b.nodes[i] = &nodes[i]
		b.byName[def.GetName()] = b.nodes[i]
	}
	b.names = namesOf(defs)
	maps.Copy(b.collections, b.meta.CollectionDef)
	b.saver = b.meta.SaverDef
	return b
}

// without returns a message with all fields of m but one. It shares them with m.
func without[M proto.Message](m M, field protoreflect.Name) M {
	from := m.ProtoReflect()
	to := from.New()
	from.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Name() != field {
			to.Set(fd, v)
		}
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return to.Interface().(M)
}
