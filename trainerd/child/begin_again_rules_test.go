//go:build unix

package child

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// through returns the lines of a curve.
func through(tag string, from, to int, value string) (lines []string) {
	for step := from; step <= to; step++ {
		lines = append(lines, fmt.Sprintf("step=%d %s=%s", step, tag, value))
	}
	return lines
}

// alternately returns lines, of each of these in turn.
func alternately(all ...[]string) (lines []string) {
	for i := range all[0] {
		for _, one := range all {
			lines = append(lines, one[i])
		}
	}
	return lines
}

// sayOrSave has a program print a line, or write a checkpoint: "save ckpt-10".
func sayOrSave(t *testing.T, p *simProgram, line string) {
	t.Helper()
	if base, ok := strings.CutPrefix(line, "save "); ok {
		saveNow(t, p, base)
	} else {
		p.say("%s", line)
	}
}

// TestBeginsAgainByItsReports has programs that print a line each second, some of which begin
// again.
func TestBeginsAgainByItsReports(t *testing.T) {
	const saved, latest = "save ckpt-10", "save ckpt-last"
	ten := through("loss", 1, 10, "1")
	twenty := slices.Concat(ten, []string{saved}, through("loss", 11, 20, "1"))
	var loops []string
	for life := range 6 {
		loops = append(loops, through("loss", 0, 1, fmt.Sprint(life))...)
	}
	type curves map[string][]int64
	for name, tc := range map[string]struct {
		lines []string
		again int
		shown curves
	}{
		"from the step of the checkpoint": {slices.Concat(twenty, through("loss", 10, 24, "2")), 1, curves{"loss": count(1, 24)}},
		"from one before the last": {
			slices.Concat(through("loss", 1, 18, "1"), []string{"save ckpt-18"}, through("loss", 19, 20, "1"), through("loss", 19, 24, "2")), 1, curves{"loss": count(1, 24)},
		},
		"a curve of three steps": {slices.Concat(through("loss", 1, 3, "1"), through("loss", 1, 5, "2")), 1, curves{"loss": count(1, 5)}},
		"a curve of two steps":   {slices.Concat(through("loss", 1, 2, "1"), through("loss", 1, 5, "2")), 0, nil},
		"a loop of two steps":    {slices.Concat(through("loss", 0, 2, "1"), loops, through("loss", 2, 4, "2")), 6, curves{"loss": count(0, 4)}},
		"each line twice": {
			slices.Concat(alternately(ten, ten), []string{saved}, alternately(through("loss", 11, 20, "1"), through("loss", 11, 20, "1")),
				alternately(through("loss", 11, 24, "2"), through("loss", 11, 24, "2"))), 1, nil,
		},
		"two lines a step": {
			slices.Concat(alternately(ten, through("accuracy", 1, 10, "1")), []string{saved}, alternately(through("loss", 11, 20, "1"), through("accuracy", 11, 20, "1")),
				alternately(through("loss", 11, 24, "2"), through("accuracy", 11, 24, "2"))), 1, curves{"loss": count(1, 24), "accuracy": count(1, 24)},
		},
		"twice":                  {slices.Concat(twenty, through("loss", 11, 14, "2"), through("loss", 11, 24, "3")), 2, curves{"loss": count(1, 24)}},
		"twice, and of one name": {slices.Concat(ten, []string{latest}, through("loss", 11, 20, "1"), through("loss", 11, 14, "2"), through("loss", 11, 24, "3")), 2, curves{"loss": count(1, 24)}},
		"ranks, one of them late once": {
			slices.Concat(alternately(ten, through("loss", 1, 10, "2")), []string{saved}, alternately(through("loss", 11, 20, "1"), through("loss", 11, 20, "2")),
				through("loss", 21, 23, "1"), through("loss", 21, 23, "2")), 0, nil,
		},
		"ranks, one of which reports half of the steps, and is late once": {
			slices.Concat(ten, []string{saved}, alternately(through("loss", 11, 20, "1"), through("loss", 11, 20, "2")), through("loss", 18, 19, "2")), 0, nil,
		},
		"an evaluator, and one name": {
			slices.Concat(ten, []string{latest}, through("loss", 11, 20, "1"), []string{"step=5 accuracy=1", "step=10 accuracy=1", "step=15 accuracy=1", "step=7 accuracy=1", "step=9 accuracy=1"},
				through("loss", 21, 24, "1")), 0, curves{"loss": count(1, 24)},
		},
		"late ones, and no checkpoint": {
			slices.Concat(through("rate", 1, 20, "1"), through("loss", 1, 20, "1"), []string{"step=15 loss=1", "step=16 loss=1"}), 0, curves{"rate": count(1, 20)},
		},
		"many numbers of an earlier step": {
			slices.Concat(twenty, []string{"step=15 loss=2"}, slices.Repeat([]string{"step=15 class=1"}, 2*mostHeld), through("rate", 21, 24, "1")), 0, curves{"rate": count(21, 24)},
		},
		"an evaluator that says the same twice": {
			slices.Concat(twenty, []string{"step=5 accuracy=1", "step=10 accuracy=1", "step=15 accuracy=1", "step=15 accuracy=1", "step=18 accuracy=1"}, through("loss", 21, 24, "1")), 0, curves{"loss": count(1, 24)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					for i := 0; i < len(tc.lines) && p.sleep(time.Second); i++ {
						sayOrSave(t, p, tc.lines[i])
					}
					return 0
				})
				if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 1 {
					t.Errorf("Run = %+v, %v", exit, err)
				}
				if n := strings.Count(log.String(), saidAgain); n != tc.again {
					t.Errorf("it is said %d times, want %d:\n%s", n, tc.again, log)
				}
				for tag, want := range tc.shown {
					wantShown(t, sv.Logdir, tag, want...)
				}
			})
		})
	}
}

