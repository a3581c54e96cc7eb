package tfevents

import (
	"sync/atomic"
	"time"
)

const (
	// clockTrust is how long a quickClock does not read the system's wall clock: within that time it
	// notices that the clock was set, or that the machine has slept.
	clockTrust = 10 * time.Millisecond

	// minDense calls in a row, each less than denseGap after the one before, are a burst. In a burst
	// sharedCalls calls get the same time, unless more than sharedTime passes.
	denseGap    = time.Microsecond
	minDense    = 64
	sharedCalls = 256
	sharedTime  = time.Millisecond
)

// quickClock returns the time as time.Now does, but frequent calls cost a fraction: time.Now reads
// two clocks of the system, which takes as long as encoding an event. Within clockTrust one of them
// is enough, and in a burst some calls get the time of the one before. Calls that are further apart
// than sharedTime always get a time of their own. It is not safe for concurrent use.
type quickClock struct {
	base  time.Time // the last that time.Now returned
	last  time.Time // the last that was returned
	dense int       // calls in a row that came close after the one before
	calls int       // that may still get last

	shared atomic.Bool // calls may get last; timer ends it
	timer  *time.Timer
}

func (c *quickClock) now() time.Time {
	if c.calls > 0 && c.shared.Load() {
		c.calls--
		return c.last
	}
	return c.look()
}

// look is now for calls that have to read the clock.
func (c *quickClock) look() time.Time {
	before := c.last
	c.last = c.read()
	if c.last.Sub(before) >= denseGap*time.Duration(1+c.repeats()) {
		c.dense, c.calls = 0, 0
		return c.last
	}
	if c.dense++; c.dense >= minDense {
		c.share()
	}
	return c.last
}

// repeats returns how many calls have got the last time again.
func (c *quickClock) repeats() int {
	if c.dense < minDense {
		return 0
	}
	return sharedCalls - c.calls
}

// read reads the clock.
func (c *quickClock) read() time.Time {
	if elapsed := time.Since(c.base); elapsed < clockTrust {
		return c.base.Add(elapsed)
	}
	c.base = time.Now()
	return c.base
}

// share lets the next calls get the same time.
func (c *quickClock) share() {
	c.calls = sharedCalls
	c.shared.Store(true)
	if c.timer == nil {
		c.timer = time.AfterFunc(sharedTime, func() { c.shared.Store(false) })
		return
	}
	c.timer.Reset(sharedTime)
}
