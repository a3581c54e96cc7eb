package graph

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// The methods in this file add the ops that make a model's features of raw
// columns, and its answers of logits.

// Sqrt adds the square root of x.
func (b *Builder) Sqrt(name string, x Output) Output { return b.elementwise("Sqrt", name, x) }

// IsNan adds whether each element of x is NaN.
func (b *Builder) IsNan(name string, x Output) Output {
	return b.elementwiseTo("IsNan", name, tfpb.DataType_DT_BOOL, x)
}

// Where adds the elements of x where the condition is true, and those of y
// elsewhere, with broadcasting of y. The condition has the shape of x.
func (b *Builder) Where(name string, condition, x, y Output) Output {
	shape, err := x.Shape().broadcast(y.Shape())
	if err != nil {
		b.Fail("node %s%s (SelectV2): %w", b.scope, name, err)
	}
	return b.Add(NodeSpec{
		Op: "SelectV2", Name: name, Inputs: []Output{condition, x, y},
		Attrs:   Attrs{"T": attr.Type(x.DType())},
		Outputs: []OutputType{{x.DType(), shape}},
	}).Output(0)
}

// Softmax adds the softmax of each row of x.
func (b *Builder) Softmax(name string, x Output) Output { return b.elementwise("Softmax", name, x) }

// Columns adds the given columns of the matrix x, in that order.
func (b *Builder) Columns(name string, x Output, columns ...int32) Output {
	at := b.Const(name+"/indices", literal.Int32s(columns...))
	axis := b.Const(name+"/axis", literal.Int32(1))
	return b.Add(NodeSpec{
		Op: "GatherV2", Name: name, Inputs: []Output{x, at, axis},
		Attrs: Attrs{
			"Tparams": attr.Type(x.DType()), "Tindices": attr.Type(at.DType()),
			"Taxis": attr.Type(axis.DType()), "batch_dims": attr.Int(0),
		},
		Outputs: []OutputType{{x.DType(), MakeShape(x.Shape().Dims[0], int64(len(columns)))}},
	}).Output(0)
}

// OneHot adds a row of zeros and a one for each of a vector of indices, only
// zeros for an index outside [0, depth).
func (b *Builder) OneHot(name string, indices Output, depth int32) Output {
	d := b.Const(name+"/depth", literal.Int32(depth))
	on, off := b.Const(name+"/on_value", literal.Float(1)), b.Const(name+"/off_value", literal.Float(0))
	return b.Add(NodeSpec{
		Op: "OneHot", Name: name, Inputs: []Output{indices, d, on, off},
		Attrs:   Attrs{"T": attr.Type(on.DType()), "TI": attr.Type(indices.DType()), "axis": attr.Int(-1)},
		Outputs: []OutputType{{on.DType(), MakeShape(append(slices.Clone(indices.Shape().Dims), int64(depth))...)}},
	}).Output(0)
}

// ConcatColumns joins matrices with the same number of rows side by side. A
// single one is passed on.
func (b *Builder) ConcatColumns(name string, xs ...Output) Output {
	if len(xs) == 1 {
		return xs[0]
	}
	width := int64(0)
	for _, x := range xs {
		if x.Shape().Rank() != 2 || x.Shape().Dims[1] < 0 {
			b.Fail("node %s%s (ConcatV2): %s has shape %v; want a matrix with a known number of columns", b.scope, name, x.Name(), x.Shape())
			return x
		}
		width += x.Shape().Dims[1]
	}
	axis := b.Const(name+"/axis", literal.Int32(1))
	return b.Add(NodeSpec{
		Op: "ConcatV2", Name: name, Inputs: append(slices.Clone(xs), axis),
		Attrs:   Attrs{"N": attr.Int(int64(len(xs))), "T": attr.Type(xs[0].DType()), "Tidx": attr.Type(axis.DType())},
		Outputs: []OutputType{{xs[0].DType(), MakeShape(xs[0].Shape().Dims[0], width)}},
	}).Output(0)
}

// gradConcat cuts the gradient where the columns were joined.
func gradConcat(b *backward) []Output {
	xs := b.n.inputs[:len(b.n.inputs)-1]
	sizes := make([]int64, len(xs))
	outs := make([]OutputType, len(xs))
	for i, x := range xs {
		sizes[i], outs[i] = x.Shape().Dims[1], OutputType{x.DType(), x.Shape()}
	}
	split := b.Add(NodeSpec{
		Op: "SplitV", Inputs: []Output{b.grads[0], b.Const("sizes", literal.Int64s(sizes...)), b.Const("split_dim", literal.Int32(1))},
		Attrs: Attrs{
			"T": attr.Type(b.grads[0].DType()), "Tlen": attr.Type(tfpb.DataType_DT_INT64), "num_split": attr.Int(int64(len(xs))),
		},
		Outputs: outs,
	})
	grads := make([]Output, len(b.n.inputs))
	for i := range xs {
		grads[i] = split.Output(i)
	}
	return grads
}

// StackColumns makes a matrix from vectors: each becomes a column.
func (b *Builder) StackColumns(name string, xs ...Output) Output {
	if len(xs) == 0 {
		b.Fail("node %s%s (Pack): no inputs", b.scope, name)
		return Output{}
	}
	return b.Add(NodeSpec{
		Op: "Pack", Name: name, Inputs: xs,
		Attrs:   Attrs{"T": attr.Type(xs[0].DType()), "N": attr.Int(int64(len(xs))), "axis": attr.Int(1)},
		Outputs: []OutputType{{xs[0].DType(), MakeShape(xs[0].Shape().Dims[0], int64(len(xs)))}},
	}).Output(0)
}

// Vocabulary adds a lookup table that maps words to their indices in the list,
// and the op that fills it, which it names in the collection of such ops.
func (b *Builder) Vocabulary(name string, words []string) (table Output, init *Node) {
	places := make([]int64, len(words))
	for i := range places {
		places[i] = int64(i)
	}
	b.Scope(name, func() {
		n := b.Add(NodeSpec{
			Op: "HashTableV2", Name: "hash_table",
			Attrs: Attrs{
				"container": attr.String(""), "use_node_name_sharing": attr.Bool(true),
				"key_dtype": attr.Type(tfpb.DataType_DT_STRING), "value_dtype": attr.Type(tfpb.DataType_DT_INT64),
			},
			Outputs: []OutputType{{tfpb.DataType_DT_RESOURCE, Shape{}}},
		})
		n.def.Attr["shared_name"] = attr.String(n.Name())
		table = n.Output(0)
		init = b.Add(NodeSpec{
			Op: "LookupTableImportV2", Name: "initialize",
			Inputs: []Output{table, b.Const("words", literal.Strings(words...)), b.Const("indices", literal.Int64s(places...))},
			Attrs:  Attrs{"Tin": attr.Type(tfpb.DataType_DT_STRING), "Tout": attr.Type(tfpb.DataType_DT_INT64)},
		})
	})
	b.AddNodes(TableInitializers, init.Name())
	return table, init
}

// Find adds the indices of words in a vocabulary, -1 for unknown words.
func (b *Builder) Find(name string, table, words Output) Output {
	return b.Add(NodeSpec{
		Op: "LookupTableFindV2", Name: name, Inputs: []Output{table, words, b.Const(name+"/none", literal.Int64(-1))},
		Attrs:   Attrs{"Tin": attr.Type(tfpb.DataType_DT_STRING), "Tout": attr.Type(tfpb.DataType_DT_INT64)},
		Outputs: []OutputType{{tfpb.DataType_DT_INT64, words.Shape()}},
	}).Output(0)
}
