package prove

import "testing"

// TestStepOfSave knows when a program saved first that keeps its last checkpoints only.
func TestStepOfSave(t *testing.T) {
	for _, tc := range []struct {
		saved []int64
		n     int
		want  int64
	}{
		{[]int64{10, 20, 30, 40}, 1, 10},
		{[]int64{10, 20, 30, 40}, 2, 20},
		{[]int64{100, 110, 120}, 1, 10},
		{[]int64{100, 110, 120}, 2, 20},
		{[]int64{100, 110, 113}, 1, 3}, // the last one is of the end
		{[]int64{50, 1000}, 1, 50},
		{[]int64{50}, 1, 0},
		{nil, 2, 0},
	} {
		if got := stepOfSave(tc.saved, tc.n); got != tc.want {
			t.Errorf("%v: %d checkpoints by step %d, want %d", tc.saved, tc.n, got, tc.want)
		}
	}
}
