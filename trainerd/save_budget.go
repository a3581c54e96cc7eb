package trainerd

import "time"

// SaveBudget limits the time spent saving and the time that a crash may cost. If it cannot meet
// both limits, the second wins: a save is made. But before a timed save the training gets at least
// as much time for its steps as they had to wait for the last save.
type SaveBudget struct {
	// MaxShare is the largest share of the time that may be spent writing
	// checkpoints, such as 0.05 for a twentieth. Zero means no limit.
	MaxShare float64
	// MaxRisk is the most working time that a crash may lose: from the state in
	// the current checkpoint until the next one becomes current. Zero means no
	// limit. It applies even if SaveModelEvery is off. If saves take too long for
	// it, the log says so once.
	MaxRisk time.Duration
}

// Pause returns the time between the starts of two saves: every, if that is
// positive, made longer or shorter by the limits. took is the duration of a
// save. Zero means that no save is required.
func (b SaveBudget) Pause(every, took time.Duration) time.Duration {
	pause := max(every, 0)
	if b.MaxShare > 0 && pause > 0 {
		pause = max(pause, b.spacing(took))
	}
	if b.MaxRisk > 0 {
		risk := max(b.MaxRisk-took, took)
		if pause == 0 || risk < pause {
			pause = risk
		}
	}
	return pause
}

// spacing returns the time between saves that MaxShare requires.
func (b SaveBudget) spacing(took time.Duration) time.Duration {
	if b.MaxShare <= 0 {
		return 0
	}
	return time.Duration(min(float64(took)/b.MaxShare, 1<<62))
}

// Allows reports whether a save may begin now, given how long ago the previous
// one began.
func (b SaveBudget) Allows(since, took time.Duration) bool {
	return since >= b.spacing(took) || b.MaxRisk > 0 && since >= b.MaxRisk-took
}

// LeastRisk returns the smallest MaxRisk that can be kept if a save takes took, and steps have to
// wait for held of that. It reports whether b's MaxRisk can be kept.
func (b SaveBudget) LeastRisk(took, held time.Duration) (least time.Duration, kept bool) {
	least = 2*took - held // from a save to the end of the next, which begins as soon as it may
	return least, b.MaxRisk <= 0 || b.MaxRisk >= least
}

// warnRisk reports, once, that a crash may lose more than it should.
func (c *checkpointer) warnRisk(took, held time.Duration) {
	least, kept := c.budget.LeastRisk(took, held)
	if kept || c.riskTold.Swap(true) {
		return
	}
	c.log.Warn("saves take so long that a crash may lose more work than the limit allows; raise the limit, save less, or use a faster disk",
		"limit", c.budget.MaxRisk, "at_risk", least, "save_took", took)
}
