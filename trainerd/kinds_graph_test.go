package trainerd_test

import (
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// kindGraph makes the graph that the kinds of sessions run, with reference or
// resource variables:
//
//	train       w += 0.5, global_step += 1
//	stale       w += 0.5 alone
//	step/set    global_step = step/value, which is fed
//	hits        a local variable, 7
//	odd         a variable in no collection, which nobody initialises
//
// It has no ready op, and a summary op of w.
func kindGraph(resource bool) *tfpb.MetaGraphDef {
	g := &kindBuilder{resource: resource, meta: &tfpb.MetaGraphDef{GraphDef: new(tfpb.GraphDef), CollectionDef: map[string]*tfpb.CollectionDef{}}}
	g.variable("w", tfpb.DataType_DT_FLOAT, literal.Float(0), graph.GlobalVariables)
	g.variable("global_step", tfpb.DataType_DT_INT64, literal.Int64(0), graph.GlobalVariables, graph.GlobalStepKey)
	g.variable("hits", tfpb.DataType_DT_FLOAT, literal.Float(7), graph.LocalVariables)
	g.variable("odd", tfpb.DataType_DT_FLOAT, literal.Float(0))
	g.constant("half", literal.Float(0.5))
	g.constant("one", literal.Int64(1))
	g.update("stale", "Add", "w", "half", tfpb.DataType_DT_FLOAT)
	g.update("count", "Add", "global_step", "one", tfpb.DataType_DT_INT64)
	g.add("train", "NoOp", nil, "^stale", "^count")
	g.add("step/value", "Placeholder", graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_INT64), "shape": attr.Shape(graph.Shape{}.Proto())})
	g.update("step/set", "", "global_step", "step/value", tfpb.DataType_DT_INT64)
	g.constant("w_tag", literal.String("w"))
	g.add("w_summary", "ScalarSummary", graph.Attrs{"T": attr.Type(tfpb.DataType_DT_FLOAT)}, "w_tag", "w/read")
	g.nodeList(graph.SummariesKey, "w_summary:0")
	meta, err := graph.Complete(g.meta)
	if err != nil {
		panic(err)
	}
	delete(meta.CollectionDef, graph.ReadyOpKey)
	return meta
}

type kindBuilder struct {
	resource bool
	meta     *tfpb.MetaGraphDef
}

func (g *kindBuilder) add(name, op string, attrs graph.Attrs, inputs ...string) {
	g.meta.GraphDef.Node = append(g.meta.GraphDef.Node, &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Attr: attrs})
}

func (g *kindBuilder) constant(name string, value *tfpb.TensorProto) {
	g.add(name, "Const", graph.Attrs{"dtype": attr.Type(value.GetDtype()), "value": attr.Tensor(value)})
}

func (g *kindBuilder) variable(name string, dtype tfpb.DataType, initial *tfpb.TensorProto, collections ...string) {
	attrs := graph.Attrs{"dtype": attr.Type(dtype), "shape": attr.Shape(graph.Shape{}.Proto()),
		"container": attr.String(""), "shared_name": attr.String(name)}
	g.constant(name+"/initial", initial)
	if g.resource {
		g.add(name, "VarHandleOp", attrs)
		g.add(name+"/read", "ReadVariableOp", graph.Attrs{"dtype": attr.Type(dtype)}, name)
	} else {
		g.add(name, "VariableV2", attrs)
		g.add(name+"/read", "Identity", graph.Attrs{"T": attr.Type(dtype)}, name)
	}
	g.update(name+"/Assign", "", name, name+"/initial", dtype)
	def, err := proto.Marshal(&tfpb.VariableDef{VariableName: name + ":0", InitializerName: name + "/Assign",
		SnapshotName: name + "/read:0", InitialValueName: name + "/initial:0", IsResource: g.resource, Trainable: true})
	if err != nil {
		panic(err)
	}
	for _, key := range collections {
		list := g.collection(key)
		if list.Kind == nil {
			list.Kind = &tfpb.CollectionDef_BytesList_{BytesList: new(tfpb.CollectionDef_BytesList)}
		}
		list.GetBytesList().Value = append(list.GetBytesList().Value, def)
	}
}

// update adds Assign, or AssignAdd where how is "Add", of a variable.
func (g *kindBuilder) update(name, how, variable, value string, dtype tfpb.DataType) {
	if g.resource {
		g.add(name, "Assign"+how+"VariableOp", graph.Attrs{"dtype": attr.Type(dtype)}, variable, value)
		return
	}
	g.add(name, "Assign"+how, graph.Attrs{"T": attr.Type(dtype)}, variable, value)
}

func (g *kindBuilder) nodeList(key string, names ...string) {
	g.collection(key).Kind = &tfpb.CollectionDef_NodeList_{NodeList: &tfpb.CollectionDef_NodeList{Value: names}}
}

func (g *kindBuilder) collection(key string) *tfpb.CollectionDef {
	if g.meta.CollectionDef[key] == nil {
		g.meta.CollectionDef[key] = new(tfpb.CollectionDef)
	}
	return g.meta.CollectionDef[key]
}
