//go:build unix

package child

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestRoomForTheNext has a disk that is full with as many checkpoints as are to stay, so that the
// program fails in the save of the next one. After one such failure an old one goes before each
// save, and the program comes to its end. What is to stay after that save does, as does the newest.
func TestRoomForTheNext(t *testing.T) {
	size := int64(len(childtest.TensorsOf(100)))
	for name, tt := range map[string]struct {
		keep, fit int
		cause     Cause
		failures  int // -1 for many
		left      string
	}{
		"three of three": {3, 3, Completed, 1, "180 190"},
		"two of two":     {2, 2, Completed, 1, "190"},
		"more room":      {2, 3, Completed, 0, "180 190"},
		"one":            {1, 1, Stopped, -1, "100"},
		"too few fit":    {3, 2, Stopped, -1, "100 110"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures, dir := 0, ""
				there := func() []string { return checkpointsIn(t, dir) }
				sv, log := simulate(t, func(p *simProgram) int {
					step, err := strconv.Atoi(p.variable("TRAINERD_STEP"))
					if err != nil {
						step = 90
					}
					for step < 190 {
						if !p.sleep(10 * time.Second) {
							return 0
						}
						step += 10
						p.say("step=%d loss=1", step)
						if len(there()) >= tt.fit {
							failures++
							return 1
						}
						childtest.Write(t, filepath.Join(dir, fmt.Sprintf("ckpt-%d.safetensors", step)), childtest.TensorsOf(step))
					}
					p.sleep(10 * time.Second)
					return 0
				})
				dir = sv.Logdir
				sv.Checkpoints, sv.Retention = "ckpt-*.safetensors", []retention.Policy{retention.Last(tt.keep)}
				sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 { return int64(tt.fit-len(there())) * size }}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				exit, err := sv.Run(ctx)
				left := strings.NewReplacer("ckpt-", "", ".safetensors", "").Replace(strings.Join(there(), " "))
				if exit.Cause != tt.cause || left != tt.left || tt.failures >= 0 && failures != tt.failures {
					t.Errorf("Run = %+v, %v after %d failures; left are %s, want %s\n%s", exit, err, failures, left, tt.left, log)
				}
			})
		})
	}
}
