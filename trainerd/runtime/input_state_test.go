package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// pipe builds a graph with an input pipeline.
type pipe struct {
	def *tfpb.GraphDef
	dir string
}

func newPipe(t *testing.T) *pipe {
	return &pipe{def: &tfpb.GraphDef{Library: &tfpb.FunctionDefLibrary{}}, dir: t.TempDir()}
}

// attrs makes attributes of their names and values.
func attrs(pairs ...any) map[string]*tfpb.AttrValue {
	m := map[string]*tfpb.AttrValue{}
	for i := 0; i < len(pairs); i += 2 {
		v := &tfpb.AttrValue{}
		switch x := pairs[i+1].(type) {
		case tfpb.DataType:
			v = typeAttr(x)
		case []tfpb.DataType:
			v.Value = &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: x}}
		case int:
			v.Value = &tfpb.AttrValue_I{I: int64(x)}
		case bool:
			v.Value = &tfpb.AttrValue_B{B: x}
		case []string:
			list := &tfpb.AttrValue_ListValue{}
			for _, s := range x {
				list.S = append(list.S, []byte(s))
			}
			v.Value = &tfpb.AttrValue_List{List: list}
		case string:
			v.Value = &tfpb.AttrValue_S{S: []byte(x)}
		case *tfpb.TensorProto:
			v.Value = &tfpb.AttrValue_Tensor{Tensor: x}
		case *tfpb.NameAttrList:
			v.Value = &tfpb.AttrValue_Func{Func: x}
		case [][]int64:
			list := &tfpb.AttrValue_ListValue{}
			for _, dims := range x {
				s := &tfpb.TensorShapeProto{}
				for _, d := range dims {
					s.Dim = append(s.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
				}
				list.Shape = append(list.Shape, s)
			}
			v.Value = &tfpb.AttrValue_List{List: list}
		}
		m[pairs[i].(string)] = v
	}
	return m
}

func function(name string) *tfpb.NameAttrList { return &tfpb.NameAttrList{Name: name} }

const (
	dtInt64  = tfpb.DataType_DT_INT64
	dtString = tfpb.DataType_DT_STRING
)

// node adds a node with a name of its own, and returns the name.
func (p *pipe) node(op string, inputs []string, pairs ...any) string {
	name := fmt.Sprintf("%s_%d", op, len(p.def.Node))
	n := &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Attr: attrs(pairs...)}
	p.def.Node = append(p.def.Node, withRequired(n, typesOf(p.def.Node)))
	return name
}

func longs(v ...int64) *tfpb.TensorProto {
	p := &tfpb.TensorProto{Dtype: dtInt64, TensorShape: &tfpb.TensorShapeProto{}, Int64Val: v}
	if len(v) != 1 {
		p.TensorShape.Dim = []*tfpb.TensorShapeProto_Dim{{Size: int64(len(v))}}
	}
	return p
}

func words(v ...string) *tfpb.TensorProto {
	p := &tfpb.TensorProto{Dtype: dtString, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(len(v))}}}}
	for _, s := range v {
		p.StringVal = append(p.StringVal, []byte(s))
	}
	return p
}

func (p *pipe) long(v int64) string {
	return p.node("Const", nil, "dtype", dtInt64, "value", longs(v))
}

func (p *pipe) text(s string) string {
	v := words(s)
	v.TensorShape.Dim = nil
	return p.node("Const", nil, "dtype", dtString, "value", v)
}

