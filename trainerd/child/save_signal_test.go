//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// All parts of a program get the signal to save, on whichever node they are, and write
// their parts of one checkpoint.
func TestNodesSave(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, chief, worker *node){
		"on request": func(t *testing.T, chief, worker *node) {
			if c, err := chief.Save(t.Context()); err != nil || c.Step != 5 {
				t.Errorf("Save = %+v, %v", c, err)
			}
		},
		"by steps":            func(*testing.T, *node, *node) {},
		"at a stop":           func(_ *testing.T, chief, _ *node) { chief.stop() },
		"a worker is stopped": func(_ *testing.T, _, worker *node) { worker.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			set := func(sv *Supervisor) {
				sv.Checkpoints, sv.SaveSignal, sv.Grace = "{ckpt,part}-5", syscall.SIGUSR1, patience
				if name == "by steps" {
					sv.SaveSteps = 5
				}
			}
			const again = "|env ATTEMPT;await done"
			chief := join(t, logdir, 0, "steps 1 4;await there1;onsignal ckpt-5 steps 5 5;sleep"+again, set)
			await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
			worker := join(t, logdir, 1, "onsignal part-5 write there1;sleep"+again, set)
			chief.await(t, "ready")
			worker.await(t, "ready")
			await(t, "the chief has the steps", func() bool { return len(curve(t, logdir, "loss")) == 5 })
			ask(t, chief, worker)
			await(t, "the checkpoint has both parts", func() bool { return slices.Contains(marks(t, logdir), "CHECKPOINT@5") })
			chief.stop()
			if exit, err := chief.end(t); err != nil || exit.Cause != Stopped {
				t.Errorf("the chief: %+v, %v", exit, err)
			}
			if exit, err := worker.end(t); err != nil || exit.Cause != Stopped {
				t.Errorf("the worker: %+v, %v", exit, err)
			}
		})
	}
}

// A program none of whose processes handles the signal is not killed by it: the log says so
// once, and who asks for a save is told.
func TestSaveSignalUnhandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			p.refuse(system.ErrUnhandled)
			for step := 1; step <= 100 && p.sleep(10*time.Second); step++ {
				p.say("step=%d loss=1", step)
			}
			return 0
		})
		sv.SaveSignal, sv.SaveEvery = syscall.SIGUSR1, time.Minute
		go func() {
			time.Sleep(10 * time.Minute)
			if _, err := sv.Save(t.Context()); !is[error](err) || !strings.Contains(err.Error(), "no process") {
				t.Errorf("Save = %v", err)
			}
		}()
		if _, err := sv.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if got := strings.Count(log.String(), "handles child.save_signal"); got != 1 {
			t.Errorf("%d lines about the signal in:\n%s", got, log)
		}
	})
}

// What goes wrong with the signal is logged where it should not go wrong: not where the program
// has just ended, nor where it handles none, which has a line of its own.
func TestSaveSignalFails(t *testing.T) {
	for err, want := range map[error]bool{syscall.EPERM: true, os.ErrProcessDone: false, system.ErrUnhandled: false} {
		for nodes := 1; nodes <= 2; nodes++ {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulate(t, func(p *simProgram) int {
					p.refuse(err)
					p.say("step=1 loss=1")
					p.sleep(time.Hour)
					return 0
				})
				sv.Nodes, sv.SaveSignal, sv.SaveEvery = nodes, syscall.SIGUSR1, time.Minute
				if _, err := sv.Run(t.Context()); err != nil {
					t.Error(err)
				}
				if got := strings.Contains(log.String(), "cannot signal the program"); got != want {
					t.Errorf("%d nodes, %v: it is logged: %v\n%s", nodes, err, got, log)
				}
			})
		}
	}
}

