//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// cannotLoad simulates a program that fails with the checkpoint of step 20 that is there, next to that of step 10,
// and makes two steps in each other start, saves, and fails after some time. given are the steps that it is given.
func cannotLoad(t *testing.T, lasts time.Duration) (sv *Supervisor, log *screen, given func() string) {
	t.Helper()
	const bad = 99
	var steps []string
	sv, log = simulate(t, func(p *simProgram) int {
		from := p.variable("TRAINERD_STEP")
		steps = append(steps, from)
		if from != "" && childtest.Read(t, p.variable("TRAINERD_CHECKPOINT")) == childtest.TensorsOf(bad) {
			return 1
		}
		if len(steps) == 10 {
			return 0
		}
		n, _ := strconv.Atoi(from)
		for step := n + 1; step <= n+2; step++ {
			p.say("step=%d loss=%v", step, 1+float64(step)/100)
			if !p.sleep(10 * time.Second) {
				return 0
			}
		}
		childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", n+2)), childtest.TensorsOf(n+2))
		p.sleep(lasts)
		return 1
	})
	childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10.safetensors"), childtest.TensorsOf(10))
	time.Sleep(time.Minute)
	childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-20.safetensors"), childtest.TensorsOf(bad))
	return sv, log, func() string { return strings.Join(steps, " ") }
}

// TestPassedOver has a program that fails with its newest checkpoint and continues from the one before: what it saves
// then is what it is given next, whatever the policies say of steps before the newest, until it has come past that.
func TestPassedOver(t *testing.T) {
	for name, keep := range map[string][]retention.Policy{
		"all":         nil,
		"two":         {retention.Last(2)},
		"one of each": {retention.Last(1), retention.Steps{10}},
		"one an hour": {retention.Last(1), retention.Every(time.Hour)},
		"the best":    {retention.Last(1), retention.Best{Metric: "loss"}, retention.Steps{10}},
	} {
		for _, lasts := range []time.Duration{0, 10 * time.Second} {
			for rewinds := range 2 {
				synctest.Test(t, func(t *testing.T) {
					sv, log, given := cannotLoad(t, lasts)
					sv.Retention, sv.MaxRewinds = keep, rewinds
					_, err := sv.Run(t.Context())
					if want := "20 20 10 12 14 16 18 20 22 24"; err != nil || given() != want {
						t.Errorf("%s, %v: Run = %v, given %s, want %s\n%s", name, lasts, err, given(), want, log)
					}
				})
			}
		}
	}
}

// TestPassedOverInAnotherRun has a run that ends after the program has saved something of an earlier step than the
// checkpoint that it has failed with. The next run begins with that again, and then with what was saved last.
func TestPassedOverInAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log, given := cannotLoad(t, time.Hour)
		sv.Retention = []retention.Policy{retention.Last(1), retention.Steps{10}}
		for range 2 {
			stop, end := begin(t, sv)
			pass(10 * time.Minute)
			stop()
			end()
		}
		if want := "20 20 10 20 20 12"; given() != want {
			t.Errorf("given %s, want %s\n%s", given(), want, log)
		}
	})
}

// TestPassedOverOnFullDisk has a program that continues from the one before its newest checkpoint and fails on a full
// disk: no room is made at the cost of that.
func TestPassedOverOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 0
		sv, log, given := cannotLoad(t, 0)
		sv.Retention = []retention.Policy{retention.Last(2)}
		isFull := func() bool { return failures > 0 && failures < 5 }
		on := sv.System.(*simulated)
		program := on.program
		on.program = func(p *simProgram) int {
			if p.variable("TRAINERD_STEP") != "20" && failures < 5 {
				failures++
				p.say("step=11 loss=1")
				return 1
			}
			return program(p)
		}
		sv.FS = smallDisk{atomicfile.OrOS(nil), func() int64 {
			if isFull() {
				return 10
			}
			return 1 << 40
		}}
		_, err := sv.Run(t.Context())
		if want := "20 20 10 12 14 16 18 20 22 24"; err != nil || given() != want {
			t.Errorf("Run = %v, given %s, want %s\n%s", err, given(), want, log)
		}
	})
}

