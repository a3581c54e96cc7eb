//go:build unix

package child

import (
	"context"
	"fmt"
	"os"
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

// TestCutByFullDisk has a program whose files show nothing of their end, on a disk that cuts the
// last one off, each time at the same size or at a little less than all: none of these is given to
// it, nor do they make older ones go. In the end it is started with all that the disk takes.
func TestCutByFullDisk(t *testing.T) {
	const size, block = 1000, 20
	for name, tt := range map[string]struct {
		room     int64
		keep     int
		careless bool // it does not notice that the last block is missing
	}{
		"half of one":        {3*size + size/2, 3, false},
		"nearly one":         {3*size + size - block, 3, false},
		"a block":            {3*size + block, 3, false},
		"from the second on": {size + size - block, 3, false},
		"the third":          {2*size + size/2, 3, false},
		"the fourth of four": {3*size + size/2, 4, false},
		"careless":           {2*size + size - block, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, dir, given := time.Now(), "", []string{}
				free := func() int64 {
					if time.Since(begun) > 30*time.Minute {
						return 1 << 40 // somebody has made room
					}
					return tt.room - checkpointBytes(t, dir)
				}
				sv, log := simulate(t, func(p *simProgram) int {
					step := 90
					if c := p.variable("TRAINERD_CHECKPOINT"); c != "" {
						b, err := os.ReadFile(c)
						if given = append(given, filepath.Base(c)); err != nil || len(b) != size {
							t.Errorf("the program was given %s of %d bytes, %v", c, len(b), err)
						}
						step, _ = strconv.Atoi(p.variable("TRAINERD_STEP"))
					}
					for step < 400 {
						if !p.sleep(10 * time.Second) {
							return 0
						}
						step += 10
						p.say("step=%d loss=1", step)
						n := min(max(free(), 0), size)
						childtest.Write(t, filepath.Join(dir, fmt.Sprintf("ckpt-%d.bin", step)), strings.Repeat("w", int(n)))
						if n < size && (!tt.careless || n < size-block) {
							return 1
						}
					}
					p.sleep(10 * time.Second)
					return 0
				})
				dir = sv.Logdir
				sv.Checkpoints, sv.Retention = "ckpt-*.bin", []retention.Policy{retention.Last(tt.keep)}
				sv.FS = smallDisk{atomicfile.OrOS(nil), free}
				if exit, err := sv.Run(t.Context()); err != nil || exit.Cause != Completed || len(given) == 0 {
					t.Errorf("Run = %+v, %v; given were %v\n%s", exit, err, given, log)
				}
			})
		})
	}
}

// checkpointBytes returns how many bytes the checkpoints of a logdir have. Those that were moved
// aside are not there any more: somebody looks after the disk.
func checkpointBytes(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	for _, name := range checkpointsIn(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}
