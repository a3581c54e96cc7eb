package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfexample"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// stages are data sets of int64 made of others. Elements may have any shape
// where batch is true.
var stages = []struct {
	name  string
	wrap  func(p *pipe, of string) string
	batch bool
}{
	{"map", func(p *pipe, of string) string { return p.mapped(of, p.square()) }, true},
	{"map with random numbers", func(p *pipe, of string) string { return p.mapped(of, p.noisy()) }, true},
	{"parallel map", func(p *pipe, of string) string {
		return p.node("ParallelMapDatasetV2", []string{of, p.long(4)}, "f", p.square())
	}, true},
	{"filter", func(p *pipe, of string) string {
		return p.node("FilterDataset", []string{of}, "predicate", p.even())
	}, false},
	{"shuffle", func(p *pipe, of string) string { return p.shuffled(of, 5) }, true},
	{"shuffle seed 0", func(p *pipe, of string) string {
		return p.node("ShuffleDataset", []string{of, p.long(50), p.long(3), p.long(0)}, "reshuffle_each_iteration", false)
	}, true},
	{"shuffle and repeat", func(p *pipe, of string) string {
		return p.node("ShuffleAndRepeatDataset", []string{of, p.long(4), p.long(5), p.long(6), p.long(3)})
	}, true},
	{"repeat", func(p *pipe, of string) string { return p.node("RepeatDataset", []string{of, p.long(3)}) }, true},
	{"take", func(p *pipe, of string) string { return p.node("TakeDataset", []string{of, p.long(17)}) }, true},
	{"skip", func(p *pipe, of string) string { return p.node("SkipDataset", []string{of, p.long(2)}) }, true},
	{"shard", func(p *pipe, of string) string { return p.node("ShardDataset", []string{of, p.long(2), p.long(1)}) }, true},
	{"concatenate", func(p *pipe, of string) string {
		return p.node("ConcatenateDataset", []string{of, p.numbers(100, 104)})
	}, false},
	{"concatenate shuffled", func(p *pipe, of string) string {
		return p.node("ConcatenateDataset", []string{of, p.shuffled(p.shuffled(p.numbers(100, 104), 2), 3)})
	}, false},
	{"take of a shuffle", func(p *pipe, of string) string {
		return p.node("TakeDataset", []string{p.shuffled(of, 3), p.long(4)})
	}, true},
	{"cache", func(p *pipe, of string) string {
		return p.node("RepeatDataset", []string{p.node("CacheDataset", []string{of, p.text("")}), p.long(3)})
	}, true},
	{"batch and unbatch", func(p *pipe, of string) string { return p.node("UnbatchDataset", []string{p.batched(of, 3)}) }, false},
	{"rebatch", func(p *pipe, of string) string {
		return p.node("UnbatchDataset", []string{p.node("RebatchDataset", []string{p.batched(of, 5), p.long(3)})})
	}, false},
	{"rebatch to sizes", func(p *pipe, of string) string {
		sizes := p.node("Const", nil, "dtype", dtInt64, "value", longs(4, 0, 2))
		return p.node("UnbatchDataset", []string{p.node("RebatchDatasetV2", []string{p.batched(of, 3), sizes, p.flag(false)},
			"output_types", oneLong, "output_shapes", [][]int64{{-1}})})
	}, false},
	{"window", func(p *pipe, of string) string {
		w := p.node("WindowDataset", []string{of, p.long(3), p.long(2), p.long(1), p.flag(false)})
		return p.node("FlatMapDataset", []string{w}, "f", p.define("two", []tfpb.DataType{tfpb.DataType_DT_VARIANT}, tfpb.DataType_DT_VARIANT,
			innerLong("n", 2), inner("batches", "BatchDataset", []string{"a", "n:output:0"})))
	}, false},
	{"flat map", func(p *pipe, of string) string { return p.node("FlatMapDataset", []string{of}, "f", p.upTo()) }, false},
	{"interleave", func(p *pipe, of string) string {
		return p.node("InterleaveDataset", []string{of, p.long(3), p.long(2)}, "f", p.upTo())
	}, false},
	{"scan", func(p *pipe, of string) string {
		f := p.define("running", []tfpb.DataType{dtInt64, dtInt64}, dtInt64, inner("s", "AddV2", []string{"a", "b"}, "T", dtInt64))
		def := p.def.Library.Function[slices.IndexFunc(p.def.Library.Function, func(f *tfpb.FunctionDef) bool { return f.Signature.Name == "running" })]
		if len(def.Signature.OutputArg) == 1 { // the state, and the element
			def.Signature.OutputArg = append(def.Signature.OutputArg, &tfpb.OpDef_ArgDef{Name: "el", Type: dtInt64})
			def.Ret["el"] = "s:z:0"
		}
		return p.node("ScanDataset", []string{of, p.long(5)}, "f", f, "Tstate", oneLong)
	}, false},
	{"unique", func(p *pipe, of string) string { return p.node("UniqueDataset", []string{of}) }, false},
	{"take while", func(p *pipe, of string) string {
		return p.node("TakeWhileDataset", []string{of}, "predicate", p.define("small", oneLong, tfpb.DataType_DT_BOOL,
			innerLong("n", 40), inner("l", "Less", []string{"a", "n:output:0"}, "T", dtInt64)))
	}, false},
	{"group by window", func(p *pipe, of string) string {
		key := p.define("key", oneLong, dtInt64, innerLong("n", 3), inner("r", "FloorMod", []string{"a", "n:output:0"}, "T", dtInt64))
		reduce := p.define("reduce", []tfpb.DataType{dtInt64, tfpb.DataType_DT_VARIANT}, tfpb.DataType_DT_VARIANT,
			innerLong("n", 2), inner("batches", "BatchDataset", []string{"b", "n:output:0"}))
		size := p.define("size", oneLong, dtInt64, innerLong("n", 4), innerLong("z", 0), inner("s", "AddV2", []string{"n:output:0", "z:output:0"}, "T", dtInt64))
		return p.node("GroupByWindowDataset", []string{of}, "key_func", key, "reduce_func", reduce, "window_size_func", size)
	}, false},
	{"group by reducer", func(p *pipe, of string) string {
		key := p.define("key", oneLong, dtInt64, innerLong("n", 3), inner("r", "FloorMod", []string{"a", "n:output:0"}, "T", dtInt64))
		same := p.define("same", oneLong, dtInt64, innerLong("n", 0), inner("s", "AddV2", []string{"a", "n:output:0"}, "T", dtInt64))
		add := p.define("add", []tfpb.DataType{dtInt64, dtInt64}, dtInt64, inner("s", "AddV2", []string{"a", "b"}, "T", dtInt64))
		return p.node("GroupByReducerDataset", []string{of}, "key_func", key, "init_func", same, "reduce_func", add, "finalize_func", same)
	}, false},
	{"prefetch", func(p *pipe, of string) string { return p.node("PrefetchDataset", []string{of, p.long(4)}) }, true},
	{"directed", func(p *pipe, of string) string {
		choice := p.mapped(p.repeated(p.shuffled(p.numbers(0, 2), 2)), p.square())
		return p.node("DirectedInterleaveDataset", []string{choice, of, p.numbers(50, 60)})
	}, false},
	{"zip", func(p *pipe, of string) string {
		return p.mapped(p.node("ZipDataset", []string{of, p.shuffled(p.numbers(0, 30), 30)}), p.sum2())
	}, false},
	{"ignore errors", func(p *pipe, of string) string { return p.node("IgnoreErrorsDataset", []string{of}) }, true},
	{"padded batch", func(p *pipe, of string) string {
		shape := p.node("Const", nil, "dtype", dtInt64, "value", &tfpb.TensorProto{Dtype: dtInt64, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{}}}})
		return p.node("UnbatchDataset", []string{p.node("PaddedBatchDatasetV2", []string{of, p.long(3), shape, p.long(0), p.flag(false)}, "Toutput_types", oneLong)})
	}, false},
}