// TestCountsOfOneThatBeginsAgain has a program that begins again at step 11, after step 20: its
// report counts what was done twice, and its speed is that of its steps.
func TestCountsOfOneThatBeginsAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		checkpoint   []string
		first        int
		steps, again int64
	}{"from a checkpoint": {[]string{"save ckpt-10"}, 11, 34, 10}, "from the beginning": {nil, 1, 44, 20}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := slices.Concat(through("loss", 1, 10, "1"), tc.checkpoint, through("loss", 11, 20, "1"), through("loss", tc.first, 24, "1"))
				sv, log := simulate(t, func(p *simProgram) int {
					for _, line := range lines {
						if !strings.HasPrefix(line, "save ") {
							p.sleep(time.Second)
						}
						sayOrSave(t, p, line)
					}
					return 0
				})
				sv.SummariesEvery = 15500 * time.Millisecond
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if r := readReport(t, sv.Logdir); r.Steps != tc.steps || r.Restarts.StepsAgain != tc.again || r.LastStep != 24 {
					t.Errorf("%d steps, %d again, up to %d; want %d, %d, up to 24; log:\n%s", r.Steps, r.Restarts.StepsAgain, r.LastStep, tc.steps, tc.again, log)
				}
				for _, rate := range ratesOf(t, sv.Logdir) {
					if rate != 1 {
						t.Errorf("%v steps a second, want 1", rate)
					}
				}
			})
		})
	}
}

// ratesOf returns the points of global_step/sec.
func ratesOf(t *testing.T, logdir string) (rates []float64) {
	t.Helper()
	for _, e := range sessiontest.Events(t, logdir) {
		for _, v := range e.GetSummary().GetValue() {
			if rate, ok := decode.Scalar(v); ok && v.GetTag() == "global_step/sec" {
				rates = append(rates, rate)
			}
		}
	}
	return rates
}

