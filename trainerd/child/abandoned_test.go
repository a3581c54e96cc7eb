//go:build unix

package child

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// launched is a system whose program has a rank in a session of its own, with its outputs
// open, which outlives it until it is killed.
type launched struct {
	*simulated
	launcher *simProgram
	ended    time.Time // when the rank was, zero before
}

func (s *launched) SignalAll(_ string, _ []int, sig syscall.Signal) {
	if sig != system.SigKill {
		return
	}
	s.leave()
	s.launcher.out.Close()
	s.launcher.err.Close()
	s.ended = time.Now()
}

// TestRanksOfFailedLauncher has a launcher end before its ranks: those of one that has
// failed are ended before they train on without it, and before the next start has to wait
// for them; those of one that has succeeded, or is being stopped, may still be saving.
func TestRanksOfFailedLauncher(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int
		stop bool
		now  bool // the ranks are ended with the launcher
	}{
		{"it fails", 1, false, true},
		{"it was preempted", 75, false, true},
		{"it succeeds", 0, false, false},
		{"it is stopped", 143, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &launched{}
			var over time.Time
			sv, log := simulate(t, func(p *simProgram) int {
				if on.launcher != nil { // the next start
					return 0
				}
				on.launcher = p
				on.leave(7)
				p.holdOutputs()
				p.say("step=7 loss=1")
				p.sleep(10 * time.Second)
				over = time.Now()
				return tc.code
			})
			on.simulated = sv.System.(*simulated)
			sv.System = on
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.stop {
				time.AfterFunc(5*time.Second, cancel)
			}
			sv.Run(ctx)
			if now := !on.ended.IsZero() && on.ended.Sub(over) <= time.Second; now != tc.now {
				t.Errorf("%s: at once is %v, want %v: the launcher ended at %v, its rank at %v; log:\n%s", tc.name, now, tc.now, over, on.ended, log)
			}
		})
	}
}
