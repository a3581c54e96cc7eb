package trial

import (
	"context"
	"maps"
	"time"
)

// A program that is ended while it saves over its only checkpoint leaves nothing to
// continue from, and that checkpoint may be older than the trial. Many report just before
// they save.

const (
	// betweenLooks is how long the checkpoints must be unchanged, and maxLooks how often
	// that is awaited: a program may save all the time.
	betweenLooks = 500 * time.Millisecond
	maxLooks     = 20
)

// awaitQuiet waits until the program is not writing a checkpoint.
func (o Options) awaitQuiet(ctx context.Context, before snapshot) {
	tick := time.NewTicker(betweenLooks)
	defer tick.Stop()
	last := o.statesSince(before)
	for range maxLooks {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := o.statesSince(before)
		if maps.Equal(last, now) && !now.hasEmpty() {
			return
		}
		last = now
	}
}

// statesSince returns the files of checkpoints that have come or changed since a look.
func (o Options) statesSince(before snapshot) snapshot {
	roots, states := o.roots(), snapshot{}
	now := roots.look()
	changed := now.since(before)
	for _, name := range changed {
		if _, base := roots.checkpointOf(name); base != "" || isSequel(name, changed) {
			states[name] = now[name]
		}
	}
	return states
}

// hasEmpty reports whether a file has nothing in it yet.
func (s snapshot) hasEmpty() bool {
	for _, f := range s {
		if f.size == 0 {
			return true
		}
	}
	return false
}
