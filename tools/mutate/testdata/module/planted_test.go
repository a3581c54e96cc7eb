package planted

import "testing"

func TestLimit(t *testing.T) {
	for n, want := range map[int]int{1: 1, 5: 5, 12: 10, 100: 10} {
		if got, err := limit(n); got != want || err != nil {
			t.Errorf("limit(%d) = %d, %v", n, got, err)
		}
	}
	limit(-1)
}

func TestOthers(t *testing.T) {
	for i := range 4 {
		a, b := i&1 == 1, i&2 == 2
		if both(a, b) != (i == 3) {
			t.Error(a, b)
		}
	}
	for _, tt := range [][3]int{{2, 3, 6}, {0, 3, 0}, {3, 0, 0}, {1, 1, 1}} {
		if got := area(tt[0], tt[1]); got != tt[2] {
			t.Error(tt, got)
		}
	}
	if spread(0, 0) != 0 {
		t.Error("spread")
	}
	counts([]string{"a"})
	if !nested(1, 2, 3) || nested(3, 1, 1) {
		t.Error("nested")
	}
}
