package graph

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// WithStepCounter returns a copy of a graph that does not count its steps, with a
// variable "global_step", an op that sets it to zero and one that increments it. The
// graph's saver, which does not know it, is left out; [Complete] adds another. The
// copy shares its nodes with the graph.
func (g *Graph) WithStepCounter() (counted *tfpb.MetaGraphDef, init, count string, err error) {
	b := extend(g.Meta)
	b.saver, b.meta.SaverDef = nil, nil
	delete(b.collections, SaversKey)
	step := b.GlobalStep()
	one := b.Const("global_step/count/one", literal.Int64(1))
	raise := b.Add(NodeSpec{
		Op: "AssignAddVariableOp", Name: "global_step/count", Inputs: []Output{step.handle, one},
		Attrs: Attrs{"dtype": attr.Type(step.DType)},
	})
	counted, err = b.MetaGraph()
	return counted, step.init.Name(), raise.Name(), err
}
