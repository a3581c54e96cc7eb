package sparse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestSparseMatMul compares products with the definition, for few and many
// columns, entries of either index type, and every transposition.
func TestSparseMatMul(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for n := range 48 {
		ta, tb, narrow := n%2 == 1, n/2%2 == 1, n/4%2 == 1
		rows, cols, width, count := 1+r.IntN(9), 1+r.IntN(9), 1+n, r.IntN(60)
		if n > 40 {
			count = 20000 // worth two processors
		}
		t.Run(fmt.Sprint(ta, tb, narrow, width, count), func(t *testing.T) {
			m, k := rows, cols
			if ta {
				m, k = k, m
			}
			index, values, y := make([]int64, 2*count), make([]float32, count), make([]float32, k*width)
			for i := range y {
				y[i] = float32(r.NormFloat64())
			}
			want := make([]float64, m*width)
			for e := range values {
				at := [2]int{r.IntN(rows), r.IntN(cols)}
				values[e], index[2*e], index[2*e+1] = float32(r.NormFloat64()), int64(at[0]), int64(at[1])
				if ta {
					at[0], at[1] = at[1], at[0]
				}
				for j := range width {
					from := at[1]*width + j
					if tb {
						from = j*k + at[1]
					}
					want[at[0]*width+j] += float64(values[e]) * float64(y[from])
				}
			}
			g := kerneltest.New(t)
			shape := []int64{int64(k), int64(width)}
			if tb {
				shape[0], shape[1] = shape[1], shape[0]
			}
			got := kerneltest.Values[float32](t, g.Run([]string{g.Node("SparseTensorDenseMatMul", []string{
				indices(g, index, narrow), kerneltest.Vector(g, values...), kerneltest.Vector(g, int64(rows), int64(cols)), kerneltest.Tensor(g, shape, y...),
			}, "adjoint_a", ta, "adjoint_b", tb)})[0])
			for i, v := range got {
				if math.Abs(float64(v)-want[i]) > 1e-3*(1+math.Abs(want[i])) {
					t.Fatalf("element %d is %v, want %v", i, v, want[i])
				}
			}
		})
	}
}

// indices feeds the indices of entries, as int32 if they are to be narrow.
func indices(g *kerneltest.Graph, index []int64, narrow bool) string {
	shape := []int64{int64(len(index) / 2), 2}
	if !narrow {
		return kerneltest.Tensor(g, shape, index...)
	}
	short := make([]int32, len(index))
	for i, v := range index {
		short[i] = int32(v)
	}
	return kerneltest.Tensor(g, shape, short...)
}

// TestSparseMatMulChecksIndices has an entry outside of the matrix.
func TestSparseMatMulChecksIndices(t *testing.T) {
	for _, bad := range [][2]int64{{2, 0}, {0, 3}, {-1, 0}, {0, -1}} {
		g := kerneltest.New(t)
		_, err := g.Try([]string{g.Node("SparseTensorDenseMatMul", []string{
			kerneltest.Tensor(g, []int64{2, 2}, 1, 1, bad[0], bad[1]), kerneltest.Vector(g, float32(1), 2), kerneltest.Vector(g, int64(2), 3),
			kerneltest.Tensor(g, []int64{3, 1}, float32(1), 2, 3)})})
		if got := kerneltest.Code(err); got != tfpb.Code_INVALID_ARGUMENT {
			t.Errorf("entry %v: %v, want INVALID_ARGUMENT", bad, err)
		}
	}
}
