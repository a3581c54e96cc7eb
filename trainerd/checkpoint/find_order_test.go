package checkpoint

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/session"
)

// TestMergeIsInsertion merges as if each checkpoint were put by itself before the first of a
// smaller step.
func TestMergeIsInsertion(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		listed := []string{"/l/m-50"}
		for range r.IntN(6) {
			listed = append(listed, fmt.Sprintf("/l/m-%d", r.IntN(60)))
		}
		var unlisted []scanned
		for i := range r.IntN(6) {
			step := r.Int64N(50)
			unlisted = append(unlisted, scanned{prefix: fmt.Sprintf("/l/%d-%d", i, step), step: step})
		}
		unlisted = append(unlisted, scanned{prefix: "/l/none", step: session.NoStep})
		slices.SortStableFunc(unlisted, func(a, b scanned) int { return cmp.Compare(b.step, a.step) })
		want := slices.Clone(listed)
		for _, s := range unlisted {
			at := slices.IndexFunc(want[1:], func(prefix string) bool { return isBefore(prefix, s.step) })
			if at < 0 {
				at = len(want) - 1
			}
			want = slices.Insert(want, 1+at, s.prefix)
		}
		c := Found{Prefixes: slices.Clone(listed)}
		if c.merge(unlisted); !slices.Equal(c.Prefixes, want) {
			t.Fatalf("%v with %v: %v, want %v", listed, unlisted, c.Prefixes, want)
		}
	}
}
