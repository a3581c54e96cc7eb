package math_test

import (
	"math"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestFinite asks the tests of numbers, and the folds of booleans, about one odd number at
// each place.
func TestFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, odd := range []float32{1, math.MaxFloat32, -math.MaxFloat32, 1e-45, inf, -inf, float32(math.NaN())} {
		for at := range 300 {
			if at > 20 && at%37 > 0 {
				continue
			}
			values := make([]float32, at+7)
			values[at] = odd
			g := kerneltest.New(t)
			x := kerneltest.Vector(g, values...)
			wide := g.Node("Cast", []string{x}, "DstT", tfpb.DataType_DT_DOUBLE)
			axis := kerneltest.Vector(g, int32(0))
			var fetch []string
			for _, of := range []string{x, wide} {
				for _, op := range []string{"IsFinite", "IsInf", "IsNan"} {
					test := g.Node(op, []string{of})
					fetch = append(fetch, test, g.Node("All", []string{test, axis}), g.Node("Any", []string{test, axis}))
				}
			}
			out := g.Run(fetch)
			for i, want := range []bool{odd-odd == 0, math.IsInf(float64(odd), 0), odd != odd} {
				for k := 3 * i; k < len(out); k += 9 {
					each := i == 0 // what the other numbers are
					checkBools(t, out[k], at, want, each)
					if all, anyOf := out[k+1].Data[0] == 1, out[k+2].Data[0] == 1; all != (want && each) || anyOf != (want || each) {
						t.Fatalf("%v at %d: all %t, any %t of test %d", odd, at, all, anyOf, i)
					}
				}
			}
		}
	}
}

func checkBools(t *testing.T, got *ckptfmt.Tensor, at int, want, others bool) {
	t.Helper()
	for i, v := range got.Data {
		expected := others
		if i == at {
			expected = want
		}
		if (v == 1) != expected {
			t.Fatalf("element %d is %d, want %t", i, v, expected)
		}
	}
}