func (p *pipe) flag(b bool) string {
	return p.node("Const", nil, "dtype", tfpb.DataType_DT_BOOL,
		"value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_BOOL, TensorShape: &tfpb.TensorShapeProto{}, BoolVal: []bool{b}})
}

// define adds a function; its arguments are a, b, ..., all of type int64 but
// those that kinds says otherwise. nodes end with the one that it returns.
func (p *pipe) define(name string, kinds []tfpb.DataType, result tfpb.DataType, nodes ...*tfpb.NodeDef) *tfpb.NameAttrList {
	for _, f := range p.def.Library.Function {
		if f.Signature.Name == name {
			return function(name)
		}
	}
	sig := &tfpb.OpDef{Name: name, OutputArg: []*tfpb.OpDef_ArgDef{{Name: "out", Type: result}}}
	for i, k := range kinds {
		sig.InputArg = append(sig.InputArg, &tfpb.OpDef_ArgDef{Name: string(rune('a' + i)), Type: k})
	}
	last := nodes[len(nodes)-1]
	out := map[string]string{"RangeDataset": "handle", "FilterDataset": "handle", "ShuffleDataset": "handle", "Mul": "z", "AddV2": "z", "Less": "z", "FloorMod": "z", "Sum": "output", "BatchDataset": "handle"}[last.Op]
	p.def.Library.Function = append(p.def.Library.Function, &tfpb.FunctionDef{Signature: sig, NodeDef: nodes, Ret: map[string]string{"out": last.Name + ":" + out + ":0"}})
	return function(name)
}

func inner(name, op string, inputs []string, pairs ...any) *tfpb.NodeDef {
	return withRequired(&tfpb.NodeDef{Name: name, Op: op, Input: inputs, Attr: attrs(pairs...)}, typesOf(nil))
}

func innerLong(name string, v int64) *tfpb.NodeDef {
	return inner(name, "Const", nil, "dtype", dtInt64, "value", longs(v))
}

var oneLong = []tfpb.DataType{dtInt64}

// square is x -> x*x.
func (p *pipe) square() *tfpb.NameAttrList {
	return p.define("square", oneLong, dtInt64, inner("m", "Mul", []string{"a", "a"}, "T", dtInt64))
}

func (p *pipe) even() *tfpb.NameAttrList {
	return p.define("even", oneLong, tfpb.DataType_DT_BOOL,
		innerLong("two", 2), inner("r", "FloorMod", []string{"a", "two:output:0"}, "T", dtInt64),
		innerLong("one", 1), inner("l", "Less", []string{"r:z:0", "one:output:0"}, "T", dtInt64))
}

// upTo makes the data set 0..x-1, shuffled.
func (p *pipe) upTo() *tfpb.NameAttrList {
	return p.define("up_to", oneLong, tfpb.DataType_DT_VARIANT,
		innerLong("zero", 0), innerLong("one", 1), innerLong("seed", 9), innerLong("size", 3),
		inner("r", "RangeDataset", []string{"zero:output:0", "a", "one:output:0"}, "output_types", oneLong),
		inner("s", "ShuffleDataset", []string{"r:handle:0", "size:output:0", "seed:output:0", "zero:output:0"}))
}

// noisy is x -> x + a random number.
func (p *pipe) noisy() *tfpb.NameAttrList {
	return p.define("noisy", oneLong, dtInt64, innerLong("lo", 0), innerLong("hi", 1000),
		inner("shape", "Const", nil, "dtype", dtInt64, "value", &tfpb.TensorProto{Dtype: dtInt64, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{}}}}),
		inner("n", "RandomUniformInt", []string{"shape:output:0", "lo:output:0", "hi:output:0"}, "T", dtInt64, "Tout", dtInt64, "seed", 7, "seed2", 8),
		inner("s", "AddV2", []string{"a", "n:output:0"}, "T", dtInt64))
}

func (p *pipe) sum2() *tfpb.NameAttrList {
	return p.define("sum2", []tfpb.DataType{dtInt64, dtInt64}, dtInt64, inner("s", "AddV2", []string{"a", "b"}, "T", dtInt64))
}

func (p *pipe) numbers(from, to int64) string {
	return p.node("RangeDataset", []string{p.long(from), p.long(to), p.long(1)}, "output_types", oneLong)
}

func (p *pipe) shuffled(of string, size int64) string {
	return p.node("ShuffleDataset", []string{of, p.long(size), p.long(3), p.long(4)})
}

func (p *pipe) repeated(of string) string {
	return p.node("RepeatDataset", []string{of, p.long(-1)})
}

