package runtime_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// trainStep returns a compiled train step of a program and feeds for it.
func trainStep(tb testing.TB, name string) (*runtime.Callable, []*ckptfmt.Tensor) {
	tb.Helper()
	p := load(tb, name)
	p.restore(tb)
	names := slices.Sorted(slices.Values(p.Feeds))
	c, err := p.sess.MakeCallable(tb.Context(), names, nil, []string{p.TrainOp})
	if err != nil {
		tb.Fatal(err)
	}
	feeds := p.feeds(tb)[0]
	var list []*ckptfmt.Tensor
	for _, name := range names {
		list = append(list, feeds[name])
	}
	return c, list
}

func BenchmarkStep(b *testing.B) {
	for _, name := range fed {
		b.Run(name, func(b *testing.B) {
			c, feeds := trainStep(b, name)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Run(context.Background(), feeds); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAllocs holds the allocations of a warm step, with one processor and two.
func TestAllocs(t *testing.T) {
	programs := []string{"softmax_ref", "softmax_resource", "mlp_adam", "mlp_dropout", "embedding", "conv"}
	if !blas.AddsWhole[float32](1) {
		programs = programs[:5] // large products of gonum's start goroutines
	}
	for _, name := range programs {
		for _, processors := range []int{1, 2} {
			t.Run(fmt.Sprint(name, "/", processors), func(t *testing.T) {
				if n := allocations(t, name, processors); n >= 1 { // now and then a helper's goroutine is a new one
					t.Errorf("%v allocations a step", n)
				}
			})
		}
	}
}

// allocations returns the allocations of a warm step of a program, with so many
// processors; [testing.AllocsPerRun] has one.
func allocations(t *testing.T, name string, processors int) float64 {
	t.Helper()
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(processors))
	c, feeds := trainStep(t, name)
	const warm, runs = 10, 50
	var before, after goruntime.MemStats
	for i := range warm + runs {
		if i == warm {
			goruntime.ReadMemStats(&before)
		}
		if _, err := c.Run(t.Context(), feeds); err != nil {
			t.Fatal(err)
		}
	}
	goruntime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / runs
}
