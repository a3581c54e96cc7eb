//go:build unix

package child

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// seesStarts is an observer that keeps the numbers of the starts.
type seesStarts struct {
	nobody
	seen []int
}

func (s *seesStarts) Started(attempt int, _ *Checkpoint) { s.seen = append(s.seen, attempt) }

// TestEndBetweenStarts has a run that is stopped, or loses its logdir, in the pause before a
// start: it ends at once, nobody is told of another start, and what it returns is how the last
// one has ended.
func TestEndBetweenStarts(t *testing.T) {
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(*simProgram) int { return 7 })
			starts := &seesStarts{}
			sv.Observer, sv.Restarts.Backoff = starts, time.Hour
			stop, end := begin(t, sv)
			pass(10 * time.Minute)
			if lost {
				childtest.Must(t, os.Rename(sv.Logdir, sv.Logdir+"2"))
			} else {
				stop()
			}
			begun := time.Now()
			exit, err := end()
			if exit.Cause != Stopped || exit.Code != 7 || exit.Attempt != 1 || is[*logdir.LostError](err) != lost || !lost && err != nil {
				t.Errorf("lost %v: Run = %+v, %v", lost, exit, err)
			}
			if took := time.Since(begun); took > 2*time.Second || !slices.Equal(starts.seen, []int{1}) {
				t.Errorf("lost %v: the run ends after %v; the observer saw the starts %v", lost, took, starts.seen)
			}
		})
	}
}
