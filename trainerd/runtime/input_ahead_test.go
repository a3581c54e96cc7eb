package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// slow is x -> x + a random number that is no more than 1000, with some 100 us of work.
func (p *pipe) slow() *tfpb.NameAttrList {
	shape := &tfpb.TensorProto{Dtype: dtInt64, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 1}}}, Int64Val: []int64{30_000}}
	return p.define("slow", oneLong, dtInt64, innerLong("lo", 0), innerLong("hi", 1000),
		inner("shape", "Const", nil, "dtype", dtInt64, "value", shape), innerLong("axis", 0),
		inner("n", "RandomUniformInt", []string{"shape:output:0", "lo:output:0", "hi:output:0"}, "T", dtInt64, "Tout", dtInt64, "seed", 7, "seed2", 8),
		inner("max", "Max", []string{"n:output:0", "axis:output:0"}, "T", dtInt64, "Tidx", dtInt64),
		inner("sum", "Sum", []string{"n:output:0", "axis:output:0"}, "T", dtInt64, "Tidx", dtInt64),
		inner("both", "AddV2", []string{"max:output:0", "sum:output:0"}, "T", dtInt64),
		inner("s", "AddV2", []string{"a", "both:z:0"}, "T", dtInt64))
}

// feeder is an iterator over a data set.
type feeder struct{ start, next string }

func (p *pipe) fedBy(ds string) feeder {
	it := p.node("IteratorV2", nil, "shared_name", "it", "output_types", oneLong)
	return feeder{p.node("MakeIterator", []string{ds, it}), p.node("IteratorGetNext", []string{it}, "output_types", oneLong)}
}

// take returns the values of the next element, "end", or the message of an error.
func (f feeder) take(t *testing.T, s *runtime.Session) string {
	t.Helper()
	out, err := s.Run(context.Background(), nil, []string{f.next}, nil)
	op := (*session.OpError)(nil)
	switch {
	case errors.Is(err, session.ErrOutOfRange):
		return "end"
	case errors.As(err, &op):
		return fmt.Sprint(op.Code, " ", op.Node, " ", op.Message)
	case err != nil:
		t.Fatal(err)
	}
	values, err := ckptfmt.Values[int64](out[0])
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(values)
}

func (f feeder) begin(t *testing.T, s *runtime.Session) {
	t.Helper()
	if _, err := s.Run(context.Background(), nil, nil, []string{f.start}); err != nil {
		t.Fatal(err)
	}
}

