package graph

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// The methods in this file add the ops that make numbers of texts.

// StringLower adds the strings x, in UTF-8, in lower case.
func (b *Builder) StringLower(name string, x Output) Output {
	return b.Add(NodeSpec{
		Op: "StringLower", Name: name, Inputs: []Output{x},
		Attrs: Attrs{"encoding": attr.String("utf-8")}, Outputs: []OutputType{{x.DType(), x.Shape()}},
	}).Output(0)
}

// RegexReplace adds the strings x with each match of a regular expression replaced.
func (b *Builder) RegexReplace(name string, x Output, pattern, rewrite string) Output {
	return b.Add(NodeSpec{
		Op: "StaticRegexReplace", Name: name, Inputs: []Output{x},
		Attrs:   Attrs{"pattern": attr.String(pattern), "rewrite": attr.String(rewrite), "replace_global": attr.Bool(true)},
		Outputs: []OutputType{{x.DType(), x.Shape()}},
	}).Output(0)
}

// FindWords adds the indices in a vocabulary of the words of each of a vector of texts, which
// blanks divide: a row of length of them, filled up with -1. Unknown words are left out.
func (b *Builder) FindWords(name string, table, texts Output, length int64) (ids Output) {
	const int64s, strings = tfpb.DataType_DT_INT64, tfpb.DataType_DT_STRING
	b.Scope(name, func() {
		split := b.Add(NodeSpec{
			Op: "StringSplitV2", Inputs: []Output{texts, b.Const("sep", literal.String(""))}, Attrs: Attrs{"maxsplit": attr.Int(-1)},
			Outputs: []OutputType{{int64s, MakeShape(-1, 2)}, {strings, MakeShape(-1)}, {int64s, MakeShape(2)}},
		})
		found := b.Find("lookup", table, split.Output(1))
		known := b.GreaterEqual("known", found, b.Const("zero", literal.Int64(0)))
		rows := b.Reshape("rows", b.Slice("row", split.Output(0), []int32{0, 0}, []int32{-1, 1}), MakeShape(-1))
		count := b.Reshape("count", b.Slice("size", split.Output(2), []int32{0}, []int32{1}), Shape{})
		var keptIDs, keptRows Output
		b.Scope("ids", func() { keptIDs = b.booleanMask(found, known) })
		b.Scope("of_rows", func() { keptRows = b.booleanMask(rows, known) })
		shape, none := b.Const("shape", literal.Int64s(-1, length)), b.Const("none", literal.Int64(-1))
		ids = b.Add(NodeSpec{
			Op: "RaggedTensorToTensor", Inputs: []Output{shape, keptIDs, none, count, keptRows},
			Attrs: Attrs{
				"T": attr.Type(int64s), "Tindex": attr.Type(int64s), "Tshape": attr.Type(int64s),
				"num_row_partition_tensors": attr.Int(2), "row_partition_types": attr.Strings("FIRST_DIM_SIZE", "VALUE_ROWIDS"),
			},
			Outputs: []OutputType{{int64s, MakeShape(texts.Shape().Dims[0], length)}},
		}).Output(0)
	})
	return ids
}

// Slice adds a part of x that begins at some place and has some size, -1 for the rest of a
// dimension.
func (b *Builder) Slice(name string, x Output, begin, size []int32) Output {
	dims := make([]int64, len(size))
	for i, n := range size {
		if dims[i] = int64(n); n < 0 && x.Shape().Dims[i] >= 0 {
			dims[i] = x.Shape().Dims[i] - int64(begin[i])
		}
	}
	return b.Add(NodeSpec{
		Op: "Slice", Name: name, Inputs: []Output{x, b.Const(name+"/begin", literal.Int32s(begin...)), b.Const(name+"/size", literal.Int32s(size...))},
		Attrs:   Attrs{"T": attr.Type(x.DType()), "Index": attr.Type(tfpb.DataType_DT_INT32)},
		Outputs: []OutputType{{x.DType(), MakeShape(dims...)}},
	}).Output(0)
}

// Present adds, for each row of a matrix of integers from 0 up, a 1 for each number below size
// that it has, and 0 for the others.
func (b *Builder) Present(name string, x Output, size int64) Output {
	n := b.Const(name+"/size", literal.Int64(size))
	none := b.Const(name+"/weights", literal.Floats())
	return b.Add(NodeSpec{
		Op: "DenseBincount", Name: name, Inputs: []Output{x, n, none},
		Attrs:   Attrs{"Tidx": attr.Type(x.DType()), "T": attr.Type(none.DType()), "binary_output": attr.Bool(true)},
		Outputs: []OutputType{{none.DType(), MakeShape(x.Shape().Dims[0], size)}},
	}).Output(0)
}
