//go:build unix

package child

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// TestFirstReport has programs that begin at step 0 and at step 1, and say some steps twice:
// each start is marked once.
func TestFirstReport(t *testing.T) {
	for _, says := range [][]int{{0, 0, 1, 2}, {1, 1, 2}} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				for i, step := range says {
					p.say("step=%d loss=%d", step, i)
				}
				return 0
			})
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := marks(t, sv.Logdir); !slices.Equal(got, []string{map[int]string{0: "START@0", 1: "START@1"}[says[0]], "STOP@2"}) {
				t.Errorf("marks %v", got)
			}
			if got := curve(t, sv.Logdir, "loss"); len(got) != len(says) {
				t.Errorf("the curve has steps %v, want %v", got, says)
			}
		})
	}
}

// TestStepsWithoutNumbers has a program that says which step it has loaded, and then earlier steps without numbers: they
// are of no curve, so what was made of the curves up to the loaded step stays.
func TestStepsWithoutNumbers(t *testing.T) {
	for says, want := range map[string][]string{"step=5": {"START@11", "STOP@11"}, "step=5 loss=1": {"START@11", "START@5", "STOP@11"}} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				p.say("step=10")
				p.say("%s", says)
				p.say("step=11 loss=1")
				return 0
			})
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10"), "weights")
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := marks(t, sv.Logdir)
			if !slices.Equal(got, want) {
				t.Errorf("%s: marks %v, want %v", says, got, want)
			}
		})
	}
}

// TestScanThatTookLong has a scan that took so long that the next is not due yet: only who
// waits for a checkpoint does not wait for that.
func TestScanThatTookLong(t *testing.T) {
	root, err := os.OpenRoot(childtest.Logdir(t, "ckpt-1"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, tc := range map[string]struct {
		change func(r *run)
		looks  bool
	}{
		"training":       {func(*run) {}, false},
		"due":            {func(r *run) { r.nextScan = time.Now() }, true},
		"stop":           {func(r *run) { r.attempt.ending = &ending{} }, true},
		"save requested": {func(r *run) { r.savers = []saver{{}} }, true},
	} {
		r := &run{log: slog.New(slog.DiscardHandler), store: found.New(root, "ckpt-*", found.Options{}), ectx: t.Context(), nextScan: time.Now().Add(time.Hour)}
		r.store.Candidates(false) // the next scan finds it as it is
		tc.change(r)
		r.beginRefresh()
		if looks := r.verdicts != nil; looks != tc.looks {
			t.Errorf("%s: looks %v", name, looks)
		}
		if r.verdicts != nil {
			<-r.verdicts
		}
	}
}

// TestBegunAgain has starts in a row, each with the checkpoint that it was given and the step
// of its first report: which have not loaded it, and begin where the first one has begun.
func TestBegunAgain(t *testing.T) {
	type start struct {
		given, first int64 // given: -1 for none
		again        bool
	}
	for _, starts := range [][]start{
		{{-1, 5, false}, {10, 5, true}, {10, 6, false}, {10, 4, true}},
		{{10, 1, true}, {10, 0, true}, {10, 2, false}},
		{{2, 1, true}, {1, 1, false}, {0, 0, false}},
		{{10, 8, false}, {10, 7, false}},
		{{-1, 1, false}, {-1, 8, false}, {10, 7, false}},
		{{found.NoStep, 0, false}},
	} {
		log := newScreen()
		r := &run{log: logTo(log)}
		for i, s := range starts {
			r.attempts, r.attempt = i+1, attempt{}
			if s.given != -1 {
				r.attempt.given = &Checkpoint{Path: "c", Step: s.given}
			}
			before := len(log.String())
			if r.checkResumed(s.first); (len(log.String()) > before) != s.again {
				t.Errorf("%+v: start %d: it has begun again: %v; log:\n%s", starts, i+1, !s.again, log)
			}
		}
	}
}

// TestProgress has a program that always fails, a step later each time: it is started again
// at once.
func TestProgress(t *testing.T) {
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begun, starts := time.Now(), 0
			sv, _ := simulate(t, func(p *simProgram) int {
				if starts++; silent {
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", starts)), "weights")
				} else {
					p.say("step=%d loss=1", starts)
				}
				return max(5-starts, 0)
			})
			sv.Restarts.Max = 5
			if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 5 || time.Since(begun) > 0 {
				t.Errorf("silent: %v: Run = %+v, %v after %v", silent, exit, err, time.Since(begun))
			}
		})
	}
}

