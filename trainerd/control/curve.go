package control

import (
	"math"
	"slices"
	"strings"
)

// curvePoints is how many points a Curve keeps at most.
const curvePoints = 64

// Curve is a series of numbers of any length, stored as a few means over equal
// stretches of it. The zero Curve is empty.
type Curve struct {
	points []float64
	every  int     // numbers in a point, a power of two
	mean   float64 // of the stretch that is not full yet, as if the missing numbers were 0
	n      int     // numbers in it
}

// Add appends a number. Numbers that are not finite are left out.
func (c *Curve) Add(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	c.every = max(c.every, 1)
	c.mean += v / float64(c.every) // a sum could overflow
	if c.n++; c.n < c.every {
		return
	}
	c.points = append(c.points, c.mean)
	c.mean, c.n = 0, 0
	if len(c.points) < curvePoints {
		return
	}
	for i := range curvePoints / 2 {
		c.points[i] = c.points[2*i]/2 + c.points[2*i+1]/2
	}
	c.points = c.points[:curvePoints/2]
	c.every *= 2
}

// Points returns a copy of the points, in order.
func (c *Curve) Points() []float64 { return slices.Clone(c.points) }

// Sparkline draws points as a row of at most width blocks: the lowest point is
// the lowest block. Fewer than two points give "".
func Sparkline(points []float64, width int) string {
	if width = min(width, len(points)); width < 2 {
		return ""
	}
	columns := make([]float64, width)
	for i := range columns {
		part := points[i*len(points)/width : (i+1)*len(points)/width]
		for _, v := range part {
			columns[i] += v / float64(len(part)) // a sum could overflow
		}
	}
	low, high := slices.Min(columns), slices.Max(columns)
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range columns {
		level := 0
		if high > low {
			// Halves, since the difference of two numbers may be too large.
			level = int((v/2 - low/2) / (high/2 - low/2) * float64(len(blocks)-1))
		}
		b.WriteRune(blocks[level])
	}
	return b.String()
}
