package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Complete returns a copy of meta with the missing parts that a Supervisor
// needs, each named in its collection: init op, local init op, ready op, a
// summary op if there are summaries, and a saver if there are variables.
// Existing ones are left alone; the copy shares its nodes with meta.
func Complete(meta *tfpb.MetaGraphDef) (*tfpb.MetaGraphDef, error) {
	g, err := Parse(meta)
	if err != nil {
		return nil, err
	}
	full, err := g.Complete()
	if err != nil {
		return nil, err
	}
	return full.Meta, nil
}

// Complete is [Complete] for a graph that is parsed.
func (g *Graph) Complete() (*Graph, error) {
	b := extend(g.Meta)
	b.adopt(g.vars[GlobalVariables], false)
	b.adopt(g.vars[LocalVariables], true)
	global, local := b.Variables(), b.LocalVariables()
	if g.ReadyOp() == "" {
		b.AddNodes(ReadyOpKey, b.ReportUninitialized(append(global, local...)).Name())
	}
	if g.InitOp() == "" {
		b.AddNodes(InitOpKey, b.Group("init", b.initializers(global)...).Name())
	}
	b.completeLocalInit(g, local)
	if err := b.completeSaver(g, global); err != nil {
		return nil, err
	}
	if g.SummaryOp() == "" && len(g.Summaries()) > 0 {
		b.MergeSummaries(b.outputs(g.Summaries())...)
	}
	meta, err := b.MetaGraph()
	if err != nil {
		return nil, err
	}
	return g.withMore(meta), nil
}

// completeLocalInit makes the local init op open the summary writers of the graph and
// initialise its iterators too. No op of TensorFlow's does: its programs run
// summary_writer_initializer_op and iterator.initializer themselves.
func (b *Builder) completeLocalInit(g *Graph, local []*Variable) {
	more := b.lookUp(g.Names(summaryWriters))
	own := g.LocalInitOp()
	if own == "" {
		tables := g.Names(TableInitializers)
		more = slices.Concat(b.initializers(local), b.lookUp(tables), more, b.lookUp(g.onlyInitializers(tables)))
		b.AddNodes(LocalInitOpKey, b.Group("local_init", more...).Name())
		return
	}
	if len(more) > 0 && slices.Contains(b.output(own).Node.def.GetInput(), "^"+more[0].Name()) {
		more = nil
	}
	if more = append(more, b.lookUp(g.onlyInitializers([]string{own}))...); len(more) > 0 {
		delete(b.collections, LocalInitOpKey)
		b.AddNodes(LocalInitOpKey, b.Group("local_init", append(more, b.lookUp([]string{own})...)...).Name())
	}
}

// withMore returns the index of a graph to which a Builder has added nodes, but no
// variables. They are known to be valid: checking a large graph takes as long as all
// else that is done to it here.
func (g *Graph) withMore(meta *tfpb.MetaGraphDef) *Graph {
	full := &Graph{Meta: meta, nodes: maps.Clone(g.nodes), vars: g.vars}
	for _, n := range meta.GetGraphDef().GetNode()[len(g.nodes):] {
		full.nodes[n.GetName()] = n
	}
	return full
}

func (b *Builder) completeSaver(g *Graph, vars []*Variable) error {
	savers, err := g.Savers()
	switch {
	case err != nil:
		return err
	case len(savers) > 0:
		b.saver = savers[0]
	case len(vars) > 0:
		b.AddSaver()
	}
	return nil
}

// adopt makes the variables of a graph that was read known to the Builder.
func (b *Builder) adopt(refs []VariableRef, local bool) {
	known := map[string]bool{}
	for _, ref := range refs {
		if known[ref.Name()] {
			continue // programs may add a variable to a collection twice
		}
		known[ref.Name()] = true
		v := &Variable{Def: ref.Def, DType: ref.DType, Shape: ref.Shape, local: local}
		v.handle = b.output(ref.Def.GetVariableName())
		v.read = b.output(ref.valueTensor())
		if name := ref.Def.GetInitializerName(); name != "" {
			v.init = b.output(name).Node
		}
		b.vars = append(b.vars, v)
	}
}

// initializers returns the ops that set the variables.
func (b *Builder) initializers(vars []*Variable) []*Node {
	nodes := make([]*Node, len(vars))
	for i, v := range vars {
		if v.init == nil {
			b.Fail("variable %s: it has no initializer", v.Name())
		}
		nodes[i] = v.init
	}
	return nodes
}

// output returns the output that name refers to. Parse made sure that the
// nodes exist.
func (b *Builder) output(name string) Output {
	t, err := ParseTensorName(name)
	if err != nil {
		b.Fail("%w", err)
		return Output{}
	}
	n := b.byName[t.Node]
	if n == nil {
		b.Fail("there is no node %s", t.Node)
	}
	return Output{Node: n, Index: t.Index}
}

func (b *Builder) outputs(names []string) []Output {
	list := make([]Output, len(names))
	for i, name := range names {
		list[i] = b.output(name)
	}
	return list
}

func (b *Builder) lookUp(names []string) []*Node {
	list := make([]*Node, len(names))
	for i, name := range names {
		list[i] = b.output(name).Node
	}
	return list
}

// savedAs returns the key under which a checkpoint has the variable, and which
// slice of that key's tensor it is: "" for all of it, else the full shape and
// the start and length in each dimension, as in "10 4 0,5:0,4".
func (v *Variable) savedAs() (key, slice string) {
	info := v.Def.GetSaveSliceInfoDef()
	if info == nil {
		return v.Name(), ""
	}
	var s strings.Builder
	for _, d := range info.GetFullShape() {
		fmt.Fprintf(&s, "%d ", d)
	}
	for i, start := range info.GetVarOffset() {
		if i > 0 {
			s.WriteByte(':')
		}
		fmt.Fprintf(&s, "%d,", start)
		if i < len(info.GetVarShape()) {
			fmt.Fprintf(&s, "%d", info.GetVarShape()[i])
		}
	}
	return info.GetFullName(), s.String()
}
