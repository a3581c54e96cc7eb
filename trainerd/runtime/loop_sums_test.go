package runtime_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// whileLoop is a loop of TensorFlow 1 in the making.
type whileLoop struct {
	*pipe
	name  string
	outer *whileLoop // that it is in, nil for none
	vars  []string   // what an iteration starts from
	exits []string
}

const loopFloat, loopInt = tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT32

// fixed passes a value from outside of all loops into the loop.
func (l *whileLoop) fixed(x string, dt tfpb.DataType) string {
	if l.outer != nil {
		x = l.outer.fixed(x, dt)
	}
	return l.node("Enter", []string{x}, "T", dt, "frame_name", l.name, "is_constant", true)
}

// whileLoop makes a loop of n iterations. Its first variable counts them, the others start
// from the given values.
func (p *pipe) whileLoop(n int32, starts ...string) *whileLoop {
	return (&whileLoop{pipe: p, name: "loop"}).begin(n, starts)
}

// inner makes a loop in the body of this one, which starts from values of the body.
func (l *whileLoop) inner(n int32, starts ...string) *whileLoop {
	return (&whileLoop{pipe: l.pipe, name: l.name + "_inner", outer: l}).begin(n, starts)
}

func (l *whileLoop) begin(n int32, starts []string) *whileLoop {
	p, zero := l.pipe, l.scalar(0)
	if l.outer != nil {
		zero = l.outer.fixed(zero, loopInt)
	}
	var merges []string
	for i, start := range slices.Insert(starts, 0, zero) {
		enter := p.node("Enter", []string{start}, "T", dtOfVariable(i), "frame_name", l.name)
		merges = append(merges, p.node("Merge", []string{enter, l.nextName(i)}, "T", dtOfVariable(i), "N", 2))
	}
	more := p.node("LoopCond", []string{p.node("Less", []string{merges[0], l.fixed(p.scalar(n), loopInt)}, "T", loopInt)})
	for i, m := range merges {
		turn := p.node("Switch", []string{m, more}, "T", dtOfVariable(i))
		l.vars = append(l.vars, p.node("Identity", []string{turn + ":1"}, "T", dtOfVariable(i)))
		l.exits = append(l.exits, p.node("Exit", []string{turn}, "T", dtOfVariable(i)))
	}
	return l
}

func (l *whileLoop) nextName(i int) string { return fmt.Sprint(l.name, "_next", i) }

func dtOfVariable(i int) tfpb.DataType {
	if i == 0 {
		return loopInt
	}
	return loopFloat
}

// next ends the loop with what the variables become, the count left out.
func (l *whileLoop) next(values ...string) {
	one := l.fixed(l.scalar(1), loopInt)
	for i, v := range slices.Insert(values, 0, l.node("Add", []string{l.vars[0], one}, "T", loopInt)) {
		l.def.Node = append(l.def.Node, &tfpb.NodeDef{Name: l.nextName(i), Op: "NextIteration", Input: []string{v}, Attr: attrs("T", dtOfVariable(i))})
	}
}

func (p *pipe) placeholder(name string) string {
	p.def.Node = append(p.def.Node, &tfpb.NodeDef{Name: name, Op: "Placeholder", Attr: attrs("dtype", loopFloat)})
	return name
}

// unseen is x, so that the runtime does not see what it is.
func (l *whileLoop) unseen(x string) string {
	return l.node("Neg", []string{l.node("Neg", []string{x}, "T", loopFloat)}, "T", loopFloat)
}

// sumLoop makes a loop whose variables are a sum of products, two that change places, one of
// which the sum is added to if it is used, and a state that is multiplied by a matrix that
// is stored transposed.
func sumLoop(p *pipe, n int32, isSeen, isUsed, grows bool) []string {
	x, y, w := p.placeholder("x"), p.placeholder("y"), p.placeholder("w")
	l := p.whileLoop(n, p.placeholder("start"), p.placeholder("a"), p.placeholder("b"), p.placeholder("h"))
	xs, ys, ws := l.fixed(x, loopFloat), l.fixed(y, loopFloat), l.fixed(w, loopFloat)
	i, sum, a, b, h := l.vars[0], l.vars[1], l.vars[2], l.vars[3], l.vars[4]
	if grows { // the factors have one row in the first iteration, two in the second ...
		rows := l.node("Pack", []string{l.node("Add", []string{i, l.fixed(p.scalar(1), loopInt)}, "T", loopInt), l.fixed(p.scalar(-1), loopInt)}, "T", loopInt, "N", 2)
		zero := l.fixed(p.ints(0, 0), loopInt)
		xs = l.node("Slice", []string{xs, zero, rows}, "T", loopFloat, "Index", loopInt)
		ys = l.node("Slice", []string{ys, zero, rows}, "T", loopFloat, "Index", loopInt)
	}
	count := l.node("Cast", []string{i}, "SrcT", loopInt, "DstT", loopFloat)
	scaled := l.node("Mul", []string{xs, l.node("Cos", []string{count}, "T", loopFloat)}, "T", loopFloat)
	product := l.node("MatMul", []string{scaled, ys}, "T", loopFloat, "transpose_a", true)
	if !isSeen {
		product, ws = l.unseen(product), l.unseen(ws)
	}
	if isUsed {
		a = l.node("Add", []string{a, sum}, "T", loopFloat)
	}
	state := l.node("Tanh", []string{l.node("MatMul", []string{h, ws}, "T", loopFloat, "transpose_b", true)}, "T", loopFloat)
	l.next(l.node("Add", []string{sum, product}, "T", loopFloat), b, a, state)
	return l.exits
}

