package tfevents

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestQuickClock asks in bursts and with pauses: a call after a pause gets the
// time there is.
func TestQuickClock(t *testing.T) {
	for _, pause := range []time.Duration{
		sharedTime + time.Microsecond, clockTrust - time.Microsecond, clockTrust, clockTrust + time.Microsecond, time.Hour,
	} {
		for _, burst := range []int{1, 2, minDense - 1, minDense, minDense + 1, minDense + sharedCalls, 10 * sharedCalls} {
			synctest.Test(t, func(t *testing.T) {
				var c quickClock
				for range 5 {
					for range burst {
						if got, want := c.now(), time.Now(); !got.Equal(want) {
							t.Fatalf("pause %v, burst %d: %v, want %v", pause, burst, got, want)
						}
					}
					time.Sleep(pause)
					synctest.Wait()
				}
			})
		}
	}
}

// TestQuickClockShares asks after a burst: as many calls as may get one time get it, and then
// there is a new one. A burst ends with calls that are further apart.
func TestQuickClockShares(t *testing.T) {
	for _, tc := range []struct {
		calls int // in the burst
		gap   time.Duration
		want  [4]bool // whether the next ones, each sharedCalls but for the ends, get the time before
	}{
		{minDense, denseGap, [4]bool{}},
		{minDense + 1, denseGap / 2, [4]bool{true, false, true, false}},
		{minDense + 1, 2 * denseGap, [4]bool{true, false, false, false}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var c quickClock
			last := time.Time{}
			for range tc.calls {
				last = c.now()
			}
			for i, n := range [4]int{sharedCalls, 1, sharedCalls, 1} {
				for k := range n {
					time.Sleep(tc.gap)
					now := c.now()
					if repeats := now.Equal(last); repeats != tc.want[i] || !repeats && !now.Equal(time.Now()) {
						t.Fatalf("%+v: call %d of part %d gets %v after %v", tc, k, i, now, last)
					}
					last = now
				}
			}
		})
	}
}

// TestQuickClockIsNear holds it against the true clock while no time stands
// still.
func TestQuickClockIsNear(t *testing.T) {
	var c quickClock
	last := time.Time{}
	for range 100_000 {
		before := time.Now()
		now := c.now()
		if now.Before(last) {
			t.Fatalf("%v follows %v", now, last)
		}
		if now.After(time.Now().Add(clockTrust)) || before.Sub(now) > time.Minute {
			t.Fatalf("%v, but it is %v", now, before)
		}
		last = now
	}
}

func BenchmarkQuickClock(b *testing.B) {
	var c quickClock
	for b.Loop() {
		c.now()
	}
}