func (p *pipe) batched(of string, n int64) string {
	return p.node("BatchDatasetV2", []string{of, p.long(n), p.flag(false)})
}

func (p *pipe) mapped(of string, f *tfpb.NameAttrList) string {
	return p.node("MapDataset", []string{of}, "f", f)
}

// trained adds an iterator over a data set and a step: w <- 0.75 w + the sum
// of the element. It returns the tensors to fetch and what to run at the start.
func (p *pipe) trained(ds string, oneShot bool) (fetch, step string, start []string) {
	var it string
	if oneShot {
		p.def.Library.Function = append(p.def.Library.Function, &tfpb.FunctionDef{
			Signature: &tfpb.OpDef{Name: "make", OutputArg: []*tfpb.OpDef_ArgDef{{Name: "out", Type: tfpb.DataType_DT_VARIANT}}},
			NodeDef:   inFunction(p.def.Node), Ret: map[string]string{"out": ds + ":handle:0"}})
		p.def.Node = nil
		it = p.node("OneShotIterator", nil, "dataset_factory", function("make"), "output_types", oneLong)
	} else {
		it = p.node("IteratorV2", nil, "shared_name", "it", "output_types", oneLong)
		start = []string{p.node("MakeIterator", []string{ds, it})}
	}
	next := p.node("IteratorGetNext", []string{it}, "output_types", oneLong)
	return next, p.train(next), start
}

// inFunction gives inputs the form that they have in functions.
func inFunction(nodes []*tfpb.NodeDef) []*tfpb.NodeDef {
	for _, n := range nodes {
		for i, in := range n.Input {
			out := "handle"
			if strings.HasPrefix(in, "Const") {
				out = "output"
			}
			if strings.HasPrefix(in, "RaggedTensorToVariant") {
				out = "encoded_ragged"
			}
			n.Input[i] = in + ":" + out + ":0"
		}
	}
	return nodes
}

func (p *pipe) train(next string) string {
	p.def.Node = append(p.def.Node, variableDef("w", "VariableV2"), constant("zero", 0), constant("decay", 0.75), nodeDef("w/init", "Assign", "w", "zero"))
	x := p.node("Cast", []string{next}, "SrcT", dtInt64, "DstT", tfpb.DataType_DT_FLOAT)
	axes := p.node("Range", []string{p.int32(0), p.node("Rank", []string{x}, "T", tfpb.DataType_DT_FLOAT), p.int32(1)}, "Tidx", tfpb.DataType_DT_INT32)
	total := p.node("Sum", []string{x, axes}, "T", tfpb.DataType_DT_FLOAT, "Tidx", tfpb.DataType_DT_INT32)
	p.def.Node = append(p.def.Node, nodeDef("read", "Identity", "w"), nodeDef("kept", "Mul", "read", "decay"), nodeDef("new", "AddV2", "kept", total), nodeDef("step", "Assign", "w", "new"))
	return "step"
}

func (p *pipe) int32(v int32) string {
	return p.node("Const", nil, "dtype", tfpb.DataType_DT_INT32,
		"value", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{v}})
}

// life is a training by a graph.
type life struct {
	t     *testing.T
	def   *tfpb.GraphDef
	fetch string
	step  string
	start []string
	log   bytes.Buffer
}

func (l *life) open(restored []ckptfmt.NamedTensor) *runtime.Session {
	l.t.Helper()
	s, err := runtime.New(l.def, &runtime.Options{Logger: slog.New(slog.NewTextHandler(&l.log, nil))})
	if err != nil {
		l.t.Fatal(err)
	}
	if restored != nil {
		if err := s.Restore(context.Background(), restored); err != nil {
			l.t.Fatal(err)
		}
	} else if _, err := s.Run(context.Background(), nil, nil, []string{"w/init"}); err != nil {
		l.t.Fatal(err)
	}
	if len(l.start) > 0 {
		if _, err := s.Run(context.Background(), nil, nil, l.start); err != nil {
			l.t.Fatal(err)
		}
	}
	return s
}