// The signal comes as late as the news of it may, and on one node at once; however short the
// grace, most of it is left for the save.
func TestSaveLead(t *testing.T) {
	for _, tc := range []struct {
		nodes       int
		look, grace time.Duration
		want        time.Duration
	}{
		{0, time.Second, time.Minute, 0}, {1, time.Second, time.Minute, 0}, {2, time.Second, time.Minute, newsTime},
		{2, 10 * time.Millisecond, time.Minute, 40 * time.Millisecond}, {2, time.Second, 4 * time.Second, 500 * time.Millisecond}, {2, time.Second, -1, 0},
	} {
		if got := (&Supervisor{Nodes: tc.nodes, ScanEvery: tc.look, Grace: tc.grace}).saveLead(); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// A request that comes before the one before was sent is the same one; where no program
// runs, there is nothing to send a signal to.
func TestAskToSaveTwice(t *testing.T) {
	sv, _ := supervise(t, "")
	sv.Nodes, sv.Node = 2, 0
	lead(t, sv.Logdir)
	r := &run{Supervisor: sv, log: discard, logdir: sv.Logdir}
	childtest.Must(t, r.joinNodes())
	childtest.Must(t, r.askToSave())
	childtest.Must(t, r.askToSave())
	if got := r.nodes.job().Save.Number; got != 1 {
		t.Errorf("request %d is published, want the first", got)
	}
	if err := r.sendSaveSignal(); !errors.Is(err, ErrNotRunning) || r.attempt.saveDue != nil {
		t.Errorf("signal to no program: %v", err)
	}
}

// The time until all nodes know of a request is not part of a save: it does not lengthen the
// pause by max_save_share. But it is at risk.
func TestNodesSaveBudget(t *testing.T) {
	for _, tc := range []struct {
		name   string
		every  time.Duration
		budget trainerd.SaveBudget
	}{
		{"share", 5 * time.Second, trainerd.SaveBudget{MaxShare: 0.1}},
		{"risk", 0, trainerd.SaveBudget{MaxRisk: 10 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var saved []time.Duration
			sv, _ := simulate(t, func(p *simProgram) int {
				for step, asked := 1, 0; step <= 600; step++ {
					time.Sleep(100 * time.Millisecond)
					p.say("step=%d loss=1", step)
					if len(p.signals()) == asked {
						continue
					}
					asked = len(p.signals())
					time.Sleep(100 * time.Millisecond)
					saved = append(saved, time.Since(begun))
					name := fmt.Sprintf("%s/ckpt-%d", p.variable("TRAINERD_LOGDIR"), step)
					childtest.Write(t, name, "weights")
					childtest.Must(t, os.Chtimes(name, time.Now(), time.Now())) // by the bubble's clock
				}
				return 0
			})
			sv.Nodes, sv.SaveSignal, sv.SaveEvery, sv.SaveBudget = 2, syscall.SIGUSR1, tc.every, tc.budget
			if _, err := sv.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if len(saved) < 5 {
				t.Errorf("%s: saves after %v", tc.name, saved)
			}
			for i, at := range saved[1:] {
				if tc.budget.MaxRisk > 0 && at-saved[i] > tc.budget.MaxRisk+time.Second { // one look
					t.Errorf("%s: the save after %v comes after %v", tc.name, saved[i], at)
				}
			}
		})
	}
}

// TestSlowSaveAtTheStop has a program whose first save is that of its stop, and takes longer than
// what a crash may lose: the log says so before the next run trains at that risk.
func TestSlowSaveAtTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			for step := 1; len(p.signals()) == 0; step++ {
				p.say("step=%d", step)
				time.Sleep(time.Second)
			}
			time.Sleep(5 * time.Minute)
			name := p.variable("TRAINERD_LOGDIR") + "/ckpt-30"
			childtest.Write(t, name, "weights")
			childtest.Must(t, os.Chtimes(name, time.Now(), time.Now())) // by the bubble's clock
			p.sleep(time.Hour)
			return 0
		})
		sv.SaveSignal, sv.SaveBudget, sv.Grace = syscall.SIGUSR1, trainerd.SaveBudget{MaxRisk: time.Minute}, 20*time.Minute
		stop, end := begin(t, sv)
		pass(30500 * time.Millisecond)
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped || !strings.Contains(log.String(), "takes so long to save") {
			t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
		}
	})
}

// TestSaveable has what is lacking of a program that is to save on request.
func TestSaveable(t *testing.T) {
	for want, sv := range map[string]*Supervisor{
		"child.save_signal": {Checkpoints: "ckpt-*"},
		"child.checkpoints": {SaveSignal: syscall.SIGUSR1},
		"":                  {SaveSignal: syscall.SIGUSR1, Checkpoints: "ckpt-*"},
	} {
		if err := sv.saveable(); (err == nil) != (want == "") || err != nil && (!errors.Is(err, errCannotSave) || !strings.Contains(err.Error(), want)) {
			t.Errorf("the error is %v, want one of %q", err, want)
		}
	}
}

// A worker's program follows the pauses of the chief, but is not suspended in the middle of its
// end, in which it may be saving.
func TestFollowChiefPauses(t *testing.T) {
	for _, tc := range []struct {
		ending         *ending
		before, paused bool
		want           []syscall.Signal
	}{
		{nil, false, true, []syscall.Signal{system.SigStop}}, {nil, true, false, []syscall.Signal{system.SigCont}},
		{&ending{}, false, true, nil}, {&ending{}, true, false, []syscall.Signal{system.SigCont}},
		{nil, true, true, nil}, {nil, false, false, nil},
	} {
		program, at := &simProgram{told: make(chan struct{}), ended: make(chan struct{})}, start{"chief", 1}
		f := &follower{chief: "chief", at: at, run: &run{
			Supervisor: &Supervisor{System: &simulated{}}, log: discard, observer: nobody{},
			attempt: attempt{process: &process{alive: true, program: program}, ending: tc.ending, paused: tc.before},
		}}
		f.followChief(jobState{start: at, Paused: tc.paused})
		if got := program.signals(); !slices.Equal(got, tc.want) || f.attempt.paused != (tc.paused && tc.ending == nil) {
			t.Errorf("%+v: it got %v, and is paused: %v", tc, got, f.attempt.paused)
		}
	}
}
