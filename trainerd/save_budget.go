package trainerd

import "time"

// SaveBudget bounds the time that saving takes and the time that a crash may
// cost. Where both cannot be had, the second counts: a save is made.
type SaveBudget struct {
	// MaxShare is the largest part of the time in which a checkpoint may be
	// being written, as 0.05 for a twentieth. Zero means no bound.
	MaxShare float64
	// MaxRisk is the longest time whose work a crash may take away: from the
	// state that the current checkpoint has until the next one is the current one.
	// Zero means no bound. It holds also where SaveModelEvery is off.
	MaxRisk time.Duration
}

// Pause returns the time between the beginnings of two saves: at least every,
// if that is positive, and longer or shorter as the bounds ask. Took is what a
// save takes. Zero means that nothing asks for a save.
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

// spacing returns how far apart saves have to be for MaxShare.
func (b SaveBudget) spacing(took time.Duration) time.Duration {
	if b.MaxShare <= 0 {
		return 0
	}
	return time.Duration(min(float64(took)/b.MaxShare, 1<<62))
}

// Allows reports whether a save may begin now, when the previous one began so
// long ago.
func (b SaveBudget) Allows(since, took time.Duration) bool {
	return since >= b.spacing(took) || b.MaxRisk > 0 && since >= b.MaxRisk-took
}
