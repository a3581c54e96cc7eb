//go:build unix

package child

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	runreport "github.com/trainerd/trainerd/trainerd/report"
)

// TestRunReport has a program that fails once and leaves a damaged checkpoint, and
// one that fails forever.
func TestRunReport(t *testing.T) {
	sv, out := supervise(t, "steps 1 10;write ckpt-10;steps 11 14;tear ckpt-14.safetensors;exit 1|resume 20;write ckpt-20")
	sv.Retention = []retention.Policy{retention.Last(3), retention.Best{Metric: "loss"}}
	read := func() runreport.Run { return readReport(t, sv.Logdir) }
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v; output %q", err, out)
	}
	r := read()
	if r.Outcome != runreport.Completed || r.FirstStep != 0 || r.LastStep != 20 || r.Steps != 24 || r.Restarts.Count != 1 || r.Restarts.StepsAgain != 4 || r.Saves.Count != 2 {
		t.Errorf("report %+v", r)
	}
	if !slices.Equal(r.PassedOver, []string{"ckpt-14.safetensors"}) {
		t.Errorf("skipped %v", r.PassedOver)
	}
	if len(r.Checkpoints) != 2 || r.Checkpoints[1].Step != 20 || r.Checkpoints[1].Metrics["loss"] != 0.05 || len(r.Checkpoints[1].Why) != 2 {
		t.Errorf("checkpoints %+v", r.Checkpoints)
	}
	if s := sv.Stats(); s.Restarts != 1 || s.FailedSaves != 1 {
		t.Errorf("Stats = %+v", s)
	}
	sv.Env, sv.Restarts.Max = []string{"CHILD_SCRIPT=exit 1"}, -1
	if _, err := sv.Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if r := read(); r.Outcome != runreport.Failed || r.Error == "" || r.Restored != "ckpt-20" {
		t.Errorf("report of a failure %+v", r)
	}
}

// TestRunReportOfASilentProgram has a program that reports nothing: what it has saved
// says how far it came.
func TestRunReportOfASilentProgram(t *testing.T) {
	sv, _ := supervise(t, "write ckpt-10;exit 1|write ckpt-140")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := readReport(t, sv.Logdir); r.LastStep != 140 {
		t.Errorf("it came to step %d, want 140", r.LastStep)
	}
}

// TestRunReportAfterRewind has a program that ends at a lower step than it had come to before
// its loss was NaN: the model is that of the lower one.
func TestRunReportAfterRewind(t *testing.T) {
	for last, want := range map[string]struct{ last, steps, again int64 }{
		"resume 15": {15, 26, 5}, "": {10, 21, 0}, // without a report, it is the model that it was given
	} {
		sv, out := supervise(t, "steps 1 10;write ckpt-10;steps 11 20;say step=21 loss=nan;sleep|"+last)
		sv.MaxRewinds = 1
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatalf("%v; output %q", err, out)
		}
		if r := readReport(t, sv.Logdir); r.LastStep != want.last || r.Steps != want.steps || r.Restarts.StepsAgain != want.again || r.Restarts.Rewinds != 1 {
			t.Errorf("%q: the report has last step %d, %d steps, %d again, %d rewinds; want %v", last, r.LastStep, r.Steps, r.Restarts.StepsAgain, r.Restarts.Rewinds, want)
		}
	}
}

// readReport reads the report of a run.
func readReport(t *testing.T, logdir string) (r runreport.Run) {
	t.Helper()
	childtest.Must(t, json.Unmarshal([]byte(childtest.Read(t, filepath.Join(logdir, runreport.JSONName))), &r))
	return r
}

// TestRunReportTimes has a run that fails once: what it has waited between its starts is no
// time of training, also where a stop ends the waiting.
func TestRunReportTimes(t *testing.T) {
	for _, stopped := range []time.Duration{0, 12 * time.Second, 40 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			begun, failed, again := time.Now(), time.Time{}, time.Time{}
			sv, _ := simulate(t, func(p *simProgram) int {
				if p.variable("TRAINERD_ATTEMPT") == "1" {
					p.sleep(10 * time.Second)
					failed = time.Now()
					return 1
				}
				again = time.Now()
				p.say("step=1")
				p.say("step=80")
				p.sleep(30 * time.Second)
				return 0
			})
			sv.Restarts = Restarts{Backoff: 20 * time.Second}
			stop, end := begin(t, sv)
			if stopped > 0 {
				time.AfterFunc(stopped, stop)
			}
			exit, err := end()
			total := time.Since(begun)
			if again.IsZero() {
				again = time.Now()
			}
			r, lost := readReport(t, sv.Logdir), again.Sub(failed)
			training := total - lost - time.Duration(r.Time.Stopping)
			if time.Duration(r.Time.Total) != total || time.Duration(r.Restarts.Lost) != lost || time.Duration(r.Time.Training) != training {
				t.Errorf("stopped after %v: total %v, lost %v, training %v; want %v, %v", stopped, r.Time.Total, r.Restarts.Lost, r.Time.Training, total, lost)
			}
			if want := float64(r.Steps) / training.Seconds(); r.StepsPerSecond != want || r.Host != hostname() {
				t.Errorf("%v steps a second on %s, want %v", r.StepsPerSecond, r.Host, want)
			}
			outcome := map[bool]string{false: runreport.Completed, true: runreport.Stopped}[stopped > 0]
			if r.Outcome != outcome || (exit.Cause == Stopped) != (stopped > 0) || (r.Error != "") != (err != nil) {
				t.Errorf("Run = %+v, %v; the report says %s, %q", exit, err, r.Outcome, r.Error)
			}
		})
	}
}

