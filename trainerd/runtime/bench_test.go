package runtime_test

import (
	"context"
	"sort"
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
	names := append([]string(nil), p.Feeds...)
	sort.Strings(names)
	c, err := p.sess.MakeCallable(names, nil, []string{p.TrainOp})
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

// TestAllocs holds the allocations of a warm step.
func TestAllocs(t *testing.T) {
	limits := map[string]float64{"softmax_ref": 0, "softmax_resource": 0, "mlp_adam": 0, "mlp_dropout": 0, "embedding": 0, "conv": 0}
	if !blas.AddsWhole[float32](1) {
		delete(limits, "conv") // large products of gonum's start goroutines
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			c, feeds := trainStep(t, name)
			ctx := context.Background()
			got := testing.AllocsPerRun(50, func() {
				if _, err := c.Run(ctx, feeds); err != nil {
					t.Fatal(err)
				}
			})
			if got > limit {
				t.Errorf("%v allocations a step, want at most %v", got, limit)
			}
		})
	}
}