// TestStopWhilePassedOver stops a program that continues from the one before its newest checkpoint and has saved nothing
// since: its steps are lost, and that is said.
func TestStopWhilePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log, given := cannotLoad(t, 0)
		stop, end := begin(t, sv)
		pass(18 * time.Second) // 3 are pauses
		stop()
		_, err := end()
		if given() != "20 20 10" || err == nil || !strings.Contains(err.Error(), "stopped at step 12 without saving; it continues from step 10") {
			t.Errorf("Run = %v\n%s", err, log)
		}
	})
}

// TestBeginsAgainWhilePassedOver has a program that begins again within the start in which it continues from the one
// before its newest checkpoint.
func TestBeginsAgainWhilePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log, given := cannotLoad(t, 0)
		on := sv.System.(*simulated)
		program := on.program
		on.program = func(p *simProgram) int {
			if p.variable("TRAINERD_STEP") != "10" {
				return program(p)
			}
			for _, step := range []int{11, 12, 13, 14, 15, 11, 12, 13, 14, 15, 16} {
				p.say("step=%d loss=%v", step, 1/float64(step))
				p.sleep(10 * time.Second)
			}
			return 0
		}
		if _, err := sv.Run(t.Context()); err != nil || given() != "20 20" {
			t.Fatalf("Run = %v, given %s\n%s", err, given(), log)
		}
		if got := marks(t, sv.Logdir); !slices.Equal(got, []string{"START@11", "START@11", "STOP@20"}) {
			t.Errorf("marks %v\n%s", got, log)
		}
	})
}

// TestFailsOnceWithEach has a program that fails with its newest checkpoint, which is then found damaged, and once with
// the one before: that is not passed over for it.
func TestFailsOnceWithEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			switch given = append(given, p.variable("TRAINERD_STEP")); len(given) {
			case 1:
				childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-20.safetensors"), "")
				return 1
			case 2:
				return 1
			}
			return 0
		})
		for _, step := range []int{5, 10, 20} {
			childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", step)), childtest.TensorsOf(step))
		}
		if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(given, []string{"20", "10", "10"}) {
			t.Errorf("Run = %v, given %q\n%s", err, given, log)
		}
	})
}

// TestPassedOverOnNodes has a job of two nodes that fails with its newest checkpoint on one of them, while the other
// waits for it: both continue from the one before, and then from what was saved last.
func TestPassedOverOnNodes(t *testing.T) {
	for failing, name := range []string{"chief", "worker"} {
		synctest.Test(t, func(t *testing.T) {
			chief, log, given := cannotLoad(t, 10*time.Second)
			chief.Retention = []retention.Policy{retention.Last(1), retention.Steps{10}}
			on := chief.System.(*simulated)
			program := on.program
			starts := 0
			on.program = func(p *simProgram) int {
				if starts++; starts < 3 && failing == 1 {
					p.sleep(time.Hour)
				}
				p.sleep(5 * time.Second)
				return program(p)
			}
			var worker []string
			other, otherLog := simulate(t, func(p *simProgram) int {
				if worker = append(worker, p.variable("TRAINERD_STEP")); len(worker) < 3 && failing == 1 {
					return 1
				}
				if len(worker) < 10 {
					p.sleep(time.Hour)
				}
				return 0
			})
			other.Logdir = chief.Logdir
			chief.Nodes, other.Nodes, other.Node = 2, 2, 1
			_, endChief := begin(t, chief)
			pass(time.Second)
			_, endWorker := begin(t, other)
			_, err := endChief()
			_, errWorker := endWorker()
			want := "20 20 10 12 14 16 18 20 22 24"
			if err != nil || errWorker != nil || given() != want || strings.Join(worker, " ") != want {
				t.Errorf("the %s fails: Run = %v, given %s; worker %v, %v; want %s\n%s\n%s", name, err, given(), errWorker, worker, want, log, otherLog)
			}
		})
	}
}
