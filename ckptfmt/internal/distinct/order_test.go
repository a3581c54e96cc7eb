package distinct

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestOrder has names that differ early, late, by length, by zero bytes, and not at all.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, letters := range []string{"ab", "a\x00", "ab\xff/."} {
		for _, prefix := range []string{"", "model.layers."} {
			var names []string
			for range 2000 {
				var b strings.Builder
				b.WriteString(prefix)
				for range random.IntN(12) {
					b.WriteByte(letters[random.IntN(len(letters))])
				}
				names = append(names, b.String())
			}
			name := func(i int) string { return names[i] }
			var got []string
			order, twice := Order(len(names), name)
			for _, at := range order {
				got = append(got, names[at])
			}
			want := slices.Sorted(slices.Values(names))
			if !slices.Equal(got, want) {
				t.Fatalf("letters %q after %q are out of order", letters, prefix)
			}
			if twice < 0 || slices.Index(names, names[twice]) == twice {
				t.Errorf("%d is a name that is there twice", twice)
			}
		}
	}
}

func TestOrderOfSortedNames(t *testing.T) {
	for _, names := range [][]string{nil, {""}, {"a"}, {"a", "b", "b\x00"}, {"", ""}, {"a", "b", "b", "c"}} {
		order, twice := Order(len(names), func(i int) string { return names[i] })
		if want := len(slices.Compact(slices.Clone(names))) < len(names); order != nil || (twice >= 0) != want {
			t.Errorf("%q: %v, %d is there twice", names, order, twice)
		}
	}
}
