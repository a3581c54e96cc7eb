package graph

import (
	"fmt"
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
)

// InitOpSignature is the key of the signature with which a SavedModel names the
// op to run after its variables are restored, and the key of its only output.
const InitOpSignature = "__saved_model_init_op"

// inferenceKept are the collections, besides those of variables and tables, that
// describe a model and not its training.
var inferenceKept = []string{"trainerd_schema"}

// Inference returns the part of a graph that its signatures need: their nodes, the
// variables that these read, the tables, a saver for them, and the op that fills
// the tables, which gets its own signature.
func (g *Graph) Inference() (*tfpb.MetaGraphDef, error) {
	roots, err := g.signatureTensors()
	if err != nil {
		return nil, err
	}
	needed := g.ancestors(roots)
	var vars []VariableRef
	for _, v := range g.Variables() {
		if needed[v.Name()] {
			vars = append(vars, v)
			roots = append(roots, v.Def.GetInitializerName(), v.Def.GetInitialValueName(), v.valueTensor())
		}
	}
	var tables []string
	for _, name := range g.Names(TableInitializers) {
		if n, err := g.Node(name); err == nil && len(n.GetInput()) > 0 && needed[NodeName(n.GetInput()[0])] {
			tables = append(tables, name)
			roots = append(roots, name)
		}
	}
	return g.cut(g.ancestors(roots), vars, tables)
}

// signatureTensors returns the names of the tensors of all signatures.
func (g *Graph) signatureTensors() ([]string, error) {
	var names []string
	for key, s := range g.Meta.GetSignatureDef() {
		for _, infos := range []map[string]*tfpb.TensorInfo{s.GetInputs(), s.GetOutputs()} {
			for name, t := range infos {
				if _, err := g.Node(t.GetName()); err != nil {
					return nil, &Error{Message: fmt.Sprintf("signature %s: %s: there is no tensor %q", key, name, t.GetName())}
				}
				names = append(names, t.GetName())
			}
		}
	}
	if len(names) == 0 {
		return nil, &Error{Message: "it has no signature"}
	}
	return names, nil
}

// ancestors returns the nodes of tensors or ops and all that they need.
func (g *Graph) ancestors(names []string) map[string]bool {
	all := make(map[string]bool)
	Walk(g.node, names, func(n *tfpb.NodeDef) bool {
		all[n.GetName()] = true
		return true
	})
	return all
}

// cut returns the kept nodes with a saver and a signature of the op that fills
// the tables.
func (g *Graph) cut(kept map[string]bool, vars []VariableRef, tables []string) (*tfpb.MetaGraphDef, error) {
	def := g.Meta.GetGraphDef()
	small := &tfpb.MetaGraphDef{
		MetaInfoDef:  &tfpb.MetaGraphDef_MetaInfoDef{Tags: []string{"serve"}},
		GraphDef:     &tfpb.GraphDef{Versions: def.GetVersions(), Library: def.GetLibrary()},
		SignatureDef: maps.Clone(g.Meta.GetSignatureDef()),
	}
	for _, n := range def.GetNode() {
		if kept[n.GetName()] {
			n = proto.CloneOf(n)
			n.Device = "" // where it was trained says nothing of where it is used
			n.Attr = keptColocation(n.GetAttr(), kept)
			small.GraphDef.Node = append(small.GraphDef.Node, n)
		}
	}
	b := extend(small)
	b.adopt(vars, false)
	trainable := make(map[string]bool)
	for _, v := range g.TrainableVariables() {
		trainable[v.Name()] = true
	}
	for _, v := range vars {
		b.AddBytes(GlobalVariables, tfproto.Marshal(v.Def))
		if trainable[v.Name()] {
			b.AddBytes(TrainableVariables, tfproto.Marshal(v.Def))
		}
	}
	for _, key := range inferenceKept {
		if c := g.Meta.GetCollectionDef()[key]; c != nil {
			b.collections[key] = c
		}
	}
	if len(tables) > 0 {
		b.AddNodes(TableInitializers, tables...)
	}
	init := b.Group("init_all_tables", b.lookUp(tables)...)
	if len(vars) > 0 {
		b.AddSaver()
	}
	out, err := b.MetaGraph()
	if err != nil {
		return nil, err
	}
	out.SignatureDef[InitOpSignature] = &tfpb.SignatureDef{Outputs: map[string]*tfpb.TensorInfo{InitOpSignature: {
		Encoding: &tfpb.TensorInfo_Name{Name: init.Name()}, TensorShape: UnknownShape.Proto(),
	}}}
	return out, nil
}

// keptColocation leaves out the nodes to be placed with that are no longer there.
func keptColocation(attrs map[string]*tfpb.AttrValue, kept map[string]bool) map[string]*tfpb.AttrValue {
	list := attrs[attrColocation].GetList().GetS()
	if len(list) == 0 {
		return attrs
	}
	attrs = maps.Clone(attrs)
	var with []string
	for _, s := range list {
		if name := string(s); len(name) > 5 && kept[name[len("loc:@"):]] {
			with = append(with, name)
		}
	}
	delete(attrs, attrColocation)
	if len(with) > 0 {
		attrs[attrColocation] = attr.Strings(with...)
	}
	return attrs
}

// Needs reports whether computing tensors requires a node, given those that are
// fed.
func (g *Graph) Needs(tensors []string, node string, fed []string) (needs bool) {
	stops := make(map[string]bool)
	for _, name := range fed {
		stops[NodeName(name)] = true
	}
	Walk(g.node, tensors, func(n *tfpb.NodeDef) bool {
		computed := !stops[n.GetName()]
		needs = needs || computed && n.GetName() == node
		return computed && !needs
	})
	return needs
}
