//go:build unix

package child

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestHangingDiskIsNotSilent has a disk that hangs for a while, at any of the operations
// of a run that fails once and is stopped: the log says what is waited for, at the latest
// after half a minute, and the end is as without it.
func TestHangingDiskIsNotSilent(t *testing.T) {
	const hangs, silence = 100 * time.Second, 30 * time.Second
	run := func(at int) (ops int) {
		synctest.Test(t, func(t *testing.T) {
			starts := 0
			sv, _ := simulate(t, func(p *simProgram) int {
				starts++
				from, _ := strconv.Atoi(p.variable("TRAINERD_STEP"))
				for step := from + 1; step <= 10*starts; step++ {
					p.say("step=%d loss=1", step)
					if step%5 == 0 {
						childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-"+strconv.Itoa(step)), "weights")
					}
					if !p.sleep(time.Second) {
						break
					}
				}
				if starts == 2 {
					p.sleep(time.Hour)
				}
				return 2 - starts
			})
			var log sessiontest.Pauses
			sv.Log = slog.New(slog.NewTextHandler(&log, nil))
			var mu sync.Mutex
			picky(sv, func(string, string) bool {
				mu.Lock()
				ops++
				hung := ops == at
				mu.Unlock()
				if hung {
					time.Sleep(hangs)
				}
				return false
			})
			log.Write(nil)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := time.AfterFunc(40*time.Second, cancel)
			defer stopped.Stop()
			exit, err := sv.Run(ctx)
			if exit.Cause != Stopped || err != nil && !is[*SaveLostError](err) { // it may have been stopped anywhere
				t.Errorf("hung at operation %d: Run = %+v, %v", at, exit, err)
			}
			if got := log.Longest(); got > silence {
				t.Errorf("hung at operation %d: the log was silent for %v", at, got)
			}
		})
		return ops
	}
	all := run(0)
	for at := 1; at <= all; at += 1 + all/20 {
		run(at)
	}
}

// TestSlowLooksAreNoStall has checkpoints looked for once a minute, as on a disk that is slow to
// list: the log has nothing to wait for.
func TestSlowLooksAreNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		sv.ScanEvery, sv.SummariesEvery = time.Minute, -1
		if _, err := sv.Run(t.Context()); err != nil || strings.Contains(log.String(), "still waiting") {
			t.Errorf("Run = %v; log:\n%s", err, log)
		}
	})
}
