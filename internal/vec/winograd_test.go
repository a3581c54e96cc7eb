package vec

import (
	"math/rand/v2"
	"testing"
)

// testWinograd compares a transformation of random places and sizes with that
// of each channel.
func testWinograd[T Float](t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	channels, count := r.IntN(50), r.IntN(5)
	for w, c := range []struct {
		s   *sandwich
		run func(d []T, to Matrices, x []T, from Matrices, channels, count int)
	}{
		{&inputSandwich, WinogradInput[T]}, {&filterSandwich, WinogradFilter[T]}, {&outputSandwich, WinogradOutput[T]},
		{&outputGradSandwich, WinogradOutputGrad[T]}, {&filterGradSandwich, WinogradFilterGrad[T]},
	} {
		places := func(size int) Matrices { // columns, rows, then matrices
			col := channels + r.IntN(9)
			row := size*col + r.IntN(9)
			return Matrices{Row: row, Col: col, Next: size*row + r.IntN(9)}
		}
		to, from := places(c.s.rows), places(c.s.cols)
		x := operands[T](r, 1, count*from.Next+1)[0]
		got, want := make([]T, count*to.Next+1), make([]T, count*to.Next+1)
		c.run(got, to, x, from, channels, count)
		for k := range count {
			for ch := range channels {
				spread(c.s, want[k*to.Next+ch:], to, x[k*from.Next+ch:], from)
			}
		}
		for i := range want {
			if !same(got[i], want[i]) {
				t.Fatalf("transformation %d of %d channels, %d times: element %d is %v, want %v", w, channels, count, i, got[i], want[i])
			}
		}
	}
}

func TestWinograd(t *testing.T) {
	for seed := range uint64(300) {
		testWinograd[float32](t, seed)
		testWinograd[float64](t, seed)
	}
}

func FuzzWinograd(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		testWinograd[float32](t, seed)
		testWinograd[float64](t, seed)
	})
}

// TestWinogradConvolves computes 2 by 2 pixels of a convolution, and the
// gradient of its filter, with whole numbers, whose results are exact.
func TestWinogradConvolves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	whole := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.IntN(9) - 4)
		}
		return x
	}
	image, filter, grad := whole(16), whole(9), whole(4)
	v, u, z, m, y, d := make([]float32, 16), make([]float32, 16), make([]float32, 16), make([]float32, 16), make([]float32, 4), make([]float32, 9)
	four, three, two := Matrices{Row: 4, Col: 1}, Matrices{Row: 3, Col: 1}, Matrices{Row: 2, Col: 1}
	WinogradInput(v, four, image, four, 1, 1)
	WinogradFilter(u, four, filter, three, 1, 1)
	WinogradOutputGrad(z, four, grad, two, 1, 1)
	for i := range m {
		m[i] = u[i] * v[i]
		z[i] *= v[i]
	}
	WinogradOutput(y, two, m, four, 1, 1)
	WinogradFilterGrad(d, three, z, four, 1, 1)
	for p := range 4 {
		sum := float32(0)
		for k := range 9 {
			sum += image[(p/2+k/3)*4+p%2+k%3] * filter[k]
		}
		if y[p] != sum {
			t.Errorf("pixel %d is %v, want %v", p, y[p], sum)
		}
	}
	for k := range 9 {
		sum := float32(0)
		for p := range 4 {
			sum += image[(p/2+k/3)*4+p%2+k%3] * grad[p]
		}
		if d[k] != sum {
			t.Errorf("the filter's gradient %d is %v, want %v", k, d[k], sum)
		}
	}
}