// TestProgressBySaving has programs that save: one that reports nothing has come as far as its
// checkpoints, once, and one that reports as far as it says.
func TestProgressBySaving(t *testing.T) {
	for _, tc := range []struct {
		says string
		last int64
	}{{"hello", 90}, {"step=5 loss=1", 5}, {"step=0 loss=1", 0}} {
		synctest.Test(t, func(t *testing.T) {
			begun, starts := time.Now(), 0
			sv, _ := simulate(t, func(p *simProgram) int {
				starts++
				p.say("%s", tc.says)
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-90"), fmt.Sprint("weights of start ", starts))
				return 1
			})
			sv.Restarts.Max = 2
			if _, err := sv.Run(t.Context()); !is[*ExitError](err) || time.Since(begun) == 0 {
				t.Errorf("%s: %v after %v and %d starts", tc.says, err, time.Since(begun), starts)
			}
			if r := readReport(t, sv.Logdir); r.LastStep != tc.last {
				t.Errorf("%s: it came to step %d, want %d", tc.says, r.LastStep, tc.last)
			}
			if got := marks(t, sv.Logdir); got[len(got)-1] != fmt.Sprint("STOP@", tc.last) {
				t.Errorf("%s: marks %v, want STOP@%d at the end", tc.says, got, tc.last)
			}
		})
	}
}

// TestSlowSave has a checkpoint that grows for some scans: nobody says that it is damaged, and it
// is announced once it is whole.
func TestSlowSave(t *testing.T) {
	for base, mark := range map[string]string{"ckpt-10.safetensors": "CHECKPOINT@10", "last.safetensors": "CHECKPOINT@0"} {
		synctest.Test(t, func(t *testing.T) {
			name, sizes, whole := "", []int64(nil), childtest.TensorsOf(10)
			sv, log := simulate(t, func(p *simProgram) int {
				const pieces = 20
				for i := range pieces {
					childtest.Write(t, name, whole[:len(whole)*(i+1)/pieces])
					p.sleep(time.Second / 2)
				}
				p.sleep(time.Minute)
				return 0
			})
			name, sv.Checkpoints = filepath.Join(sv.Logdir, base), "*.safetensors"
			sv.Observer = whenSaved{nobody{}, func() { sizes = append(sizes, childtest.Stat(t, name).Size()) }}
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want := []int64{int64(len(whole))}; !slices.Equal(sizes, want) || strings.Contains(log.String(), "skipping checkpoint") {
				t.Errorf("announced with %d bytes, want %d; the log:\n%s", sizes, want, log)
			}
			if got := marks(t, sv.Logdir); !slices.Contains(got, mark) {
				t.Errorf("marks %v, want %s", got, mark)
			}
		})
	}
}

// TestDeletionIsTriedWithSaves has a disk that does not let go of an old checkpoint: it is asked
// with each save and at the end, and not at each scan.
func TestDeletionIsTriedWithSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			for step := 1; step < 4; step++ {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", step)), "weights")
				p.sleep(time.Minute)
			}
			return 0
		})
		sv.Retention = []retention.Policy{retention.Last(1)}
		picky(sv, func(op, below string) bool { return op == "rename" && !strings.Contains(below, "/") })
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "cannot delete checkpoint"); got != 3 {
			t.Errorf("it is said %d times, want with the second and the third save, and at the end:\n%s", got, log)
		}
	})
}

// TestReportsAfterTheSave has a program whose reports come late: what it has saved is there before
// them. Its steps are none that an earlier start has made.
func TestReportsAfterTheSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-10"), "weights")
			p.sleep(time.Minute)
			for step := range 12 {
				p.say("step=%d loss=1", step+1)
			}
			return 0
		})
		if _, err := sv.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := readReport(t, sv.Logdir); r.Steps != 12 || r.LastStep != 12 || r.Restarts.StepsAgain != 0 {
			t.Errorf("%d steps up to %d, %d of them again; want 12 up to 12, none", r.Steps, r.LastStep, r.Restarts.StepsAgain)
		}
	})
}

// TestNoProgress has programs that report without getting further: one that says one step
// again and again hangs, and one that always fails at the same step is started after a pause,
// and given up.
func TestNoProgress(t *testing.T) {
	for _, hangs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			begun, starts := time.Now(), 0
			sv, _ := simulate(t, func(p *simProgram) int {
				if starts++; starts > 20 {
					return 0
				}
				p.say("step=1 loss=1")
				p.say("step=2 loss=1")
				for hangs && p.sleep(time.Second) {
					p.say("step=2 loss=1")
				}
				return 1
			})
			sv.HangAfter, sv.Restarts.Max = time.Minute, 2
			exit, err := sv.Run(t.Context())
			if !is[*ExitError](err) || starts > 5 || time.Since(begun) == 0 || hangs != (exit.Cause == Hung) {
				t.Errorf("hangs: %v: %d starts; Run = %+v, %v", hangs, starts, exit, err)
			}
		})
	}
}

// TestSaveAfterNaN has a program that saves and then reports a loss of NaN: the checkpoint to
// go back to is not deleted for the new one.
func TestSaveAfterNaN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []string
		sv, log := simulate(t, func(p *simProgram) int {
			if steps = append(steps, p.variable("TRAINERD_STEP")); len(steps) > 1 {
				return 0
			}
			for _, step := range []int{10, 21} {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", step)), "weights")
				p.say("step=%d loss=%s", step, map[int]string{10: "1", 21: "nan"}[step])
				p.sleep(10 * time.Second)
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.Retention, sv.MaxRewinds = []retention.Policy{retention.Last(1)}, 1
		if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(steps, []string{"", "10"}) {
			t.Errorf("%v; starts from %q, want from none and from 10; log:\n%s", err, steps, log)
		}
	})
}

