package runtime_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// wide is x -> a vector of 1 MiB, with some 100 us of work.
func (p *pipe) wide() *tfpb.NameAttrList {
	dims := &tfpb.TensorProto{Dtype: dtInt64, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 1}}}, Int64Val: []int64{1 << 17}}
	return p.define("wide", oneLong, dtInt64,
		inner("dims", "Const", nil, "dtype", dtInt64, "value", dims),
		inner("fill", "Fill", []string{"dims:output:0", "a"}, "T", dtInt64, "index_type", dtInt64),
		inner("s", "AddV2", []string{"fill:output:0", "a"}, "T", dtInt64))
}

// firstFrame is x -> x and the sum of the first frame of a GIF file that has two.
func (p *pipe) firstFrame() *tfpb.NameAttrList {
	frames := &gif.GIF{}
	for i := range 2 {
		m := image.NewPaletted(image.Rect(0, 0, 9, 7), color.Palette{color.Gray{Y: 40}, color.Gray{Y: 200}})
		m.SetColorIndex(i, 2, 1)
		frames.Image, frames.Delay = append(frames.Image, m), append(frames.Delay, 1)
	}
	var file bytes.Buffer
	if err := gif.EncodeAll(&file, frames); err != nil {
		panic(err)
	}
	contents := &tfpb.TensorProto{Dtype: dtString, TensorShape: &tfpb.TensorShapeProto{}, StringVal: [][]byte{file.Bytes()}}
	return p.define("first", oneLong, dtInt64,
		inner("file", "Const", nil, "dtype", dtString, "value", contents),
		inner("image", "DecodeImage", []string{"file:output:0"}, "channels", 3, "dtype", tfpb.DataType_DT_UINT8, "expand_animations", false),
		inner("wide", "Cast", []string{"image:image:0"}, "SrcT", tfpb.DataType_DT_UINT8, "DstT", dtInt64), innerLongs("axes", 0, 1, 2),
		inner("sum", "Sum", []string{"wide:y:0", "axes:output:0"}, "T", dtInt64, "Tidx", dtInt64),
		inner("s", "AddV2", []string{"a", "sum:output:0"}, "T", dtInt64))
}

// classes is x -> the sum of some classes drawn with x as the seed.
func (p *pipe) classes() *tfpb.NameAttrList {
	logits := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, FloatVal: []float32{0, 1, 2, 0, -1},
		TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 1}, {Size: 5}}}}
	many := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{20}}
	return p.define("classes", oneLong, dtInt64,
		inner("logits", "Const", nil, "dtype", tfpb.DataType_DT_FLOAT, "value", logits), inner("many", "Const", nil, "dtype", tfpb.DataType_DT_INT32, "value", many),
		innerLong("seven", 7), inner("seed", "Pack", []string{"a", "seven:output:0"}, "T", dtInt64, "N", 2),
		inner("drawn", "StatelessMultinomial", []string{"logits:output:0", "many:output:0", "seed:output:0"},
			"T", tfpb.DataType_DT_FLOAT, "Tseed", dtInt64, "output_dtype", dtInt64), innerLongs("axes", 0, 1),
		inner("s", "Sum", []string{"drawn:output:0", "axes:output:0"}, "T", dtInt64, "Tidx", dtInt64))
}

// innerLongs is a vector in a function.
func innerLongs(name string, v ...int64) *tfpb.NodeDef {
	shape := &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(len(v))}}}
	return inner(name, "Const", nil, "dtype", dtInt64, "value", &tfpb.TensorProto{Dtype: dtInt64, TensorShape: shape, Int64Val: v})
}

// alone is an iterator over a data set, whose elements are made ahead, or not if another
// iterator may see the difference.
func (p *pipe) alone(shuffled string, f *tfpb.NameAttrList, ahead bool) (it string, of feeder) {
	of = p.fedBy(p.mapped(shuffled, f))
	for _, n := range p.def.Node {
		if n.Name == of.start {
			it = n.Input[1]
		}
	}
	if !ahead {
		p.node("MakeIterator", []string{shuffled, p.node("IteratorV2", nil, "shared_name", "other", "output_types", oneLong)})
	}
	return it, of
}

// TestMemoryAhead has sessions with ever more memory for a step that takes elements of 1 MiB:
// one that is enough when each element is made for its step is also enough when the
// next one is made meanwhile.
func TestMemoryAhead(t *testing.T) {
	enough := func(limit int64, ahead bool) bool {
		p := newPipe(t)
		_, f := p.alone(p.shuffled(p.numbers(0, 4), 2), p.wide(), ahead)
		twice := p.node("AddV2", []string{f.next, f.next}, "T", dtInt64)
		sum := p.node("AddV2", []string{
			p.node("Sum", []string{twice, p.ints(0)}, "T", dtInt64),
			p.node("Sum", []string{p.node("Square", []string{f.next}, "T", dtInt64), p.ints(0)}, "T", dtInt64),
		}, "T", dtInt64)
		s, err := runtime.New(p.def, &runtime.Options{MaxMemory: limit})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		f.begin(t, s)
		for range 4 {
			if _, err := s.Run(t.Context(), nil, []string{sum}, nil); err != nil {
				return false
			}
		}
		return true
	}
	verdicts := map[bool]int{}
	for limit := int64(4 << 20); limit < 8<<20; limit += 300 << 10 {
		without, with := enough(limit, false), enough(limit, true)
		if verdicts[without]++; without != with {
			t.Errorf("%d KiB are enough: %v; with elements made ahead: %v", limit>>10, without, with)
		}
	}
	if len(verdicts) != 2 {
		t.Errorf("verdicts %v: the limits are all on one side", verdicts)
	}
}

