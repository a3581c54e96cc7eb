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
			order := Order(len(names), name)
			for _, at := range order {
				got = append(got, names[at])
			}
			want := slices.Sorted(slices.Values(names))
			if !slices.Equal(got, want) {
				t.Fatalf("letters %q after %q are out of order", letters, prefix)
			}
			at, ok := Twice(len(names), name, order)
			if !ok || slices.Index(names, names[at]) == at {
				t.Errorf("%d, %t is a name that is there twice", at, ok)
			}
		}
	}
}

func TestOrderOfSortedNames(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b", "b\x00"}} {
		name := func(i int) string { return names[i] }
		if order := Order(len(names), name); order != nil {
			t.Errorf("%q: %v", names, order)
		}
		if at, ok := Twice(len(names), name, nil); ok {
			t.Errorf("%q: %d is there twice", names, at)
		}
	}
}
