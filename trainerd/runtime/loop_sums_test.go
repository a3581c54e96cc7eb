package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// whileLoop is a loop of TensorFlow 1 in the making.
type whileLoop struct {
	*pipe
	vars  []string // what an iteration starts from
	exits []string
}

const loopFloat, loopInt = tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT32

// fixed passes a value into the loop.
func (l *whileLoop) fixed(x string, dt tfpb.DataType) string {
	return l.node("Enter", []string{x}, "T", dt, "frame_name", "loop", "is_constant", true)
}

// whileLoop makes a loop of n iterations. Its first variable counts them, the others start
// from the given values.
func (p *pipe) whileLoop(n int32, starts ...string) *whileLoop {
	l := &whileLoop{pipe: p}
	var merges []string
	for i, start := range slices.Insert(starts, 0, p.scalar(0)) {
		enter := p.node("Enter", []string{start}, "T", dtOfVariable(i), "frame_name", "loop")
		merges = append(merges, p.node("Merge", []string{enter, fmt.Sprint("next", i)}, "T", dtOfVariable(i), "N", 2))
	}
	more := p.node("LoopCond", []string{p.node("Less", []string{merges[0], l.fixed(p.scalar(n), loopInt)}, "T", loopInt)})
	for i, m := range merges {
		turn := p.node("Switch", []string{m, more}, "T", dtOfVariable(i))
		l.vars = append(l.vars, p.node("Identity", []string{turn + ":1"}, "T", dtOfVariable(i)))
		l.exits = append(l.exits, p.node("Exit", []string{turn}, "T", dtOfVariable(i)))
	}
	return l
}

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
		l.def.Node = append(l.def.Node, &tfpb.NodeDef{Name: fmt.Sprint("next", i), Op: "NextIteration", Input: []string{v}, Attr: attrs("T", dtOfVariable(i))})
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
