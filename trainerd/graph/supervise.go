package graph

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// AddInit adds the op that gives the global variables their initial values,
// and the one for the local variables, and names both in their collections.
func (b *Builder) AddInit() (init, local *Node) {
	init = b.Group("init", b.initializers(b.Variables())...)
	local = b.Group("local_init", b.initializers(b.LocalVariables())...)
	b.AddNodes(InitOpKey, init.Name())
	b.AddNodes(LocalInitOpKey, local.Name())
	return init, local
}

// AddReady adds two ops that list the variables without a value: the ready op,
// for all variables, and the one that is run before the local init op, for the
// global ones. An empty list means ready.
func (b *Builder) AddReady() (ready, readyForLocalInit Output) {
	global := b.Variables()
	ready = b.ReportUninitialized(append(global, b.LocalVariables()...))
	readyForLocalInit = b.ReportUninitialized(global)
	b.AddNodes(ReadyOpKey, ready.Name())
	b.AddNodes(ReadyForLocalInitOp, readyForLocalInit.Name())
	return ready, readyForLocalInit
}

// ReportUninitialized adds a tensor with the names of the variables that have no
// value yet.
func (b *Builder) ReportUninitialized(vars []*Variable) (missing Output) {
	b.Scope("report_uninitialized_variables", func() {
		if len(vars) == 0 {
			missing = b.Const("Const", literal.Strings())
			return
		}
		names := make([]string, len(vars))
		states := make([]Output, len(vars))
		for i, v := range vars {
			names[i] = v.Name()
			states[i] = b.isInitialized("", v)
		}
		unset := b.logicalNot(b.Pack("stack", states...))
		all := b.Const("Const", literal.Strings(names...))
		b.Scope("boolean_mask", func() { missing = b.booleanMask(all, unset) })
	})
	return missing
}

func (b *Builder) logicalNot(x Output) Output {
	return b.Add(NodeSpec{
		Op: "LogicalNot", Inputs: []Output{x}, Outputs: []OutputType{{tfpb.DataType_DT_BOOL, x.Shape()}},
	}).Output(0)
}

// booleanMask adds the elements of the vector x where mask, a vector, is true.
func (b *Builder) booleanMask(x, mask Output) Output {
	where := b.Add(NodeSpec{
		Op: "Where", Inputs: []Output{mask},
		Attrs:   Attrs{"T": attr.Type(mask.DType())},
		Outputs: []OutputType{{tfpb.DataType_DT_INT64, MakeShape(-1, 1)}},
	}).Output(0)
	return b.Elements("GatherV2", x, b.Reshape("Reshape", where, MakeShape(-1)))
}

// ScalarSummary adds a summary of a scalar under tag and names it in the
// collection of summaries.
func (b *Builder) ScalarSummary(name, tag string, value Output) Output {
	return b.summary("ScalarSummary", name, name+"/tags", tag, value)
}

// HistogramSummary adds a summary of the distribution of a tensor's elements.
func (b *Builder) HistogramSummary(name, tag string, values Output) Output {
	return b.summary("HistogramSummary", name, name+"/tag", tag, values)
}

func (b *Builder) summary(op, name, tagName, tag string, value Output) Output {
	t := b.Const(tagName, literal.String(tag))
	out := b.Add(NodeSpec{
		Op: op, Name: name, Inputs: []Output{t, value},
		Attrs:   Attrs{"T": attr.Type(value.DType())},
		Outputs: []OutputType{{tfpb.DataType_DT_STRING, Shape{}}},
	}).Output(0)
	b.AddNodes(SummariesKey, out.Name())
	return out
}

// MergeSummaries adds an op that yields all summaries as one and names it as
// the summary op.
func (b *Builder) MergeSummaries(summaries ...Output) Output {
	out := b.Add(NodeSpec{
		Op: "MergeSummary", Name: "Merge/MergeSummary", Inputs: summaries,
		Attrs:   Attrs{"N": attr.Int(int64(len(summaries)))},
		Outputs: []OutputType{{tfpb.DataType_DT_STRING, Shape{}}},
	}).Output(0)
	b.AddNodes(SummaryOpKey, out.Name())
	return out
}