// nestedSums makes a loop around another one: the inner adds products to a variable of the
// outer one, which adds a product of its own to another, and then exchanges the two.
func nestedSums(p *pipe, outer, inner int32, isSeen bool) []string {
	x, y := p.placeholder("x"), p.placeholder("y")
	o := p.whileLoop(outer, p.placeholder("start"), p.placeholder("start2"))
	product := func(l *whileLoop, of string) string {
		count := l.node("Cast", []string{l.vars[0]}, "SrcT", loopInt, "DstT", loopFloat)
		scaled := l.node("Mul", []string{of, l.node("Cos", []string{count}, "T", loopFloat)}, "T", loopFloat)
		v := l.node("MatMul", []string{scaled, l.fixed(y, loopFloat)}, "T", loopFloat, "transpose_a", true)
		if !isSeen {
			v = l.unseen(v)
		}
		return v
	}
	i := o.inner(inner, o.vars[1])
	i.next(i.node("Add", []string{i.vars[1], product(i, i.fixed(x, loopFloat))}, "T", loopFloat))
	o.next(o.node("Add", []string{o.vars[2], product(o, o.fixed(x, loopFloat))}, "T", loopFloat), i.exits[1])
	return o.exits
}

// randomMatrices feeds what sums of products need.
func randomMatrices(t *testing.T, rows, m, n int64, names ...string) map[string]*ckptfmt.Tensor {
	t.Helper()
	r := rand.New(rand.NewPCG(21, 3))
	feeds := map[string]*ckptfmt.Tensor{}
	for _, name := range names {
		shape := []int64{m, n}
		if name == "x:0" {
			shape = []int64{rows, m}
		} else if name == "y:0" {
			shape = []int64{rows, n}
		}
		v := make([]float32, shape[0]*shape[1])
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		x, err := ckptfmt.FromValues(shape, v)
		if err != nil {
			t.Fatal(err)
		}
		feeds[name] = x
	}
	return feeds
}

// TestNestedLoopSums has sums of products in a loop and in one within it: they have the bits
// of loops where the runtime does not see that.
func TestNestedLoopSums(t *testing.T) {
	feeds := randomMatrices(t, 40, 7, 33, "x:0", "y:0", "start:0", "start2:0")
	for _, times := range [][2]int32{{0, 3}, {1, 0}, {1, 1}, {3, 5}, {4, 30}, {30, 2}} {
		var want []*ckptfmt.Tensor
		for _, isSeen := range []bool{false, true} {
			p := newPipe(t)
			exits := nestedSums(p, times[0], times[1], isSeen)
			s := sessionOf(t, p.def)
			for range 3 {
				got, err := s.Run(t.Context(), feeds, exits, nil)
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want = got
				}
				for i := range got {
					if !slices.Equal(got[i].Data, want[i].Data) {
						t.Fatalf("%v: variable %d has other bits where the runtime sees what the loops do (%v)", times, i, isSeen)
					}
				}
			}
		}
	}
}

// TestLoopSumsInLittleMemory has runs that need more memory than there is while products are
// collected: they say so, and what they have collected is in no later run, whose factors are
// smaller.
func TestLoopSumsInLittleMemory(t *testing.T) {
	const m, n = 64, 64
	small, large := randomMatrices(t, 3, m, n, "x:0", "y:0", "start:0", "start2:0"), randomMatrices(t, 400, m, n, "x:0", "y:0", "start:0", "start2:0")
	p := newPipe(t)
	exits := nestedSums(p, 2, 6, true)
	whole := sessionOf(t, p.def)
	run := func(s *runtime.Session, feeds map[string]*ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
		return s.Run(t.Context(), feeds, exits, nil)
	}
	want, err := run(whole, small)
	if err != nil {
		t.Fatal(err)
	}
	failed, passed := 0, 0
	for limit := int64(64 << 10); limit <= 8<<20; limit += limit / 4 {
		s, err := runtime.New(p.def, &runtime.Options{MaxMemory: limit})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 2 {
			_, err := run(s, large)
			if err != nil && !errors.Is(err, exhausted) {
				t.Fatalf("%d bytes: %v", limit, err)
			}
			got, smallErr := run(s, small)
			if smallErr != nil {
				continue
			}
			passed++
			if err != nil {
				failed++
			}
			for i := range got {
				if !slices.Equal(got[i].Data, want[i].Data) {
					t.Fatalf("%d bytes: variable %d has other bits after a run that ended with %v", limit, i, err)
				}
			}
		}
	}
	if failed == 0 || failed == passed {
		t.Errorf("of %d runs of small factors, %d came after one that needed too much; want some of both", passed, failed)
	}
}

