package hook

import (
	"time"
)

// Trigger decides when a periodic action is due, by steps or by time. The first step is always due,
// and no step is due twice. If it counts steps, a step before the last due one is due, too: the
// step was set back, or the training continues from an earlier checkpoint.
type Trigger struct {
	Steps int64         // zero or less: not by steps
	Every time.Duration // zero or less: not by time

	fired bool
	step  int64
	at    time.Time
}

// Due reports whether the action is due at a step, and if so starts waiting
// again. elapsed is the time since it was last due, zero the first time.
func (t *Trigger) Due(step int64) (elapsed time.Duration, due bool) {
	if !t.isDue(step) {
		return 0, false
	}
	now := time.Now()
	if t.fired {
		elapsed = now.Sub(t.at)
	}
	t.fired, t.step, t.at = true, step, now
	return elapsed, true
}

// isDue reports whether it is time at a step.
func (t *Trigger) isDue(step int64) bool {
	bySteps := t.Steps > 0 && (step >= t.step+t.Steps || step < t.step)
	byTime := t.Every > 0 && step != t.step && time.Since(t.at) >= t.Every
	return !t.fired || bySteps || byTime
}
