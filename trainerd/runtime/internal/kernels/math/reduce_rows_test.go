package math_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
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

// TestReductionOfTile sums as the gradient of a Tile of rank five does: over every other
// one of ten dimensions.
func TestReductionOfTile(t *testing.T) {
	shape := []int64{1, 2, 3, 1, 2, 2, 1, 2, 2, 1}
	x, want := make([]float32, 96), make([]float32, 2*2*2)
	for i := range x {
		x[i] = float32(i)
		at, place := i, [10]int{}
		for k := len(shape) - 1; k >= 0; k-- {
			place[k], at = at%int(shape[k]), at/int(shape[k])
		}
		want[place[1]*4+place[5]*2+place[7]] += x[i]
	}
	b := kerneltest.New(t)
	tiled, axes := kerneltest.Tensor(b, shape, x...), kerneltest.Vector[int32](b, 0, 2, 4, 6, 8)
	got := b.Run([]string{b.Node("Sum", []string{tiled, axes})})
	kerneltest.WantValues(t, kerneltest.Values[float32](t, got[0]), want)
}

// TestLongReductions reduces tensors that several processors share.
func TestLongReductions(t *testing.T) {
	const rows, columns = 600, 250
	r := rand.New(rand.NewPCG(2, 21))
	x := make([]float32, rows*columns)
	all, squares, row := 0.0, 0.0, 0.0
	for i := range x {
		x[i] = float32(r.NormFloat64())
		all += float64(x[i])
		squares += float64(x[i]) * float64(x[i])
		if i >= (rows-1)*columns {
			row += float64(x[i])
		}
	}
	b := kerneltest.New(t)
	images, both, last := kerneltest.Tensor(b, []int64{rows, columns}, x...), kerneltest.Vector(b, int32(0), int32(1)), kerneltest.Vector(b, int32(1))
	list := []string{b.Node("Sum", []string{images, both}), b.Node("L2Loss", []string{images}), b.Node("Sum", []string{images, last}),
		b.Node("Mean", []string{images, last}), b.Node("Max", []string{images, last})}
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	want := b.Run(list)
	sums := kerneltest.Values[float32](t, want[2])
	for i, v := range []float32{kerneltest.Values[float32](t, want[0])[0], kerneltest.Values[float32](t, want[1])[0], sums[rows-1]} {
		if w := []float32{float32(all), float32(squares / 2), float32(row)}[i]; v != w {
			t.Errorf("sum %d is %v, want %v", i, v, w)
		}
	}
	runtime.GOMAXPROCS(4)
	for i, got := range b.Run(list) {
		if !slices.Equal(got.Data, want[i].Data) {
			t.Errorf("reduction %d has other bits with four processors", i)
		}
	}
}
