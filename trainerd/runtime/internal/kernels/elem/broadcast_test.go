package elem

import (
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// TestPairsIn walks through the results of broadcasts in pieces, which must be those of one walk.
func TestPairsIn(t *testing.T) {
	for _, shapes := range [][2][]int{{{2, 3, 4}, {3, 1}}, {{5}, {5}}, {{}, {2, 3}}, {{2, 1, 3, 1}, {4, 1, 5}}, {{1, 7}, {3, 7}}} {
		var b Broadcast
		if err := b.Init(shapes[0], shapes[1]); err != nil {
			t.Fatal(err)
		}
		var whole, pieces [][3]int
		b.Pairs(func(o, x, y int) { whole = append(whole, [3]int{o, x, y}) })
		for from, n := 0, exec.NumElements(b.Shape()); from < n; from += 2 {
			b.PairsIn(from, min(from+2, n), func(o, x, y int) { pieces = append(pieces, [3]int{o, x, y}) })
		}
		if !slices.Equal(whole, pieces) {
			t.Errorf("%v: %v in pieces, %v at once", shapes, pieces, whole)
		}
	}
}
