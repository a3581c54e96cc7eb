package exec_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/session"
)

// works is how many rows of three slow steps one after the other there are, with
// nothing in common.
const works = 8

// slowGraph has rows that square x, take it from 3 and square that, and the sum of
// what they end with; and an effect that waits for a square of its own.
func slowGraph() *tfpb.GraphDef {
	attr := map[string]*tfpb.AttrValue{"dtype": {Value: &tfpb.AttrValue_Type{Type: exec.Float32}}, "T": {Value: &tfpb.AttrValue_Type{Type: exec.Float32}}}
	nodes := []*tfpb.NodeDef{
		{Name: "x", Op: "Placeholder", Attr: attr},
		{Name: "first", Op: "Square", Input: []string{"x"}, Attr: attr},
		{Name: "guard", Op: "NoOp", Input: []string{"^first"}},
		{Name: "effect", Op: "Abs", Input: []string{"x", "^guard"}, Attr: attr},
	}
	ends := []string{"first", "effect"}
	for i := range works {
		name := "x"
		for k, op := range []string{"Square", "Neg", "Square"} {
			next := fmt.Sprintf("n%d_%d", i, k)
			nodes = append(nodes, &tfpb.NodeDef{Name: next, Op: op, Input: []string{name}, Attr: attr})
			name = next
		}
		ends = append(ends, name)
	}
	sum := &tfpb.NodeDef{Name: "sum", Op: "AddN", Input: ends, Attr: map[string]*tfpb.AttrValue{"T": attr["T"], "N": {Value: &tfpb.AttrValue_I{I: works + 2}}}}
	return &tfpb.GraphDef{Node: append(nodes, sum)}
}

// slowSession returns a session of that graph, in which a negative value fails. together
// counts the steps that began while another one ran.
func slowSession(t *testing.T, together, effects *atomic.Int32) *exec.Session {
	t.Helper()
	var running atomic.Int32
	slow := func(f func(v float32) float32) exec.OpSpec {
		return exec.OpSpec{Build: exec.WithoutAttrs(func(c *exec.KernelContext) error {
			if running.Add(1) > 1 {
				together.Add(1)
			}
			defer running.Add(-1)
			for began := time.Now(); time.Since(began) < 50*time.Microsecond; {
			}
			x := exec.Elems[float32](c.In(0))
			if x[0] < 0 {
				return c.Invalid("%v is negative", x[0])
			}
			d := exec.Elems[float32](c.OutLike(0, exec.Float32, c.In(0)))
			for i, v := range x {
				d[i] = f(v)
			}
			return nil
		})}
	}
	s, err := exec.New(exec.OpTable{
		"Placeholder": {Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })},
		"Square":      slow(func(v float32) float32 { return v * v }),
		"Neg":         slow(func(v float32) float32 { return 3 - v }),
		"NoOp":        {Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })},
		"Abs": {Build: exec.WithoutAttrs(func(c *exec.KernelContext) error {
			effects.Add(1)
			clear(exec.Elems[float32](c.OutLike(0, exec.Float32, c.In(0))))
			return nil
		})},
		"AddN": {Build: exec.WithoutAttrs(func(c *exec.KernelContext) error {
			d := exec.Elems[float32](c.OutLike(0, exec.Float32, c.In(0)))
			clear(d)
			for i := range c.NumInputs() {
				for k, v := range exec.Elems[float32](c.In(i)) {
					d[k] += v
				}
			}
			return nil
		})},
	}, slowGraph(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestRegions has steps run at the same time from the fifth run on.
func TestRegions(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	var together, effects atomic.Int32
	s := slowSession(t, &together, &effects)
	train, err := s.MakeCallable(t.Context(), []string{"x:0"}, []string{"sum:0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(v float32) ([]*ckptfmt.Tensor, error) {
		x, err := ckptfmt.FromValues([]int64{2}, []float32{v, 1})
		if err != nil {
			t.Fatal(err)
		}
		return train.Run(t.Context(), []*ckptfmt.Tensor{x})
	}
	for i := 0; together.Load() == 0; i++ {
		v := float32(i % 2)
		out, err := run(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ckptfmt.Values[float32](out[0])
		if want := works*(3-v*v)*(3-v*v) + v*v; err != nil || got[0] != want || got[1] != 4*works+1 {
			t.Fatalf("run %d: got %v (%v), want %v", i, got, err, []float32{want, 4*works + 1})
		}
		if i == 2000 {
			t.Fatal("no two steps ran at the same time")
		}
	}
	step, err := s.MakeCallable(t.Context(), []string{"x:0"}, nil, []string{"sum"})
	if err != nil {
		t.Fatal(err)
	}
	if n := allocations(t, step); n >= 1 { // now and then the helper's goroutine is a new one
		t.Errorf("%v allocations a step", n)
	}
	effects.Store(0)
	for range 20 {
		_, err = run(-1)
		var op *session.OpError
		if !errors.As(err, &op) || op.Op != "Square" || op.Message != "-1 is negative" {
			t.Errorf("a step that fails: %v", err)
		}
	}
	if n := effects.Load(); n != 0 {
		t.Errorf("%d effects of a step that the failed one comes before", n)
	}
	if _, err := run(1); err != nil {
		t.Errorf("after a failed step: %v", err)
	}
}

// allocations returns the allocations of a warm step, by as many processors as there
// are, unlike [testing.AllocsPerRun].
func allocations(t *testing.T, step *exec.Callable) float64 {
	t.Helper()
	x, err := ckptfmt.FromValues([]int64{2}, []float32{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	const warm, runs = 10, 50
	feeds := []*ckptfmt.Tensor{x}
	var before, after runtime.MemStats
	for i := range warm + runs {
		if i == warm {
			runtime.ReadMemStats(&before)
		}
		if _, err := step.Run(t.Context(), feeds); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs
}
