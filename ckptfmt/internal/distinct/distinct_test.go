package distinct_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
)

// TestNames adds names in several orders, some of them twice, next to a map.
func TestNames(t *testing.T) {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("layer.%d", i/2*(i%2)+i))
	}
	orders := map[string][]string{"mixed": names, "ascending": slices.Sorted(slices.Values(names)), "one": {"", "a", ""}}
	late := append(slices.Sorted(slices.Values(names)), "a", "layer.0", "a", "z", "z")
	orders["late"] = late
	shuffled := slices.Clone(names)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	orders["shuffled"] = shuffled
	for what, order := range orders {
		var kept []string
		seen := map[string]bool{}
		s := distinct.New(func(i int) string { return kept[i] })
		for i, name := range append(order, "", "layer", "layer.9999999", "zz") {
			if isNew := s.Add(name); isNew == seen[name] {
				t.Fatalf("%s: name %d, %q: Add is %t", what, i, name, isNew)
			} else if isNew {
				kept = append(kept, name)
			}
			seen[name] = true
		}
	}
}
