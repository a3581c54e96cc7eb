package graph

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// StepCounter names the parts of a counter of steps.
type StepCounter struct {
	Init  string // op that sets it to zero
	Count string // op that raises it by one
}

// AddStepCounter returns a copy of meta, the graph of a program that does not
// count its steps, with a variable "global_step". The graph's saver, which does
// not know it, is left out; [Complete] adds another. The copy shares its nodes
// with meta.
func AddStepCounter(meta *tfpb.MetaGraphDef) (*tfpb.MetaGraphDef, StepCounter, error) {
	if _, err := Parse(meta); err != nil {
		return nil, StepCounter{}, err
	}
	b := extend(meta)
	b.saver, b.meta.SaverDef = nil, nil
	delete(b.collections, SaversKey)
	step := b.GlobalStep()
	one := b.Const("global_step/count/one", literal.Int64(1))
	count := b.Add(NodeSpec{
		Op: "AssignAddVariableOp", Name: "global_step/count", Inputs: []Output{step.handle, one},
		Attrs: Attrs{"dtype": attr.Type(step.DType)},
	})
	counted, err := b.MetaGraph()
	return counted, StepCounter{Init: step.init.Name(), Count: count.Name()}, err
}
