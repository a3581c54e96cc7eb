//go:build unix

package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// saidAgain is what the log has where a program begins again within a start.
const saidAgain = "begun again without having ended"

// saveNow writes a checkpoint, by the clock of the bubble.
func saveNow(t *testing.T, p *simProgram, base string) {
	t.Helper()
	name := filepath.Join(p.variable("TRAINERD_LOGDIR"), base)
	childtest.Write(t, name, "weights of "+base)
	childtest.Must(t, os.Chtimes(name, time.Now(), time.Now()))
}

// wantShown checks which steps of a curve the loaders of TensorBoard show.
func wantShown(t *testing.T, logdir, tag string, want ...int64) {
	t.Helper()
	for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		if got := shownBy(t, logdir, tag, mode); !slices.Equal(got, want) {
			t.Errorf("%s has the steps %v for loader %v, want %v", tag, got, mode, want)
		}
	}
}

// TestBeginsAgain has a launcher whose workers fail at step 20 and are started again by it: they
// continue from a checkpoint that they look for, and nobody hangs.
func TestBeginsAgain(t *testing.T) {
	for name, checkpoint := range map[string]string{"numbered": "ckpt-10", "of one name": "ckpt-last", "none": ""} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					for step := 1; step <= 20 && p.sleep(time.Second); step++ {
						p.say("step=%d loss=%d", step, step)
						if step%10 == 5 {
							p.say("step=%d val=%d", step, step)
						}
						if step == 10 && checkpoint != "" {
							saveNow(t, p, checkpoint)
						}
					}
					first := 11
					if checkpoint == "" {
						first = 1
					}
					for step := first; step <= 24 && p.sleep(time.Second); step++ {
						p.say("step=%d loss=%d.5", step, step)
					}
					return 0
				})
				sv.HangAfter = 5 * time.Second
				if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 1 || exit.Step != 24 {
					t.Errorf("Run = %+v, %v", exit, err)
				}
				wantShown(t, sv.Logdir, "loss", count(1, 24)...)
				val := []int64{5}
				if checkpoint == "" {
					val = nil
				}
				wantShown(t, sv.Logdir, "val", val...)
				if n := strings.Count(log.String(), saidAgain); n != 1 {
					t.Errorf("it is said %d times:\n%s", n, log)
				}
			})
		})
	}
}

// TestSaveAfterBeginningAgain has a program that has begun again at step 11, after step 20, and is
// asked to save at 14, and to end: the checkpoint of that step has all that it has done.
func TestSaveAfterBeginningAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			for step := 1; step <= 20 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				if step == 10 {
					saveNow(t, p, "ckpt-10")
				}
			}
			for step := 11; step <= 14 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=2", step)
			}
			for saved := false; p.sleep(time.Second); {
				if slices.Contains(p.signals(), syscall.SIGUSR1) && !saved {
					saveNow(t, p, "ckpt-14")
					saved = true
				}
			}
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		stop, end := begin(t, sv)
		pass(time.Minute)
		if c, err := sv.Save(t.Context()); err != nil || c.Step != 14 {
			t.Errorf("Save = %v, %v", c, err)
		}
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped || exit.Took > 70*time.Second {
			t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
		}
	})
}

