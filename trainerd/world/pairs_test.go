//go:build unix

package world

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// pairUp gives every second life another event at the same time, where the two go
// together: the defects that are left are where two things meet.
func (c *choices) pairUp(rnd *rand.Rand, events []*event) {
	for i := range c.lives {
		if rnd.IntN(2) == 0 {
			c.lives[i].event = together(c.lives[i].event, events[rnd.IntN(len(events))])
		}
	}
}

// alone are events whose rules hold without most others only: what somebody removes is
// neither kept nor read, and where a machine fails amid that somebody has to look.
var alone = map[string][]string{
	"logdir-removed":     {"kill-task", "power-cut-of-the-chief", "keep", "rate", "lock-removed", "second-run", "second-chief", "disk-error-at-stop", "kill", "power-cut", "damaged-newest"},
	"disk-error-at-stop": {"sigterm", "stop"},
	"NaN":                {"stop", "sigterm"}, // its last checkpoint has the NaN
	"NaN, reported late": {"stop", "sigterm"},
	// It has a pause of its own, and saves another rate in between, which the next life has if this one ends there.
	"rate":         {"pause", "kill", "power-cut", "damaged-newest", "disk-error", "disk-full-once", "disk-full", "short-write", "stop", "sigterm", "crash", "lost-session", "NaN"},
	"lock-removed": {"second-run"},                          // which may have the lock before the first run sees it
	"second-chief": {"kill-task", "power-cut-of-the-chief"}, // so may this one between two processes of the chief
}

// together returns an event that is two at once, or the first where they cannot be.
func together(a, b *event) *event {
	switch {
	case a.name == b.name, a.disturbsDisk() && b.disturbsDisk(), slices.Contains(alone[a.name], b.name), slices.Contains(alone[b.name], a.name):
		return a
	case a.single, b.single, a.program != nil && b.program != nil, a.during != nil && b.during != nil:
		return a
	}
	if b.disturbsDisk() {
		a, b = b, a
	}
	both := *a
	both.name = a.name + "+" + b.name
	both.rewinds, both.fails = max(a.rewinds, b.rewinds), a.fails || b.fails
	if both.during == nil {
		both.during = b.during
	}
	if both.program == nil {
		both.program = b.program
	}
	both.ask = atOnce(a.ask, b.ask)
	both.askChild = atOnce(a.askChild, b.askChild)
	if a.deed != nil && b.deed != nil {
		both.deed = inTurn(a.deed, b.deed)
	}
	return &both
}

// inTurn has two things happen to a cluster, which both last for the same time.
func inTurn(deeds ...func(*clusterHistory, context.Context, *rand.Rand) (undo, error)) func(*clusterHistory, context.Context, *rand.Rand) (undo, error) {
	return func(h *clusterHistory, ctx context.Context, rnd *rand.Rand) (undo, error) {
		var ends []undo
		for _, deed := range deeds {
			end, err := deed(h, ctx, rnd)
			if err != nil {
				return nil, err
			}
			if end != nil {
				ends = append(ends, end)
			}
		}
		return func() error {
			for _, end := range ends {
				if err := end(); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
}

// disturbsDisk reports whether an event is one of the disk, or the end of the process
// that writes to it.
func (e *event) disturbsDisk() bool {
	return e.disk != nil || e.killAt != nil || e.after != nil || e.afterChild != nil || e.name == "disk-error-at-stop"
}

// is reports whether an event is the one of a name, perhaps with another.
func (e *event) is(name string) bool { return slices.Contains(strings.Split(e.name, "+"), name) }

// atOnce asks for two things at the same time.
func atOnce[L any](a, b func(L, context.Context) error) func(L, context.Context) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(l L, ctx context.Context) error {
		var one, other error
		var asking sync.WaitGroup
		asking.Go(func() { one = a(l, ctx) })
		asking.Go(func() { other = b(l, ctx) })
		asking.Wait()
		return errors.Join(one, other)
	}
}
