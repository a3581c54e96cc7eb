package nn_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestBiasAddGrad holds the gradient of a bias against sums of columns, and asks for
// the same bits of one processor and three.
func TestBiasAddGrad(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	for _, v := range [][2]int{{20000, 6}, {301, 700}, {0, 4}, {5, 3}, {1, 1}, {70000, 1}, {3, 0}, {2001, 80}} {
		x := random32(r, v[0]*v[1])
		want := make([]float64, v[1])
		for i, g := range x {
			want[i%v[1]] += float64(g)
		}
		var first *ckptfmt.Tensor
		for _, processors := range []int{1, 3} {
			got := columnSums(t, processors, v, x)
			near(t, "the gradient", kerneltest.Values[float32](t, got), want)
			if first != nil && !slices.Equal(got.Data, first.Data) {
				t.Errorf("the sums of %d rows of %d have other bits with %d processors", v[0], v[1], processors)
			}
			first = got
		}
	}
}

func columnSums(t *testing.T, processors int, shape [2]int, x []float32) *ckptfmt.Tensor {
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	b := kerneltest.New(t)
	grad := kerneltest.Tensor(b, []int64{int64(shape[0]), int64(shape[1])}, x...)
	return b.Run([]string{b.Node("BiasAddGrad", []string{grad}, "data_format", "NHWC")})[0]
}