// TestAskedToSaveAgain has a program that is asked to save at steps 6, 12 and so on. It fails before
// it has answered the second request, and begins again at step 11: it is asked again at step 12.
func TestAskedToSaveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		sv, log := simulate(t, func(p *simProgram) int {
			for life, steps := range [][2]int{{1, 18}, {11, 14}} {
				for step := steps[0]; step <= steps[1] && p.sleep(5*time.Second); step++ {
					if p.say("step=%d loss=1", step); step == 10 && life == 0 {
						saveNow(t, p, "ckpt-10")
					}
					p.sleep(3 * time.Second)
					asked[fmt.Sprint(life, " ", step)] = len(p.signals())
				}
			}
			return 0
		})
		sv.SaveSignal, sv.SaveSteps = syscall.SIGUSR1, 6
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if asked["1 12"] == asked["1 11"] {
			t.Errorf("by step there were these requests: %v; log:\n%s", asked, log)
		}
	})
}

// TestSaveOfOneThatBeginsAgain has a save that is asked for at step 20 of a program which fails then,
// and begins again at step 11: the checkpoint of step 14 has all that there is.
func TestSaveOfOneThatBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			for _, line := range slices.Concat(through("loss", 1, 10, "1"), []string{"save ckpt-10"}, through("loss", 11, 20, "1")) {
				p.sleep(time.Second)
				sayOrSave(t, p, line)
			}
			p.sleep(time.Minute)
			for _, line := range slices.Concat(through("loss", 11, 14, "2"), []string{"save ckpt-14"}) {
				p.sleep(time.Second)
				sayOrSave(t, p, line)
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		stop, end := begin(t, sv)
		pass(30 * time.Second)
		began := time.Now()
		if c, err := sv.Save(t.Context()); err != nil || c.Step != 14 || time.Since(began) > 2*time.Minute {
			t.Errorf("Save = %v, %v; log:\n%s", c, err, log)
		}
		stop()
		end()
	})
}

// TestGoesBackInItsEnd has a program that is asked to end at step 20, and whose last words are of
// earlier steps, as those of an evaluation are: what it has not saved is lost all the same.
func TestGoesBackInItsEnd(t *testing.T) {
	for name, before := range map[string][]string{"after the signal": nil, "from before the signal on": {"step=12 loss=2"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					for _, line := range slices.Concat(through("loss", 1, 10, "1"), []string{"save ckpt-10"}, through("loss", 11, 20, "1"), before) {
						p.sleep(time.Second)
						sayOrSave(t, p, line)
					}
					p.sleep(time.Hour)
					for _, line := range through("loss", 12, 15, "2")[len(before):] {
						p.say("%s", line)
						p.sleepDeaf(time.Second)
					}
					return 0
				})
				sv.SaveSignal = syscall.SIGUSR1
				stop, end := begin(t, sv)
				pass(time.Minute)
				stop()
				if exit, err := end(); err == nil || exit.Step != 20 || strings.Contains(log.String(), saidAgain) {
					t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
				}
			})
		})
	}
}

// TestEventsBeforeBeginningAgain has a program that writes events of its own, and begins again at
// step 11, after step 20: they are marked before what it has written since.
func TestEventsBeforeBeginningAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		pace  time.Duration
		first bool // it writes events before it begins again, too
		want  []int64
	}{
		"begun in the second of the last step": {40 * time.Millisecond, true, count(1, 24)},
		"begun earlier":                        {time.Second, true, count(1, 24)},
		"none":                                 {time.Second, false, count(11, 24)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					train := func(from, to int64, writes bool) {
						dir := t.TempDir()
						if writes {
							dir = filepath.Join(p.variable("TRAINERD_LOGDIR"), "tb")
						}
						w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{Suffix: ".program"})
						childtest.Must(t, err)
						defer w.Close()
						for step := from; step <= to && p.sleep(tc.pace); step++ {
							childtest.Must(t, errors.Join(w.AddScalar(t.Context(), "loss", 1, step), w.Flush(t.Context())))
							if p.say("step=%d loss=1", step); step == 10 {
								saveNow(t, p, "ckpt-10")
							}
						}
					}
					train(1, 20, tc.first)
					p.sleep(5 * time.Second)
					train(11, 24, true)
					return 0
				})
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(log.String(), saidAgain) {
					t.Errorf("the log has:\n%s", log)
				}
				wantShown(t, filepath.Join(sv.Logdir, "tb"), "loss", tc.want...)
			})
		})
	}
}