// TestReportsOutOfOrder has programs whose reports go back, though they do not begin again: no
// point of another curve is lost.
func TestReportsOutOfOrder(t *testing.T) {
	for name, say := range map[string]func(p *simProgram, step int){
		"an evaluator of earlier checkpoints": func(p *simProgram, step int) {
			p.say("step=%d loss=1", step)
			if step%10 == 8 {
				p.say("step=%d loss=2", step-3)
				p.say("step=%d accuracy=2", step-3)
			}
		},
		"ranks that report one after the other": func(p *simProgram, step int) {
			if step%2 == 0 {
				for rank := range 2 {
					p.say("step=%d loss=%d", step-1, rank)
					p.say("step=%d loss=%d", step, rank)
				}
			}
		},
		"a validation that counts its batches": func(p *simProgram, step int) {
			p.say("step=%d loss=1", step)
			for batch := 1; batch <= 3 && step%10 == 0; batch++ {
				p.say("step=%d batch_loss=%d", batch, step)
			}
		},
		"a validation in the same curve": func(p *simProgram, step int) {
			p.say("step=%d loss=1", step)
			for batch := 1; batch <= 3 && step%10 == 0 && step > 10; batch++ {
				p.say("step=%d loss=%d", batch, step)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					for step := 1; step <= 40 && p.sleep(time.Second); step++ {
						p.say("step=%d lr=0.1", step)
						say(p, step)
						if step%10 == 3 {
							saveNow(t, p, fmt.Sprintf("ckpt-%d", step))
						}
					}
					return 0
				})
				if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 1 || exit.Step != 40 {
					t.Errorf("Run = %+v, %v", exit, err)
				}
				wantShown(t, sv.Logdir, "lr", count(1, 40)...)
				if strings.Contains(log.String(), saidAgain) {
					t.Errorf("the log has:\n%s", log)
				}
			})
		})
	}
}

// TestSaysThatItHasLoaded has a program whose first line in each start has the step of its
// checkpoint and no number: the point of that step stays, unless the program makes it again.
func TestSaysThatItHasLoaded(t *testing.T) {
	for name, tc := range map[string]struct {
		checkpoint string
		first      int
	}{"from one": {"ckpt-10", 11}, "from zero": {"ckpt-10", 10}, "one name": {"ckpt-last", 11}, "one name, from zero": {"ckpt-last", 10}} {
		t.Run(name, func(t *testing.T) {
			sv, _ := supervise(t, fmt.Sprintf("steps 1 10;write %s;steps 11 12;exit 1|say resumed from step=10;steps %d 14", tc.checkpoint, tc.first))
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantShown(t, sv.Logdir, "loss", count(1, 14)...)
			starts := slices.DeleteFunc(marks(t, sv.Logdir), func(mark string) bool { return !strings.HasPrefix(mark, "START") })
			if want := 2 + 11 - tc.first; len(starts) != want {
				t.Errorf("the curves have %v, want %d", starts, want)
			}
		})
	}
}

// TestLastReportGoesBack has a program that ends with a report of an earlier step: it is not lost.
func TestLastReportGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := 1; step <= 10 && p.sleep(time.Second); step++ {
				p.say("step=%d loss=1", step)
				if step == 5 {
					saveNow(t, p, "ckpt-5")
				}
			}
			p.say("step=7 loss=3 final=1")
			return 0
		})
		reports := 0
		sv.Observer = whenReported{nobody{}, func(*Report) { reports++ }}
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantShown(t, sv.Logdir, "final", 7)
		if reports != 11 {
			t.Errorf("%d reports are taken, want 11", reports)
		}
	})
}

// TestEventsOfOneThatBeginsAgain has a program that saves to one name and writes events of its own.
// It begins from the beginning in its second start, and again in its third, from what it has saved
// in that: no point is lost, and none is twice.
func TestEventsOfOneThatBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			train := func(from, to int64) {
				w, err := tfevents.NewFileWriter(filepath.Join(p.variable("TRAINERD_LOGDIR"), "tb"), &tfevents.FileWriterOptions{Suffix: ".program"})
				childtest.Must(t, err)
				for step := from; step <= to && p.sleep(time.Second); step++ {
					p.say("step=%d loss=1", step)
					childtest.Must(t, w.AddScalar(t.Context(), "loss", 1, step))
					if step == 8 || step == 50 {
						p.sleep(time.Second / 2)
						saveNow(t, p, "ckpt-last")
					}
				}
				childtest.Must(t, w.Close())
				p.sleep(5 * time.Second)
			}
			switch p.variable("TRAINERD_ATTEMPT") {
			case "1":
				train(1, 12)
				return 1
			case "2": // it does not find what it has saved
				train(1, 12)
				return 1
			}
			train(9, 60)
			train(51, 70)
			return 0
		})
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantShown(t, filepath.Join(sv.Logdir, "tb"), "loss", count(1, 70)...)
	})
}
