package control

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCurve(t *testing.T) {
	var c Curve
	if c.Points() != nil || Sparkline(c.Points(), 10) != "" {
		t.Error("an empty curve has points")
	}
	for i := range 10 {
		c.Add(float64(i))
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			c.Add(v)
		}
	}
	if diff := cmp.Diff([]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, c.Points()); diff != "" {
		t.Error(diff)
	}
	for i := 10; i < 100000; i++ {
		c.Add(float64(i))
	}
	points := c.Points()
	if len(points) < curvePoints/2 || len(points) >= curvePoints {
		t.Fatalf("%d points", len(points))
	}
	step := points[1] - points[0]
	for i := 1; i < len(points); i++ {
		if points[i]-points[i-1] != step {
			t.Fatalf("points %v and %v, want a distance of %v", points[i-1], points[i], step)
		}
	}
	if want := (step - 1) / 2; points[0] != want {
		t.Errorf("begins with %v, want the mean %v", points[0], want)
	}
}

func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []float64
		width  int
		want   string
	}{
		{"none", nil, 8, ""},
		{"one", []float64{1}, 8, ""},
		{"rising", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{"falling", []float64{7, 0}, 8, "█▁"},
		{"flat", []float64{3, 3, 3}, 8, "▁▁▁"},
		{"narrow", []float64{0, 0, 7, 7, 0, 0}, 3, "▁█▁"},
		{"stretches of other lengths", []float64{1, 1, 1}, 2, "▁▁"},
		{"no room", []float64{1, 2}, 1, ""},
		{"huge", []float64{-math.MaxFloat64, math.MaxFloat64}, 8, "▁█"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Sparkline(c.points, c.width); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The means of numbers near the largest are finite: JSON has no others.
func TestCurveOfLargeNumbers(t *testing.T) {
	var c Curve
	for range 3 * curvePoints {
		c.Add(math.MaxFloat64)
	}
	for i, v := range c.Points() {
		if v != math.MaxFloat64 {
			t.Errorf("point %d is %v", i, v)
		}
	}
}
