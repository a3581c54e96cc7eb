package array_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestTopK compares the best of rows with those of a sort that keeps equals in their order.
// The longest row would take minutes if each element were inserted into a list.
func TestTopK(t *testing.T) {
	for _, v := range []struct{ rows, n, k, different int }{
		{1, 1, 1, 1}, {3, 50, 5, 10}, {3, 50, 16, 10}, {3, 50, 17, 10}, {2, 50, 50, 10}, {4, 300, 0, 9}, {2, 1000, 300, 1 << 20}, {70, 1000, 40, 100},
		{1, 1 << 18, 1 << 18, 1 << 20}, {1, 1 << 18, 1 << 15, 1 << 30},
	} {
		t.Run(fmt.Sprintf("%+v", v), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 5))
			x := make([]float32, v.rows*v.n)
			for i := range x {
				x[i] = float32(r.IntN(v.different))
			}
			b := kerneltest.New(t)
			top := b.Node("TopKV2", []string{kerneltest.Tensor(b, []int64{int64(v.rows), int64(v.n)}, x...), kerneltest.Scalar(b, int32(v.k))},
				"index_type", tfpb.DataType_DT_INT32)
			got := b.Run([]string{top, top + ":1"})
			values, places := kerneltest.Values[float32](t, got[0]), kerneltest.Values[int32](t, got[1])
			for row := range v.rows {
				want := sortedPlaces(x[row*v.n : (row+1)*v.n])[:v.k]
				if at := places[row*v.k : (row+1)*v.k]; !slices.Equal(at, want) {
					t.Fatalf("row %d: other places than a sort gives", row)
				}
				for i, place := range want {
					if values[row*v.k+i] != x[row*v.n+int(place)] {
						t.Fatalf("row %d: value %d is %v", row, i, values[row*v.k+i])
					}
				}
			}
		})
	}
}

func sortedPlaces(row []float32) []int32 {
	places := make([]int32, len(row))
	for i := range places {
		places[i] = int32(i)
	}
	slices.SortStableFunc(places, func(i, j int32) int {
		switch {
		case row[i] > row[j]:
			return -1
		case row[i] < row[j]:
			return 1
		}
		return 0
	})
	return places
}

// TestTopKOfNoNumbers finds the numbers of a row before what is none.
func TestTopKOfNoNumbers(t *testing.T) {
	x := make([]float32, 100)
	for i := range x {
		x[i] = float32(math.NaN())
		if i%4 == 3 {
			x[i] = float32(i)
		}
	}
	b := kerneltest.New(t)
	top := b.Node("TopKV2", []string{kerneltest.Vector(b, x...), kerneltest.Scalar(b, int32(25))}, "index_type", tfpb.DataType_DT_INT32)
	for i, v := range kerneltest.Values[float32](t, b.Run([]string{top})[0]) {
		if want := float32(99 - 4*i); v != want {
			t.Fatalf("element %d is %v, want %v", i, v, want)
		}
	}
}

// TestTopKOdd sorts numbers with two zeros, infinities and some that are none, and integers of
// both signs.
func TestTopKOdd(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	odd := []float32{0, float32(math.Copysign(0, -1)), -1, nan, inf, 3, -inf, 1e-45, -1e-45, -nan, math.MaxFloat32, 3, 0, -7, 2, 5, 9, -3, 4, 6}
	b := kerneltest.New(t)
	top := b.Node("TopKV2", []string{kerneltest.Vector(b, odd...), kerneltest.Scalar(b, int32(len(odd)))}, "index_type", tfpb.DataType_DT_INT32)
	want := []int32{4, 10, 16, 19, 15, 18, 5, 11, 14, 7, 0, 1, 12, 8, 2, 17, 13, 6, 3, 9}
	if got := kerneltest.Values[int32](t, b.Run([]string{top + ":1"})[0]); !slices.Equal(got, want) {
		t.Errorf("the places of %v are %v, want %v", odd, got, want)
	}
	ints := []int32{5, math.MinInt32, -1, 0, math.MaxInt32, -1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	g := kerneltest.New(t)
	top = g.Node("TopKV2", []string{kerneltest.Vector(g, ints...), kerneltest.Scalar(g, int32(len(ints)))}, "index_type", tfpb.DataType_DT_INT32)
	want = []int32{4, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 0, 3, 2, 5, 1}
	if got := kerneltest.Values[int32](t, g.Run([]string{top + ":1"})[0]); !slices.Equal(got, want) {
		t.Errorf("the places of %v are %v, want %v", ints, got, want)
	}
}