// files are data sets of strings out of files, and their lengths as numbers.
func (p *pipe) file(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func recordsOf(n int) []byte {
	var b []byte
	for i := range n {
		b = tfrecord.Append(b, fmt.Appendf(nil, "%d", 10*n+i))
	}
	return b
}

func (p *pipe) names(names ...string) string {
	return p.node("Const", nil, "dtype", dtString, "value", words(names...))
}

func (p *pipe) parsed(of string) string {
	f := p.define("parse", []tfpb.DataType{dtString}, dtInt64, inner("n", "StringToNumber", []string{"a"}, "out_type", dtInt64),
		innerLong("z", 0), inner("s", "AddV2", []string{"n:output:0", "z:output:0"}, "T", dtInt64))
	return p.mapped(of, f)
}

var sources = []struct {
	name string
	make func(t *testing.T, p *pipe) string
}{
	{"range", func(t *testing.T, p *pipe) string { return p.numbers(0, 11) }},
	{"slices", func(t *testing.T, p *pipe) string {
		return p.node("TensorSliceDataset", []string{p.node("Const", nil, "dtype", dtInt64, "value", longs(5, 3, 8, 2, 9, 1))}, "Toutput_types", oneLong)
	}},
	{"tensor", func(t *testing.T, p *pipe) string { return p.node("TensorDataset", []string{p.long(7)}) }},
	{"random", func(t *testing.T, p *pipe) string {
		f := p.define("mod", oneLong, dtInt64, innerLong("n", 20), inner("r", "FloorMod", []string{"a", "n:output:0"}, "T", dtInt64))
		r := p.mapped(p.node("RandomDataset", []string{p.long(1), p.long(2)}), f)
		return p.node("TakeDataset", []string{r, p.long(9)})
	}},
	{"random, others each time", func(t *testing.T, p *pipe) string {
		f := p.define("mod", oneLong, dtInt64, innerLong("n", 20), inner("r", "FloorMod", []string{"a", "n:output:0"}, "T", dtInt64))
		r := p.node("RandomDatasetV2", []string{p.long(1), p.long(2), p.node("DummySeedGenerator", nil)}, "rerandomize_each_iteration", true)
		return p.repeated(p.node("TakeDataset", []string{p.mapped(r, f), p.long(3)}))
	}},
	{"records", func(t *testing.T, p *pipe) string {
		of := p.names(p.file(t, "a", recordsOf(5)), p.file(t, "empty", nil), p.file(t, "b", recordsOf(4)))
		return p.parsed(p.node("TFRecordDataset", []string{of, p.text(""), p.long(0)}))
	}},
	{"examples", func(_ *testing.T, p *pipe) string {
		var texts []string
		for i := range 7 {
			texts = append(texts, string(tfexample.Marshal(tfexample.New(map[string]*tfpb.Feature{"n": tfexample.Int64s(int64(3 * i))}))))
		}
		of := p.node("TensorSliceDataset", []string{p.names(texts...)}, "Toutput_types", []tfpb.DataType{dtString})
		parsed := p.node("ParseExampleDatasetV2", []string{p.batched(of, 2), p.long(1), p.long(0)},
			"dense_keys", []string{"n"}, "Tdense", oneLong, "dense_shapes", [][]int64{{}}, "sparse_keys", []string{}, "sparse_types", []tfpb.DataType{})
		return p.node("UnbatchDataset", []string{parsed})
	}},
	{"lines", func(t *testing.T, p *pipe) string {
		of := p.names(p.file(t, "c", []byte("1\n22\r\n3")), p.file(t, "d", []byte("44\n5\n")))
		return p.parsed(p.node("TextLineDataset", []string{of, p.text(""), p.long(0)}))
	}},
	{"comma-separated", func(t *testing.T, p *pipe) string {
		of := p.names(p.file(t, "g", []byte("s,n\n\"a\n\"\"b\",1\r\nc,22\n,3")), p.file(t, "h", []byte("s,n\nd,\ne,44\n")))
		return p.node("CSVDataset", []string{of, p.text(""), p.long(0), p.flag(true), p.text(","), p.flag(true), p.text(""), p.long(1), p.long(7)}, "output_types", oneLong)
	}},
	{"ragged", func(t *testing.T, p *pipe) string {
		splits, values := p.node("Const", nil, "dtype", dtInt64, "value", longs(0, 2, 2, 5, 6, 9)), p.node("Const", nil, "dtype", dtInt64, "value", longs(5, 3, 8, 2, 9, 1, 4, 6, 7))
		rows := p.node("RaggedTensorToVariant", []string{splits, values}, "RAGGED_RANK", 1, "Tvalues", dtInt64, "Tsplits", dtInt64, "batched_input", true)
		variants := []tfpb.DataType{tfpb.DataType_DT_VARIANT}
		slices := p.node("TensorSliceDataset", []string{rows}, "Toutput_types", variants, "output_shapes", [][]int64{{}})
		f := p.define("total", variants, dtInt64, inner("v", "RaggedTensorFromVariant", []string{"a"}, "input_ragged_rank", 0, "output_ragged_rank", 0, "Tvalues", dtInt64, "Tsplits", dtInt64),
			innerLong("axis", 0), inner("r", "Sum", []string{"v:output_dense_values:0", "axis:output:0"}, "T", dtInt64, "Tidx", dtInt64))
		return p.mapped(p.shuffled(slices, 3), f)
	}},
	{"fixed", func(t *testing.T, p *pipe) string {
		of := p.names(p.file(t, "e", []byte("H10111213F")), p.file(t, "f", []byte("H2021F")))
		return p.parsed(p.node("FixedLengthRecordDataset", []string{of, p.long(1), p.long(2), p.long(1), p.long(0)}))
	}},
}
