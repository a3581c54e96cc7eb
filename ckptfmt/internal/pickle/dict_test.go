package pickle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
)

// TestDictIsThatOfPython compares dicts with a map, whose keys are in ascending order up to
// some place, and in any order and equal after that.
func TestDictIsThatOfPython(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		d, want, order := pickle.NewDict(), make(map[any]any), []any(nil)
		for i := range n {
			key := any(fmt.Sprintf("%03d", i))
			if ascending := n % 40; i >= ascending {
				key = [...]any{fmt.Sprintf("%03d", rnd.IntN(n)), int64(rnd.IntN(n)), nil}[rnd.IntN(3)]
			}
			if _, ok := want[key]; !ok {
				order = append(order, key)
			}
			want[key] = i
			if err := d.Set(key, i); err != nil {
				t.Fatal(err)
			}
			for key, v := range want {
				if d.Get(key) != v {
					t.Fatalf("%d keys: %v has %v, want %v", i+1, key, d.Get(key), v)
				}
			}
		}
		if !slices.Equal(d.Keys, order) || d.Get("none") != nil || d.Get(1.5) != nil {
			t.Errorf("%d keys: %v, want %v", n, d.Keys, order)
		}
	}
}
