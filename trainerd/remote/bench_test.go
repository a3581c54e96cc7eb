package remote

import (
	"fmt"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// BenchmarkManyTensors feeds and fetches 20,000 small tensors in one step, as a copy of the
// variables of a large model does.
func BenchmarkManyTensors(b *testing.B) {
	const n = 20000
	feeds, fetches, targets := map[string]*ckptfmt.Tensor{}, []string{}, []string{}
	for i := range n {
		feeds[fmt.Sprintf("layer_%d/feed", i)] = vector(1)
		fetches = append(fetches, fmt.Sprintf("layer_%d/read", i))
		targets = append(targets, fmt.Sprintf("layer_%d/assign", i))
	}
	graph := newGraphIndex(nil)
	for b.Loop() {
		st, err := newStep(graph, feedNames(feeds), fetches, targets)
		if err != nil {
			b.Fatal(err)
		}
		out, err := st.results(func(string) (*ckptfmt.Tensor, error) { return vector(1), nil })
		if err != nil || len(out) != n {
			b.Fatal(len(out), err)
		}
	}
}
