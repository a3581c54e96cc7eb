package vec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/internal/vec"
)

// TestAddWindow compares sums over windows of random geometry with plain loops, to the bit.
func TestAddWindow(t *testing.T) {
	testWindow[float32](t)
	testWindow[float64](t)
}

func testWindow[T vec.Float](t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(r.NormFloat64())
		}
		return x
	}
	for n := range 150 {
		f := vec.Window{Rows: r.IntN(4), Taps: r.IntN(4), XRow: r.IntN(41) - 20, XTap: r.IntN(41) - 20, WRow: r.IntN(30), WTap: r.IntN(30)}
		x, at, w, d := draw(400), 130, draw(400), draw(n+1)
		want := append([]T{}, d...)
		for i := range n {
			for row := range f.Rows {
				for tap := range f.Taps {
					want[i] += T(x[at+i+row*f.XRow+tap*f.XTap] * w[i+row*f.WRow+tap*f.WTap])
				}
			}
		}
		vec.AddWindow(d[:n], x, at, w, &f)
		for i := range d {
			if d[i] != want[i] {
				t.Fatalf("%+v: element %d of %d is %v, want %v", f, i, n, d[i], want[i])
			}
		}
	}
}

// TestAddWindowOutside refuses to read beyond its factors.
func TestAddWindowOutside(t *testing.T) {
	for _, f := range []vec.Window{
		{Rows: 2, Taps: 1, XRow: -9}, {Rows: 2, Taps: 1, XRow: 9}, {Rows: 1, Taps: 2, WTap: 9}, {Rows: 1, Taps: 2, WTap: -1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v read outside", f)
				}
			}()
			vec.AddWindow(make([]float32, 8), make([]float32, 24), 8, make([]float32, 16), &f)
		}()
	}
}
