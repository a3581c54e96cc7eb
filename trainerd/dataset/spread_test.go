package dataset

import (
	"math"
	"testing"
)

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		all               []float64
		median, deviation float64
	}{
		{[]float64{3, 1, 2, 1e9, 4}, 3, 1.4826},
		{[]float64{0, 0, 0, 0, 10}, 0, 1.2533 * 2},
		{[]float64{1, 2, 3, 4}, 2.5, 1.4826},
		{[]float64{7, 7}, 7, 1},
		{nil, 0, 1},
	} {
		if s := spreadOf(c.all); s.Median != c.median || math.Abs(s.Deviation-c.deviation) > 1e-9 {
			t.Errorf("%v: %+v, want %v and %v", c.all, s, c.median, c.deviation)
		}
	}
}
