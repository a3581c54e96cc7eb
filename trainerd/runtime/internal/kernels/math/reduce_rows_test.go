package math_test

import (
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestColumnsFold folds the columns of matrices of more rows than are folded as one,
// with whole numbers, whose sums are exact.
func TestColumnsFold(t *testing.T) {
	for _, v := range [][2]int{{1001, 7}, {3, 700}, {2, 1}, {1000, 1}, {513, 256}} {
		rows, n := v[0], v[1]
		x, sum, largest := make([]float32, rows*n), make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = float32(i*31%17 - 20)
			sum[i%n] += x[i]
			if i < n || x[i] > largest[i%n] {
				largest[i%n] = x[i]
			}
		}
		b := kerneltest.New(t)
		images, axis := kerneltest.Tensor(b, []int64{int64(rows), int64(n)}, x...), kerneltest.Vector(b, int32(0))
		got := b.Run([]string{b.Node("Sum", []string{images, axis}), b.Node("Max", []string{images, axis})})
		kerneltest.WantValues(t, kerneltest.Values[float32](t, got[0]), sum)
		kerneltest.WantValues(t, kerneltest.Values[float32](t, got[1]), largest)
	}
}
