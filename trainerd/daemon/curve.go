package daemon

import "time"

// The least number of points of a timed curve, however short the run is.
const (
	summaryPoints = 100
	evalPoints    = 20
)

// curveBudget spreads points over the steps of a run.
type curveBudget struct {
	points int64
	begun  time.Time
	spent  time.Duration
}

// passed reports whether a point lies after one step, up to another one.
func (c curveBudget) passed(after, step, steps int64) bool {
	every := (steps + c.points - 1) / c.points
	return every > 0 && step/every > after/every
}

// spend counts the time that a point has taken.
func (c *curveBudget) spend(begun, end time.Time) { c.spent += end.Sub(begun) }

// cheap reports whether the points have taken a small part of the time so far: a
// training is not to become slower by a curve that nobody has asked for.
func (c *curveBudget) cheap(now time.Time) bool {
	const share, free = 10, 100 * time.Millisecond
	return c.spent <= now.Sub(c.begun)/share+free
}
