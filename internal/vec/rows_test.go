package vec

import (
	"math/rand/v2"
	"testing"
)

// addRowsSlowly is AddScaledRows of all columns, an element at a time.
func addRowsSlowly[T Float](d, y, s []T, index []int64, side, n, from, to int) {
	for e := range s {
		for j := from; j < to; j++ {
			d[int(index[2*e+side])*n+j] += T(y[int(index[2*e+1-side])*n+j] * s[e])
		}
	}
}

func testAddScaledRows[T Float](t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 6))
	n, rows, count := 1+r.IntN(40), 1+r.IntN(9), r.IntN(30)
	v := operands[T](r, 2, rows*n)
	s := operands[T](r, 1, count)[0]
	index := make([]int64, 2*count)
	for i := range index {
		index[i] = int64(r.IntN(rows))
	}
	from := r.IntN(n)
	side, to := r.IntN(2), from+r.IntN(n-from+1)
	want := append([]T(nil), v[0]...)
	addRowsSlowly(want, v[1], s, index, side, n, from, to)
	AddScaledRows(v[0], v[1], s, index, side, n, from, to)
	for i := range want {
		if !same(v[0][i], want[i]) {
			t.Fatalf("%d entries, %d columns, %d to %d of them: element %d is %v, want %v", count, n, from, to, i, v[0][i], want[i])
		}
	}
}

func TestAddScaledRows(t *testing.T) {
	for seed := range uint64(400) {
		testAddScaledRows[float32](t, seed)
		testAddScaledRows[float64](t, seed)
	}
}

func FuzzAddScaledRows(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		testAddScaledRows[float32](t, seed)
		testAddScaledRows[float64](t, seed)
	})
}
