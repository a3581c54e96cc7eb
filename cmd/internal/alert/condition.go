package alert

import (
	"iter"
	"math"
)

// valueIs holds at a point whose value passes a test.
type valueIs struct{ test func(float64) bool }

func isNaN(x float64) bool       { return math.IsNaN(x) }
func isInf(x float64) bool       { return math.IsInf(x, 0) }
func isNotFinite(x float64) bool { return isNaN(x) || isInf(x) }

var comparisons = map[string]func(n float64) func(float64) bool{
	"<":  func(n float64) func(float64) bool { return func(x float64) bool { return x < n } },
	"<=": func(n float64) func(float64) bool { return func(x float64) bool { return x <= n } },
	">":  func(n float64) func(float64) bool { return func(x float64) bool { return x > n } },
	">=": func(n float64) func(float64) bool { return func(x float64) bool { return x >= n } },
}

func (c valueIs) find(points iter.Seq[Sample]) (Sample, bool) {
	for p := range points {
		if c.test(p.Value) {
			return p, true
		}
	}
	return Sample{}, false
}

// span is how far a condition looks back: in steps, or in seconds if there are none.
type span struct {
	steps   int64
	seconds float64
}

// stall holds where neither a new highest (if rising) nor a new lowest value (if
// falling) has come for a span. Values that are not finite count for neither.
type stall struct {
	rising, falling bool
	span            span
}

// longestGap bounds what the time between two points counts: a training that was
// stopped for hours and resumed has not stalled. It is the share of the span.
const longestGap = 0.5

func (c stall) find(points iter.Seq[Sample]) (Sample, bool) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	var best, last Sample
	begun, waited := false, 0.0
	for p := range points {
		if begun {
			waited += min(max(p.WallTime-last.WallTime, 0), c.span.seconds*longestGap)
		}
		last = p
		if isNotFinite(p.Value) {
			continue
		}
		better := !begun || c.rising && p.Value > highest || c.falling && p.Value < lowest
		lowest, highest, begun = min(lowest, p.Value), max(highest, p.Value), true
		if better {
			best, waited = p, 0
			continue
		}
		if c.span.steps > 0 && p.Step-best.Step >= c.span.steps || c.span.steps == 0 && waited >= c.span.seconds {
			return p, true
		}
	}
	return Sample{}, false
}

// change holds where the value is so much above (sign 1) or below (-1) what it was a
// span before: the last point that is at least that old.
type change struct {
	sign     float64
	by       float64
	relative bool // by is a share of the old value
	over     span
}

func (c change) find(points iter.Seq[Sample]) (Sample, bool) {
	var window []Sample // those that may be the old one of a later point
	for p := range points {
		if isNotFinite(p.Value) {
			continue
		}
		window = append(window, p)
		for len(window) > 1 && c.isOld(window[1], p) {
			window = window[1:]
		}
		old := window[0]
		if !c.isOld(old, p) {
			continue
		}
		by := c.by
		if c.relative {
			by *= math.Abs(old.Value)
		}
		if by > 0 && c.sign*(p.Value-old.Value) >= by {
			return p, true
		}
	}
	return Sample{}, false
}

// isOld reports whether a point is as far before another as the condition asks.
func (c change) isOld(old, p Sample) bool {
	if c.over.steps > 0 {
		return p.Step-old.Step >= c.over.steps
	}
	return p.WallTime-old.WallTime >= c.over.seconds
}