// TestKnownAtTheStart has checkpoints of an earlier run, one of them damaged: that is logged
// and counted, and a silent run ends at the step of the other.
func TestKnownAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(*simProgram) int { return 0 })
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-100"), "weights")
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-140.safetensors"), "no weights")
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := marks(t, sv.Logdir); !slices.Equal(got, []string{"STOP@100"}) {
			t.Errorf("marks %v", got)
		}
		if r := readReport(t, sv.Logdir); !slices.Equal(r.PassedOver, []string{"ckpt-140.safetensors"}) || r.LastStep != 100 || r.FirstStep != 100 || r.Steps != 0 {
			t.Errorf("report %+v", r)
		}
		if got := strings.Count(log.String(), "skipping checkpoint"); got != 1 {
			t.Errorf("it is logged %d times:\n%s", got, log)
		}
	})
}

// TestCountOfSteps has the reports of starts: the first of one counts from the checkpoint that
// it was given, or is one step.
func TestCountOfSteps(t *testing.T) {
	at := func(step int64) *Checkpoint { return &Checkpoint{Path: "c", Step: step} }
	for _, tc := range []struct {
		before, step, furthest int64
		given                  *Checkpoint
		steps, again, first    int64
	}{
		{-1, 0, -1, nil, 1, 0, 0},
		{-1, 7, -1, nil, 1, 0, 6},
		{0, 5, 0, nil, 5, 0, 0},
		{-1, 12, 14, at(10), 2, 2, 10},
		{-1, 12, 11, at(10), 2, 1, 10},
		{-1, 12, 20, at(20), 0, 0, 12},
		{-1, 12, 20, at(found.NoStep), 1, 1, 11},
	} {
		c := &counts{first: -1}
		if c.trained(tc.before, tc.step, tc.furthest, tc.given); c.steps != tc.steps || c.again != tc.again || c.first != tc.first {
			t.Errorf("%+v: %d steps, %d again, first %d", tc, c.steps, c.again, c.first)
		}
	}
}

// TestWhoHasStopped has the report of a run that was stopped say by what.
func TestWhoHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(trainerd.StopRequest("SIGTERM")) })
		if _, err := sv.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if r := readReport(t, sv.Logdir); r.StoppedBy != "SIGTERM" {
			t.Errorf("stopped by %q", r.StoppedBy)
		}
	})
}

// TestRunReportOfSilent has a program that reports nothing: what it saves says how far it came.
func TestRunReportOfSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-5.json"), "{}")
			p.sleep(10 * time.Second)
			return 0
		})
		sv.Checkpoints = "ckpt-*"
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := readReport(t, sv.Logdir); r.FirstStep != 0 || r.LastStep != 5 || r.Steps != 5 {
			t.Errorf("the report has %d steps, from %d to %d; want 5, from 0 to 5", r.Steps, r.FirstStep, r.LastStep)
		}
	})
}

// TestRunReportOfLittle has runs that have done as good as nothing: the report says where the
// model is, and -1 where there is none.
func TestRunReportOfLittle(t *testing.T) {
	for _, tc := range []struct {
		name, has, saves  string
		says              []string // of each start but the last
		stopped           bool     // before the first start
		first, last, done int64
		mark              string // the last one
	}{
		{"nothing", "", "", nil, false, -1, -1, 0, "STOP@0"},
		{"stopped before the start", "", "", nil, true, -1, -1, 0, "STOP@0"},
		{"stopped before it continues", "ckpt-100", "", nil, true, 100, 100, 0, "STOP@100"},
		{"the initial model", "", "ckpt-0", nil, false, 0, 0, 0, "STOP@0"},
		{"step 0 alone", "", "", []string{"step=0"}, false, 0, 0, 1, "STOP@0"},
		{"back at step 0", "", "", []string{"step=20", "step=0"}, false, 19, 0, 2, "STOP@20"},
		{"an epoch", "epoch-3", "ckpt-5", nil, false, 0, 5, 5, "STOP@5"},
	} {
		synctest.Test(t, func(t *testing.T) {
			starts := 0
			sv, log := simulate(t, func(p *simProgram) int {
				if starts++; starts <= len(tc.says) {
					p.say("%s", tc.says[starts-1])
				}
				if tc.saves != "" {
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), tc.saves), "weights")
				}
				return max(len(tc.says)-starts, 0)
			})
			sv.Checkpoints = "*-*"
			if tc.has != "" {
				childtest.Write(t, filepath.Join(sv.Logdir, tc.has), "weights")
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if tc.stopped {
				stop()
			}
			if _, err := sv.Run(ctx); err != nil || strings.Contains(log.String(), "level=WARN msg=\"cannot") {
				t.Errorf("%s: %v; log:\n%s", tc.name, err, log)
			}
			if r := readReport(t, sv.Logdir); r.FirstStep != tc.first || r.LastStep != tc.last || r.Steps != tc.done {
				t.Errorf("%s: %d steps, from %d to %d; want %d, from %d to %d", tc.name, r.Steps, r.FirstStep, r.LastStep, tc.done, tc.first, tc.last)
			}
			if all := marks(t, sv.Logdir); len(all) == 0 || all[len(all)-1] != tc.mark {
				t.Errorf("%s: the marks are %v, and the last one is to be %s", tc.name, all, tc.mark)
			}
		})
	}
}