func sessionOf(t *testing.T, def *tfpb.GraphDef) *runtime.Session {
	t.Helper()
	s, err := runtime.New(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// counted adds a variable to the elements, which is zero: that keeps them from being made
// ahead. It also returns what initialises the variable.
func (p *pipe) counted(of string) (ds, start string) {
	v := p.node("VarHandleOp", nil, "dtype", dtInt64, "shared_name", "v")
	read := p.define("read", []tfpb.DataType{dtInt64, tfpb.DataType_DT_RESOURCE}, dtInt64,
		inner("r", "ReadVariableOp", []string{"b"}, "dtype", dtInt64), inner("s", "AddV2", []string{"a", "r:value:0"}, "T", dtInt64))
	ds = p.node("MapDataset", []string{of, v}, "f", read, "Targuments", []tfpb.DataType{tfpb.DataType_DT_RESOURCE})
	return ds, p.node("AssignVariableOp", []string{v, p.long(0)}, "dtype", dtInt64)
}

// fed is a feeder of a pipeline, whose elements are made ahead or not.
func (p *pipe) fed(of func(p *pipe) string, ahead bool) feeder {
	ds := of(p)
	if ahead {
		return p.fedBy(ds)
	}
	ds, zero := p.counted(ds)
	f := p.fedBy(ds)
	for _, n := range p.def.Node {
		if n.Name == f.start {
			n.Input = append(n.Input, "^"+zero)
		}
	}
	return f
}

// pipelinesAhead are pipelines whose elements can be made ahead.
var pipelinesAhead = map[string]func(p *pipe) string{
	"slow":         func(p *pipe) string { return p.mapped(p.numbers(0, 12), p.slow()) },
	"quick":        func(p *pipe) string { return p.mapped(p.numbers(0, 12), p.noisy()) },
	"slow batches": func(p *pipe) string { return p.batched(p.mapped(p.shuffled(p.numbers(0, 40), 9), p.slow()), 3) },
	"slow errors":  func(p *pipe) string { return p.mapped(p.parsed(p.textSlices("1", "2", "x", "y", "5", "z")), p.slow()) },
	"no elements":  func(p *pipe) string { return p.mapped(p.numbers(0, 0), p.slow()) },
	"first frames": func(p *pipe) string { return p.mapped(p.mapped(p.numbers(0, 9), p.firstFrame()), p.slow()) },
	"draws":        func(p *pipe) string { return p.mapped(p.mapped(p.numbers(0, 9), p.classes()), p.slow()) },
}

func (p *pipe) textSlices(texts ...string) string {
	return p.node("TensorSliceDataset", []string{p.names(texts...)}, "Toutput_types", []tfpb.DataType{dtString})
}

// TestMadeAhead checks that nobody can tell whether elements are made ahead: neither
// the runs that take them, also when the walk begins again, nor those that continue from
// a checkpoint of any moment.
func TestMadeAhead(t *testing.T) {
	for name, of := range pipelinesAhead {
		t.Run(name, func(t *testing.T) {
			var all [][]string
			for _, ahead := range []bool{true, false} {
				p := newPipe(t)
				f := p.fed(of, ahead)
				all = append(all, walks(t, f, sessionOf(t, p.def), nil), walks(t, f, sessionOf(t, p.def), p.def))
			}
			for i, got := range all {
				if !slices.Equal(got, all[2]) {
					t.Errorf("%d: got\n%q\nwant\n%q", i, got, all[2])
				}
			}
		})
	}
}

// walks returns what is taken in several walks. If there is a def, the session is killed
// before each element, and another one continues from its checkpoint.
func walks(t *testing.T, f feeder, s *runtime.Session, def *tfpb.GraphDef) (all []string) {
	t.Helper()
	for _, n := range []int{1, 4, 0, 16, 5} {
		f.begin(t, s)
		for range n {
			if def != nil {
				saved := savedAs(t, s)
				s.Close()
				s = sessionOf(t, def)
				if err := s.Restore(context.Background(), saved); err != nil {
					t.Fatal(err)
				}
				f.begin(t, s)
			}
			all = append(all, f.take(t, s))
		}
	}
	return all
}

// TestVariablesAhead checks that functions which read a variable are called when their
// element is asked for.
func TestVariablesAhead(t *testing.T) {
	p := newPipe(t)
	ds, start := p.counted(p.numbers(0, 5))
	f := p.fedBy(ds)
	add := p.node("AssignAddVariableOp", []string{p.node("VarHandleOp", nil, "dtype", dtInt64, "shared_name", "v"), p.long(100)}, "dtype", dtInt64)
	s := sessionOf(t, p.def)
	for _, target := range []string{start, f.start} {
		if _, err := s.Run(context.Background(), nil, nil, []string{target}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"[0]", "[101]", "[202]"} {
		if got := f.take(t, s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, err := s.Run(context.Background(), nil, nil, []string{add}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTablesAhead checks that functions which look at a table that can change are called
// when their element is asked for.
func TestTablesAhead(t *testing.T) {
	p := newPipe(t)
	table := p.node("MutableHashTableV2", nil, "key_dtype", dtInt64, "value_dtype", dtInt64, "shared_name", "t")
	insert := p.node("LookupTableInsertV2", []string{table, p.long(1), p.long(7)}, "Tin", dtInt64, "Tout", dtInt64)
	find := p.define("find", []tfpb.DataType{dtInt64, tfpb.DataType_DT_RESOURCE}, dtInt64, innerLong("none", -1),
		inner("f", "LookupTableFindV2", []string{"b", "a", "none:output:0"}, "Tin", dtInt64, "Tout", dtInt64),
		inner("s", "AddV2", []string{"a", "f:values:0"}, "T", dtInt64))
	f := p.fedBy(p.node("MapDataset", []string{p.numbers(0, 5), table}, "f", find, "Targuments", []tfpb.DataType{tfpb.DataType_DT_RESOURCE}))
	s := sessionOf(t, p.def)
	f.begin(t, s)
	got := []string{f.take(t, s)}
	if _, err := s.Run(context.Background(), nil, nil, []string{insert}); err != nil {
		t.Fatal(err)
	}
	if got = append(got, f.take(t, s)); !slices.Equal(got, []string{"[-1]", "[8]"}) {
		t.Errorf("got %v", got)
	}
}

// TestWalksDrawAlike checks that each walk through a data set draws the same numbers,
// whatever others draw. That is what TensorFlow does.
func TestWalksDrawAlike(t *testing.T) {
	p := newPipe(t)
	ds := p.mapped(p.numbers(0, 9), p.slow())
	f := p.fedBy(ds)
	other := p.node("IteratorV2", nil, "shared_name", "other", "output_types", oneLong)
	g := feeder{p.node("MakeIterator", []string{ds, other}), p.node("IteratorGetNext", []string{other}, "output_types", oneLong)}
	s := sessionOf(t, p.def)
	f.begin(t, s)
	var first, again, others []string
	for i := range 6 {
		first = append(first, f.take(t, s))
		if i == 2 {
			g.begin(t, s)
		}
		if i > 1 {
			others = append(others, g.take(t, s))
		}
	}
	f.begin(t, s)
	for range 6 {
		again = append(again, f.take(t, s))
	}
	if !slices.Equal(first, again) || !slices.Equal(first[:4], others) {
		t.Errorf("the first walk has %v, the next %v, another one %v", first, again, others)
	}
}

// TestThreadsAhead takes elements in several threads, while checkpoints are made, and
// closes the session as soon as the last one is taken.
func TestThreadsAhead(t *testing.T) {
	p := newPipe(t)
	f := p.fedBy(p.batched(p.mapped(p.numbers(0, 200), p.square()), 2))
	s := sessionOf(t, p.def)
	f.begin(t, s)
	var mu sync.Mutex
	seen := map[string]bool{}
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			for range 20 {
				el := f.take(t, s)
				mu.Lock()
				if seen[el] {
					t.Errorf("%s came twice", el)
				}
				seen[el] = true
				mu.Unlock()
			}
		})
	}
	for range 10 {
		savedAs(t, s)
	}
	threads.Wait()
	for i := range int64(80) {
		if el := fmt.Sprint([]int64{4 * i * i, (2*i + 1) * (2*i + 1)}); !seen[el] {
			t.Errorf("%s did not come", el)
		}
	}
}

// TestSharedShuffle checks that no element is made ahead of a data set that is shuffled for
// two iterators: the seeds of their walks are those of one generator.
func TestSharedShuffle(t *testing.T) {
	var sizes []int
	for _, shared := range []bool{false, true} {
		p := newPipe(t)
		ds := p.repeated(p.shuffled(p.numbers(0, 9), 4))
		f := p.fedBy(ds)
		if shared {
			p.node("MakeIterator", []string{ds, p.node("IteratorV2", nil, "shared_name", "other", "output_types", oneLong)})
		}
		sizes = append(sizes, f.stateAfterOne(t, p))
	}
	if sizes[0] <= sizes[1] {
		t.Errorf("states of %v bytes", sizes)
	}
}

// stateAfterOne returns the size of the state when one element has been taken.
func (f feeder) stateAfterOne(t *testing.T, p *pipe) (n int) {
	s := sessionOf(t, p.def)
	f.begin(t, s)
	f.take(t, s)
	for _, state := range savedAs(t, s) {
		n += len(state.Tensor.Data)
	}
	return n
}

// TestIsMadeAhead checks that a checkpoint has the next element where that can be made
// ahead, and not where it cannot.
func TestIsMadeAhead(t *testing.T) {
	for name, of := range pipelinesAhead {
		var sizes []int
		for _, ahead := range []bool{true, false} {
			p := newPipe(t)
			f := p.fed(of, ahead)
			sizes = append(sizes, f.stateAfterOne(t, p))
		}
		if ahead := sizes[0] > sizes[1]; ahead != (name != "no elements") {
			t.Errorf("%s: states of %v bytes", name, sizes)
		}
	}
}