// TestLoopSumsAfterFailure has a loop that fails when it has collected some products: they are
// in no later run.
func TestLoopSumsAfterFailure(t *testing.T) {
	p := newPipe(t)
	exits := sumLoop(p, 10, true, false, true)
	feeds := randomMatrices(t, 40, 7, 33, "x:0", "y:0", "start:0", "a:0", "b:0")
	square := randomMatrices(t, 1, 5, 5, "w:0", "h:0")
	feeds["w:0"], feeds["h:0"] = square["w:0"], square["h:0"]
	want, err := sessionOf(t, p.def).Run(t.Context(), feeds, exits, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, fails := sessionOf(t, p.def), maps.Clone(feeds)
	fails["x:0"] = randomMatrices(t, 3, 7, 33, "x:0")["x:0"] // the fourth iteration wants four rows
	for range 2 {
		if _, err := s.Run(t.Context(), fails, exits, nil); err == nil {
			t.Fatal("the loop with too few rows has not failed")
		}
		got, err := s.Run(t.Context(), feeds, exits, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if !slices.Equal(got[i].Data, want[i].Data) {
				t.Errorf("variable %d has other bits after a failure", i)
			}
		}
	}
}

// TestLoopSums compares loops that add products to a variable, and multiply by the same
// matrix in each iteration, with loops where the runtime cannot see that: they have the
// same bits.
func TestLoopSums(t *testing.T) {
	const m, n, rows = 7, 33, 40
	r := rand.New(rand.NewPCG(21, 3))
	matrix := func(m, n int64) *ckptfmt.Tensor {
		v := make([]float32, m*n)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		x, err := ckptfmt.FromValues([]int64{m, n}, v)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	feeds := map[string]*ckptfmt.Tensor{"x:0": matrix(rows, m), "y:0": matrix(rows, n), "w:0": matrix(5, 5), "start:0": matrix(m, n),
		"a:0": matrix(m, n), "b:0": matrix(m, n), "h:0": matrix(3, 5)}
	for _, times := range []int32{0, 1, 2, 5, 30} {
		for _, grows := range []bool{false, true} {
			for _, isUsed := range []bool{false, true} {
				t.Run(fmt.Sprint(times, grows, isUsed), func(t *testing.T) {
					var want []*ckptfmt.Tensor
					for _, isSeen := range []bool{false, true} {
						p := newPipe(t)
						exits := sumLoop(p, times, isSeen, isUsed, grows)
						s := sessionOf(t, p.def)
						for range 3 {
							got, err := s.Run(t.Context(), feeds, exits, nil)
							if err != nil {
								t.Fatal(err)
							}
							if want == nil {
								want = got
							}
							for i := range got {
								if !slices.Equal(got[i].Data, want[i].Data) {
									t.Fatalf("variable %d has other bits where the runtime sees what the loop does (%v)", i, isSeen)
								}
							}
						}
					}
				})
			}
		}
	}
}

// TestLoopsWaitForNothing has a loop whose count starts after what follows the loop, as
// tf.gradients makes them under control dependencies: each part of the results is what it
// is among all of them.
func TestLoopsWaitForNothing(t *testing.T) {
	p := newPipe(t)
	l := p.whileLoop(4, p.placeholder("h"))
	l.next(l.node("Tanh", []string{l.vars[1]}, "T", loopFloat))
	mean := p.node("Mean", []string{l.exits[1], p.ints(0)}, "T", loopFloat, "Tidx", loopInt)
	count := slices.IndexFunc(p.def.Node, func(n *tfpb.NodeDef) bool { return n.Op == "Const" }) // the start of the first variable
	p.def.Node[count].Input = []string{"^" + mean}
	s := sessionOf(t, p.def)
	h, err := ckptfmt.FromValues([]int64{2}, []float32{0.5, -2})
	if err != nil {
		t.Fatal(err)
	}
	feeds, all := map[string]*ckptfmt.Tensor{"h:0": h}, []string{l.exits[0], l.exits[1], mean}
	want, err := s.Run(t.Context(), feeds, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]int{{0}, {1}, {2}, {0, 2}, {2, 1}} {
		var names []string
		for _, i := range part {
			names = append(names, all[i])
		}
		got, err := s.Run(t.Context(), feeds, names, []string{mean})
		if err != nil {
			t.Fatal(err)
		}
		for k, i := range part {
			if !slices.Equal(got[k].Data, want[i].Data) {
				t.Errorf("%s is %v among %v, %v among all", all[i], got[k].Data, names, want[i].Data)
			}
		}
	}
}