// once makes a step, and returns what it saw; "end" at the end of the input.
func (l *life) once(s *runtime.Session) string {
	l.t.Helper()
	out, err := s.Run(context.Background(), nil, []string{l.fetch, "new"}, []string{l.step})
	if errors.Is(err, session.ErrOutOfRange) {
		return "end"
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return fmt.Sprintf("%v %x %x", out[0].Shape, out[0].Data, out[1].Data)
}

func savedAs(t *testing.T, s *runtime.Session, names ...string) []ckptfmt.NamedTensor {
	t.Helper()
	snap, err := s.Snapshot(context.Background(), names)
	if err != nil {
		t.Fatal(err)
	}
	list := slices.Clone(snap.State)
	for i, name := range names {
		list = append(list, ckptfmt.NamedTensor{Name: name, Tensor: snap.Tensors[i]})
	}
	return list
}

// wholeAndKilled compares an undisturbed training with one that is killed after
// every step: each time some steps after the checkpoint are lost.
func wholeAndKilled(t *testing.T, l *life, steps int) []string {
	t.Helper()
	var want []string
	s := l.open(nil)
	for range steps {
		want = append(want, l.once(s))
	}
	s.Close()
	s = l.open(nil)
	for i := range steps {
		saved := savedAs(t, s, "w")
		for range i % 3 {
			l.once(s)
		}
		s.Close()
		s = l.open(saved)
		if got := l.once(s); got != want[i] {
			t.Fatalf("step %d: got %s, want %s; log: %s", i, got, want[i], &l.log)
		}
	}
	s.Close()
	if l.log.Len() > 0 && strings.Contains(l.log.String(), "WARN") {
		t.Errorf("log: %s", &l.log)
	}
	return want
}

// TestIteratorsResume kills a training after every step, for each kind of data
// set and of iterator.
func TestIteratorsResume(t *testing.T) {
	for i, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			p := newPipe(t)
			fetch, step, start := p.trained(stage.wrap(p, p.shuffled(p.numbers(0, 11), 4)), i%2 == 0)
			want := wholeAndKilled(t, &life{t: t, def: p.def, fetch: fetch, step: step, start: start}, 26)
			if want[0] == "end" {
				t.Error("there are no elements")
			}
		})
		t.Run(stage.name+" again and again", func(t *testing.T) {
			p := newPipe(t)
			fetch, step, start := p.trained(p.repeated(stage.wrap(p, p.shuffled(p.shuffled(p.numbers(0, 7), 3), 12))), i%2 == 1)
			wholeAndKilled(t, &life{t: t, def: p.def, fetch: fetch, step: step, start: start}, 26)
		})
	}
	for i, source := range sources {
		t.Run(source.name, func(t *testing.T) {
			p := newPipe(t)
			fetch, step, start := p.trained(p.batched(p.repeated(source.make(t, p)), 4), i%2 == 1)
			wholeAndKilled(t, &life{t: t, def: p.def, fetch: fetch, step: step, start: start}, 12)
		})
	}
}

// TestRandomPipelinesResume does so with pipelines made at random.
func TestRandomPipelinesResume(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPipe(t)
			rng := rand.New(rand.NewPCG(seed, 1))
			ds := sources[rng.IntN(len(sources))].make(t, p)
			scalar := true
			var made []string
			for range 1 + rng.IntN(5) {
				st := stages[rng.IntN(len(stages))]
				if !scalar && !st.batch || slices.Contains(made, "flat map") && (st.name == "flat map" || st.name == "interleave") {
					continue
				}
				made = append(made, st.name)
				ds = st.wrap(p, ds)
				scalar = scalar && st.name != "window" && st.name != "group by window"
			}
			fetch, step, start := p.trained(p.node("TakeDataset", []string{ds, p.long(15)}), rng.IntN(2) == 0)
			t.Log(made)
			wholeAndKilled(t, &life{t: t, def: p.def, fetch: fetch, step: step, start: start}, 17)
		})
	}
}