// TestLoopAhead has a loop that takes three elements a step, and checkpoints between steps:
// the sums are the same whether elements are made ahead or not.
func TestLoopAhead(t *testing.T) {
	var all [2][]string
	for i, ahead := range []bool{true, false} {
		p := newPipe(t)
		it, f := p.alone(p.shuffled(p.numbers(0, 30), 9), p.slow(), ahead)
		f.next = p.summed(it, 3)
		s := sessionOf(t, p.def)
		f.begin(t, s)
		for range 4 {
			saved := savedAs(t, s)
			s.Close()
			s = sessionOf(t, p.def)
			if err := s.Restore(t.Context(), saved); err != nil {
				t.Fatal(err)
			}
			f.begin(t, s)
			all[i] = append(all[i], f.take(t, s), f.take(t, s))
		}
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("sums with elements made ahead\n%q\nwithout\n%q", all[0], all[1])
	}
}

// summed is the sum of the next n elements, which a loop takes.
func (p *pipe) summed(it string, n int64) string {
	kinds := []tfpb.DataType{dtInt64, dtInt64, tfpb.DataType_DT_RESOURCE}
	signature := func(name string, out ...*tfpb.OpDef_ArgDef) *tfpb.OpDef {
		sig := &tfpb.OpDef{Name: name, OutputArg: out, IsStateful: true}
		for i, k := range kinds {
			sig.InputArg = append(sig.InputArg, &tfpb.OpDef_ArgDef{Name: string(rune('a' + i)), Type: k})
		}
		return sig
	}
	p.def.Library.Function = append(p.def.Library.Function, &tfpb.FunctionDef{
		Signature: signature("more", &tfpb.OpDef_ArgDef{Name: "out", Type: tfpb.DataType_DT_BOOL}),
		NodeDef:   []*tfpb.NodeDef{innerLong("n", n), inner("less", "Less", []string{"a", "n:output:0"}, "T", dtInt64)},
		Ret:       map[string]string{"out": "less:z:0"},
	}, &tfpb.FunctionDef{
		Signature: signature("body", &tfpb.OpDef_ArgDef{Name: "i", Type: dtInt64}, &tfpb.OpDef_ArgDef{Name: "sum", Type: dtInt64}, &tfpb.OpDef_ArgDef{Name: "it", Type: tfpb.DataType_DT_RESOURCE}),
		NodeDef: []*tfpb.NodeDef{
			innerLong("one", 1), inner("count", "AddV2", []string{"a", "one:output:0"}, "T", dtInt64),
			inner("next", "IteratorGetNext", []string{"c"}, "output_types", oneLong),
			inner("added", "AddV2", []string{"b", "next:components:0"}, "T", dtInt64),
		},
		Ret: map[string]string{"i": "count:z:0", "sum": "added:z:0", "it": "c"},
	})
	loop := p.node("While", []string{p.long(0), p.long(0), it}, "T", kinds, "cond", function("more"), "body", function("body"))
	return loop + ":1"
}

// TestExtendAhead adds nodes to the graph while elements are made ahead, and has a second
// iterator of the new ones walk next to the first.
func TestExtendAhead(t *testing.T) {
	var all [2][]string
	for i, ahead := range []bool{true, false} {
		p := newPipe(t)
		_, f := p.alone(p.shuffled(p.numbers(0, 40), 9), p.slow(), ahead)
		s := sessionOf(t, p.def)
		f.begin(t, s)
		for range 10 {
			all[i] = append(all[i], f.take(t, s))
			old := len(p.def.Node)
			it := p.node("IteratorV2", nil, "shared_name", fmt.Sprint("more", len(all[i])), "output_types", oneLong)
			more := feeder{p.node("MakeIterator", []string{p.mapped(p.numbers(0, 5), p.slow()), it}), p.node("IteratorGetNext", []string{it}, "output_types", oneLong)}
			if err := s.Extend(&tfpb.GraphDef{Node: p.def.Node[old:], Library: p.def.Library}); err != nil {
				t.Fatal(err)
			}
			more.begin(t, s)
			more.take(t, s)
			all[i] = append(all[i], f.take(t, s))
		}
	}
	if !slices.Equal(all[0], all[1]) {
		t.Errorf("with elements made ahead\n%q\nwithout\n%q", all[0], all[1])
	}
}

// TestSessionsAhead has two sessions take elements of one iterator in turn, until one is
// closed: no element is lost with it.
func TestSessionsAhead(t *testing.T) {
	p := newPipe(t)
	f := p.fedBy(p.mapped(p.numbers(0, 40), p.slow()))
	want := walk(t, f, sessionOf(t, p.def), 40)
	shared := &runtime.Resources{}
	var both [2]*runtime.Session
	for i := range both {
		s, err := runtime.New(p.def, &runtime.Options{Resources: shared})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		both[i] = s
	}
	f.begin(t, both[0])
	var got []string
	for i := range 40 {
		s := both[i%2]
		if i > 20 {
			s = both[1]
		}
		if got = append(got, f.take(t, s)); i == 20 {
			both[0].Close()
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("two sessions take\n%q\nand one\n%q", got, want)
	}
}

// walk returns the first n elements.
func walk(t *testing.T, f feeder, s *runtime.Session, n int) (all []string) {
	t.Helper()
	f.begin(t, s)
	for range n {
		all = append(all, f.take(t, s))
	}
	return all
}
