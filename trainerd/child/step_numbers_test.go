//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestCountsSaves has a program whose checkpoints are numbered by its saves, as those of
// tf.train.CheckpointManager are, while it reports steps: what it has done when it saved, and
// how well, is that of the steps, also for a later run.
func TestCountsSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for save := range 3 {
				for step := 40*save + 1; step <= 40*save+40; step++ {
					p.say("step=%d loss=%v", step, 1/float64(step))
				}
				p.sleep(time.Second)
				saveNow(t, p, fmt.Sprint("w-", save+1))
				p.sleep(10 * time.Second)
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.Checkpoints, sv.Retention = "w-*", []retention.Policy{retention.Last(3)}
		stop, end := begin(t, sv)
		pass(time.Minute)
		stop()
		if exit, err := end(); exit.Cause != Stopped || err != nil {
			t.Errorf("got %v, %v, though it has saved all", exit.Cause, err)
		}
		for _, name := range []string{"w-1", "w-3"} { // one alone shows it, too
			if err := os.Rename(filepath.Join(sv.Logdir, name), filepath.Join(sv.Logdir, "not-"+name)); err != nil {
				t.Fatal(err)
			}
		}
		known, err := found.Scan(sv.Logdir, sv.Checkpoints)
		if err != nil || len(known) != 1 {
			t.Fatalf("got %v, %v", known, err)
		}
		for _, c := range known {
			records, bad := manifest.Records(sv.Logdir)
			i := slices.IndexFunc(records, func(r *manifest.Record) bool { return r.Step == c.Step })
			if bad != nil || i < 0 || c.Reached() != 40*c.Step || float64(records[i].Metrics["loss"]) != 1/float64(40*c.Step) {
				t.Errorf("save %d is of step %d; records %+v, %v", c.Step, c.Reached(), records, bad)
			}
		}
	})
}

// TestTrustsNumberOfSave has checkpoints whose numbers count saves, or epochs: a finite loss has
// come after them once it is of a later step than was reported when they were found.
func TestTrustsNumberOfSave(t *testing.T) {
	for _, tc := range []struct {
		name     string
		step     int64
		reported int64
		given    string
		want     bool
	}{
		{"w-3", 3, 29, "", true}, {"w-3", 3, 30, "", false}, {"w-3", 3, 30, "w-3", true}, {"w-30", 30, 30, "", true},
		{"epoch_3", 3, 30, "", false}, {"epoch_3", 3, 29, "", true}, {"epoch_30", 30, 30, "", true}, {"w-31", 31, 30, "", false},
	} {
		b := &rewinds{good: 30, given: tc.given}
		c := foundAt(t, tc.name, found.Moment{Step: tc.reported})
		if c.Path = tc.name; c.Step != tc.step {
			t.Fatalf("%s has the step %d", tc.name, c.Step)
		}
		if got := b.trusts(&c); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// TestTurnsAreSaidOnce has a program whose checkpoints take turns under two names: the log says so once, that of a later
// run before its first start. It says nothing of numbers that grow.
func TestTurnsAreSaidOnce(t *testing.T) {
	const said = "uses the numbers in the names of its checkpoints again"
	for turns, want := range map[int]int{2: 1, 100: 0} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				for step := 1; step <= 50 && p.sleep(time.Second); step++ {
					p.say("step=%d loss=1", step)
					if step%10 == 0 {
						p.save(t, fmt.Sprint("ckpt-", step/10%turns))
					}
				}
				return 0
			})
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(log.String(), said); n != want {
				t.Errorf("%d names: the log says it %d times:\n%s", turns, n, log)
			}
			later := newScreen()
			sv.Log = logTo(later)
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if before, _, _ := strings.Cut(later.String(), "msg=started"); strings.Count(before, said) != want {
				t.Errorf("%d names: the log of a later run:\n%s", turns, later)
			}
		})
	}
}

// TestEpochIsKnownByTheFirstReport has a checkpoint of an epoch that was there before trainerd: the first step that the
// program reports when it continues from it says how many steps it has.
func TestEpochIsKnownByTheFirstReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reached []int64
		sv, log := simulate(t, func(p *simProgram) int {
			p.say("step=3001 loss=1")
			if p.variable("TRAINERD_ATTEMPT") == "1" {
				return 1
			}
			return 0
		})
		sv.Lines = func(step int64) LineReader {
			reached = append(reached, step)
			return new(letters)
		}
		childtest.Write(t, filepath.Join(sv.Logdir, "epoch_3"), "weights")
		sv.Checkpoints = "epoch_*"
		if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(reached, []int64{0, 3000}) {
			t.Errorf("Run = %v; lines are read from steps %d, want 0 and then 3000\n%s", err, reached, log)
		}
	})
}