// TestSavesAfterOneAskedFor has a save that was asked for, and others after it: only the first
// answers.
func TestSavesAfterOneAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			p.say("step=1")
			for !slices.Contains(p.signals(), syscall.SIGUSR1) {
				p.sleep(time.Second)
			}
			for step := 1; step < 5; step++ {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", step)), "weights")
				p.sleep(5 * time.Second)
			}
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		_, end := begin(t, sv)
		time.Sleep(5 * time.Second)
		if saved, err := sv.Save(t.Context()); err != nil || saved.Step != 1 {
			t.Errorf("Save = %+v, %v", saved, err)
		}
		if exit, err := end(); err != nil || exit.Cause != Completed {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

// TestRateMeter has a rate where steps and time have passed since the last one, and none else.
func TestRateMeter(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(1e9+second, 0) }
	var m rateMeter
	for _, tc := range []struct {
		step, second int64
		want         float64
	}{{1, 0, 0}, {5, 0, 0}, {5, 2, 2}, {5, 4, 0}, {4, 5, 0}, {8, 8, 0.5}} {
		m.record(tc.step, at(tc.second))
		if rate, ok := m.rate(); rate != tc.want || ok != (tc.want > 0) {
			t.Errorf("step %d at %d s: %v, %v; want %v", tc.step, tc.second, rate, ok, tc.want)
		}
	}
}

// TestHintAboutCheckpoints has a program that fails, whose checkpoints nobody looks after: the
// log says so once.
func TestHintAboutCheckpoints(t *testing.T) {
	for pattern, want := range map[string]int{"": 1, "ckpt-*": 0} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 1 })
			sv.Checkpoints, sv.Restarts.Max = pattern, 3
			if exit, err := sv.Run(t.Context()); err == nil || exit.Attempt != 4 {
				t.Errorf("Run = %+v, %v", exit, err)
			}
			if got := strings.Count(log.String(), "checkpoints are not looked after"); got != want {
				t.Errorf("pattern %q: it is logged %d times:\n%s", pattern, got, log)
			}
		})
	}
}

// TestNoSaveIsAskedForAtTheEnd has a program that hangs, and trains on once SIGTERM has woken it: it
// may die of another signal while it ends.
func TestNoSaveIsAskedForAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []syscall.Signal
		sv, log := simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_ATTEMPT") != "1" {
				return 0
			}
			for step := range 100 {
				p.say("step=%d loss=1", step+1)
				for p.sleepDeaf(time.Second); step == 29 && !slices.Contains(p.signals(), system.SigTerm); {
					p.sleepDeaf(time.Second)
				}
			}
			got = p.signals()
			return 1
		})
		sv.SaveSignal, sv.SaveEvery, sv.HangAfter, sv.Grace = syscall.SIGUSR1, 20*time.Second, time.Minute, time.Hour
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if want := []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR1, system.SigTerm, system.SigCont}; !slices.Equal(got, want) {
			t.Errorf("it got %v, want %v\n%s", got, want, log)
		}
	})
}

// TestSilentProgressIsNoFailureToStart has a program without reports that fails after each save: it begins where the one
// before has come to, and no checkpoint is passed over as one that it cannot load.
func TestSilentProgressIsNoFailureToStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			given = append(given, filepath.Base(p.variable("TRAINERD_CHECKPOINT")))
			n := len(given)
			if n == 6 {
				return 0
			}
			p.sleep(time.Minute)
			childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", n)), childtest.TensorsOf(n))
			return 1
		})
		_, err := sv.Run(t.Context())
		want := []string{".", "ckpt-1.safetensors", "ckpt-2.safetensors", "ckpt-3.safetensors", "ckpt-4.safetensors", "ckpt-5.safetensors"}
		if err != nil || !slices.Equal(given, want) {
			t.Errorf("Run = %v, started from %q\n%s", err, given, log)
		}
	})
}

// TestProgressByTheSaveBefore has a start that has said nothing yet when what the one before has saved is
// taken: it is no progress of a program that reports its steps, and it is that of one that does not.
func TestProgressByTheSaveBefore(t *testing.T) {
	for _, reports := range []bool{false, true} {
		r := &run{counts: &counts{first: -1}, maxStep: 5, attempts: 2, attempt: attempt{step: -1}}
		if reports {
			r.counts.trained(-1, 1, -1, nil)
		}
		r.reach(foundAt(t, "ckpt-90", found.Moment{Attempt: 1}))
		if r.attempt.progressed == reports || r.attempt.saves {
			t.Errorf("it reports: %v; it has progressed: %v, and saved: %v", reports, r.attempt.progressed, r.attempt.saves)
		}
		if reports {
			r.reach(foundAt(t, "ckpt-91", found.Moment{Attempt: 2}))
			if !r.attempt.progressed || r.maxStep != 91 {
				t.Errorf("its own save is no progress: %d", r.maxStep)
			}
		}
	}
}
