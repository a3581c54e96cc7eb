package vec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/internal/vec"
)

// TestChoose holds choices and comparisons of all lengths, with numbers that are equal
// and no numbers, against plain loops.
func TestChoose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	list := []float32{0, float32(math.Copysign(0, -1)), 1, 2, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for n := range 100 {
		x, y, s := make([]float32, n), make([]float32, n), list[r.IntN(len(list))]
		a, b, cond, d := make([]uint32, n), make([]uint32, n), make([]bool, n), make([]uint32, n+1)
		for i := range n {
			x[i], y[i], a[i], b[i], cond[i] = list[r.IntN(len(list))], list[r.IntN(len(list))], r.Uint32(), r.Uint32(), r.IntN(2) == 0
		}
		got := make([]bool, n+1)
		for name, f := range map[string]struct {
			run  func(d []bool)
			want func(i int) bool
		}{
			"x < y":  {func(d []bool) { vec.Less(d, x, y) }, func(i int) bool { return x[i] < y[i] }},
			"x < s":  {func(d []bool) { vec.LessScalar(d, x, s) }, func(i int) bool { return x[i] < s }},
			"s < x":  {func(d []bool) { vec.ScalarLess(d, s, x) }, func(i int) bool { return s < x[i] }},
			"x <= y": {func(d []bool) { vec.LessEqual(d, x, y) }, func(i int) bool { return x[i] <= y[i] }},
			"x <= s": {func(d []bool) { vec.LessEqualScalar(d, x, s) }, func(i int) bool { return x[i] <= s }},
			"s <= x": {func(d []bool) { vec.ScalarLessEqual(d, s, x) }, func(i int) bool { return s <= x[i] }},
			"x == y": {func(d []bool) { vec.Equal(d, x, y, false) }, func(i int) bool { return x[i] == y[i] }},
			"x != y": {func(d []bool) { vec.Equal(d, x, y, true) }, func(i int) bool { return x[i] != y[i] }},
			"x == s": {func(d []bool) { vec.EqualScalar(d, x, s, false) }, func(i int) bool { return x[i] == s }},
			"x != s": {func(d []bool) { vec.EqualScalar(d, x, s, true) }, func(i int) bool { return x[i] != s }},
		} {
			f.run(got[:n])
			for i := range n {
				if got[i] != f.want(i) {
					t.Fatalf("%s, element %d of %d: %v, %v, %v gives %v", name, i, n, x[i], y[i], s, got[i])
				}
			}
		}
		for _, want := range []bool{true, false} {
			vec.ChooseOr(d[:n], cond, want, a, 7)
			for i := range n {
				if chosen := d[i] == a[i]; chosen != (cond[i] == want) || !chosen && d[i] != 7 {
					t.Fatalf("element %d of %d is %d", i, n, d[i])
				}
			}
		}
		copy(d, a)
		vec.Choose(d[:n], cond, d[:n], b)
		for i := range n {
			if want := map[bool]uint32{true: a[i], false: b[i]}[cond[i]]; d[i] != want {
				t.Fatalf("element %d of %d is %d, want %d", i, n, d[i], want)
			}
		}
		if got[n] || d[n] != 0 {
			t.Fatalf("what is after %d elements changed", n)
		}
	}
}
