//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// stopAt runs a program and stops it once it has printed "ready".
func stopAt(t *testing.T, sv *Supervisor, out *screen) (Exit, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		out.await(t, "ready")
		cancel()
	}()
	return sv.Run(ctx)
}

// TestStopSavesFirst has a program that saves on a signal only, and dies of
// SIGTERM.
func TestStopSavesFirst(t *testing.T) {
	sv, out := supervise(t, "onsignal ckpt-3 steps 1 3;sleep")
	sv.SaveSignal, sv.Grace = syscall.SIGUSR1, patience
	exit, err := stopAt(t, sv, out)
	if err != nil || exit.Cause != Stopped || !slices.Contains(marks(t, sv.Logdir), "CHECKPOINT@3") {
		t.Errorf("Run = %+v, %v; marks %v", exit, err, marks(t, sv.Logdir))
	}
}

// TestStopLosesSave has programs that are stopped without a checkpoint of their
// last steps.
func TestStopLosesSave(t *testing.T) {
	for name, script := range map[string]string{
		"dies of SIGTERM": "write ckpt-1;steps 1 3;say ready;sleep",
		"ends without it": "write ckpt-1;steps 1 3;polite ../lost",
		"a torn one":      "write ckpt-1;steps 1 3;polite ckpt-3.npz",
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, script)
			exit, err := stopAt(t, sv, out)
			var lost *SaveLostError
			if exit.Cause != Stopped || !errors.As(err, &lost) || lost.Step != 3 || lost.Saved != 1 {
				t.Errorf("Run = %+v, %v", exit, err)
			}
		})
	}
}

// TestStopLosesSaveInPlace has programs that save to one name: its time says which steps
// it has.
func TestStopLosesSaveInPlace(t *testing.T) {
	for script, want := range map[string]bool{
		"write last;steps 1 1;pause;steps 2 3;say ready;sleep":         true,
		"steps 1 3;pause;write last;say ready;sleep":                   false,
		"steps 1 2;pause;write last;steps 3 3;say ready;sleep":         false, // it says what it has saved
		"write last;steps 1 1;pause;steps 2 3;polite last":             false,
		"steps 1 3;pause;write ckpt-epoch_1;say ready;sleep":           false,
		"steps 1 3;write ckpt-epoch_1;pause;steps 4 6;say ready;sleep": true,
	} {
		sv, out := supervise(t, script)
		sv.Checkpoints = "ckpt-epoch_*"
		if strings.Contains(script, "last") {
			sv.Checkpoints = "last"
		}
		exit, err := stopAt(t, sv, out)
		if _, lost := errors.AsType[*SaveLostError](err); exit.Cause != Stopped || lost != want || err != nil && !lost || strings.Contains(fmt.Sprint(err), "-1") {
			t.Errorf("%s: Run = %+v, %v; want that steps are lost: %v", script, exit, err, want)
		}
	}
}

// TestStopOfSilentProgram has programs that report nothing: what they have saved says
// whether they train.
func TestStopOfSilentProgram(t *testing.T) {
	for script, want := range map[string]bool{
		"write ckpt-1;pause;say ready;sleep": true,
		"write ckpt-1;pause;polite ckpt-2":   false,
		"write ckpt-9;pause;say ready;sleep": false, // it has done all
		"say ready;sleep":                    false, // it may still be loading
	} {
		sv, out := supervise(t, script)
		sv.Steps = 9
		exit, err := stopAt(t, sv, out)
		if _, lost := errors.AsType[*SaveLostError](err); exit.Cause != Stopped || lost != want || err != nil && !lost || strings.Contains(fmt.Sprint(err), "-1 ") {
			t.Errorf("%s: Run = %+v, %v; want that steps are lost: %v", script, exit, err, want)
		}
	}
}

// TestStopAfterDeletion stops a program that has reported nothing yet, when somebody has
// deleted what it began from.
func TestStopAfterDeletion(t *testing.T) {
	sv, out := supervise(t, "write ckpt-1;steps 1 1")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	sv.Command = []string{"/bin/sh", "-c", `rm "$TRAINERD_CHECKPOINT"; echo ready; exec sleep 1000`}
	exit, err := stopAt(t, sv, out)
	if _, lost := errors.AsType[*SaveLostError](err); exit.Cause != Stopped || !lost {
		t.Errorf("Run = %+v, %v; want lost steps", exit, err)
	}
}

// TestStopSavesInPlace has a program that overwrites its only checkpoint, which is seen
// when more steps are made: it is asked for them at a stop.
func TestStopSavesInPlace(t *testing.T) {
	sv, out := supervise(t, "write last;steps 1 1;pause;onsignal last steps 2 3;sleep")
	sv.SaveSignal, sv.Grace, sv.Checkpoints, sv.ScanEvery = syscall.SIGUSR1, patience, "last", 4*inFlight
	ctx, cancel := context.WithCancel(t.Context())
	sv.Observer = whenSaved{nobody{}, cancel}
	exit, err := sv.Run(ctx)
	if err != nil || exit.Cause != Stopped || !strings.Contains(out.String(), "ready") {
		t.Errorf("Run = %+v, %v", exit, err)
	}
}

// whenSaved calls stop when a checkpoint is there.
type whenSaved struct {
	nobody
	stop func()
}

func (w whenSaved) Saved(Checkpoint) { w.stop() }

// TestStopOfDeafProgram has programs that train and save until they are killed, as they take no
// notice of SIGTERM: they lose the steps after their last checkpoint, whenever that was. One that
// saves after SIGTERM, and then only does not end, loses nothing.
func TestStopOfDeafProgram(t *testing.T) {
	for _, tc := range []struct {
		every    int  // it saves after so many steps
		trainsOn bool // after SIGTERM
		lost     string
	}{
		{every: 10, trainsOn: true, lost: "stopped at step 37 without saving; it continues from step 30 "},
		{every: 1000, trainsOn: true, lost: "stopped at step 37 and has saved nothing"},
		{every: 1, trainsOn: true},
		{every: 1000, trainsOn: false},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				save := func(step int) {
					name := filepath.Join(p.variable("TRAINERD_LOGDIR"), fmt.Sprint("ckpt-", step))
					childtest.Write(t, name, "weights")
					childtest.Must(t, os.Chtimes(name, time.Now(), time.Now())) // by the bubble's clock
				}
				told := func() bool { return slices.Contains(p.signals(), syscall.SIGTERM) }
				step := 0
				for p.sleepDeaf(time.Second) && (tc.trainsOn || !told()) {
					step++
					if p.say("step=%d", step); step%tc.every == 0 {
						save(step)
					}
				}
				if p.sleepDeaf(time.Millisecond) {
					save(step)
					p.sleepDeaf(time.Hour)
				}
				return 0
			})
			sv.Grace = 25 * time.Second
			stop, end := begin(t, sv)
			time.Sleep(12500 * time.Millisecond) // 12 steps; 25 more follow until it is killed
			stop()
			exit, err := end()
			if exit.Cause != Stopped || exit.Signal != syscall.SIGKILL || is[*SaveLostError](err) != (tc.lost != "") {
				t.Errorf("%+v: Run = %+v, %v", tc, exit, err)
			}
			if text := fmt.Sprint(err); tc.lost == "" && err != nil || !strings.Contains(text, tc.lost) {
				t.Errorf("%+v: %s", tc, text)
			}
		})
	}
}

// TestStopTellsProgramFirst has a launcher that ends its worker by its own means,
// and a worker that would die of SIGTERM.
func TestStopTellsProgramFirst(t *testing.T) {
	sv, out := supervise(t, "")
	sv.Grace = patience
	sv.Command = []string{"/bin/sh", "-c", `
trap 'echo told; : >"$TRAINERD_LOGDIR/go"' TERM
(trap 'echo worker died' TERM; while [ ! -e "$TRAINERD_LOGDIR/go" ]; do sleep 0.01; done; echo saved >"$TRAINERD_LOGDIR/ckpt-3") &
echo step=3; echo ready; wait; wait`}
	exit, err := stopAt(t, sv, out)
	if err != nil || exit.Cause != Stopped || slices.Contains(linesOf(out), "worker died") {
		t.Errorf("Run = %+v, %v; output %q", exit, err, out)
	}
}

// TestStopTellsGroupLater has a shell that dies of SIGTERM, and a program below
// it that saves then.
func TestStopTellsGroupLater(t *testing.T) {
	sv, out := supervise(t, "")
	sv.Grace = patience
	sv.Command = []string{"/bin/sh", "-c", `
sh -c 'trap "echo saved >$TRAINERD_LOGDIR/ckpt-3; exit" TERM; echo step=3; echo ready; while :; do sleep 0.01; done' &
wait`}
	begun := time.Now()
	if exit, err := stopAt(t, sv, out); err != nil || exit.Cause != Stopped || time.Since(begun) > patience/2 {
		t.Errorf("Run = %+v, %v; output %q", exit, err, out)
	}
}

// TestReapsOrphans has a program that leaves processes to the first process of
// the container, also on a worker: they are there until somebody has waited for them.
func TestReapsOrphans(t *testing.T) {
	if err := becomeReaper(1); err != nil {
		t.Skip(err)
	}
	before := reaps
	reaps = true
	t.Cleanup(func() { reaps = before; becomeReaper(0) })
	for nodes := 1; nodes <= 2; nodes++ {
		sv, out := supervise(t, "")
		if sv.Nodes, sv.Node = nodes, nodes-1; sv.Node == 1 {
			lead(t, sv.Logdir)
		}
		sv.Command = []string{"/bin/sh", "-c", `orphan=$(sh -c 'sleep 0.01 >/dev/null & echo $!'); while kill -0 $orphan; do sleep 0.01; done; echo ready`}
		if exit, err := stopAt(t, sv, out); err != nil || exit.Cause == Failed {
			t.Errorf("%d nodes: Run = %+v, %v", nodes, exit, err)
		}
	}
}

// failingDisk fails whatever is done to it once it is broken.
type failingDisk struct {
	atomicfile.FS
	broken *atomic.Bool
}

func (d failingDisk) check() error {
	if d.broken.Load() {
		return syscall.EIO
	}
	return nil
}

func (d failingDisk) Create(name string) (atomicfile.File, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return failingFile{f, d}, nil
}

// failingFile is a file of a failingDisk.
type failingFile struct {
	atomicfile.File
	disk failingDisk
}

func (f failingFile) Write(b []byte) (int, error) {
	if err := f.disk.check(); err != nil {
		return 0, &fs.PathError{Op: "write", Path: "a file", Err: err}
	}
	return f.File.Write(b)
}

func (d failingDisk) Rename(from, to string) error {
	if err := d.check(); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

func (d failingDisk) SyncDir(name string) error {
	if err := d.check(); err != nil {
		return err
	}
	return d.FS.SyncDir(name)
}

// TestStopOnBadDisk has a program that saves at a stop, while the disk takes nothing from
// trainerd: what cannot be made durable is not a checkpoint to promise, and stays where it is.
func TestStopOnBadDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-1"), "weights")
			p.sleep(time.Minute)
			p.say("step=3")
			for !slices.Contains(p.signals(), syscall.SIGUSR1) {
				p.sleepDeaf(time.Second)
			}
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-3"), "weights")
			p.sleep(time.Hour)
			return 0
		})
		broken := new(atomic.Bool)
		sv.SaveSignal, sv.FS = syscall.SIGUSR1, failingDisk{atomicfile.OrOS(nil), broken}
		sv.Observer = whenSaved{nobody{}, func() { broken.Store(true) }}
		stop, end := begin(t, sv)
		time.Sleep(2 * time.Minute)
		stop()
		exit, err := end()
		if lost, is := errors.AsType[*SaveLostError](err); !is || lost.Saved != 1 || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v; want that the steps after 1 are lost", exit, err)
		}
		if got := checkpointsIn(t, sv.Logdir); !slices.Equal(got, []string{"ckpt-1", "ckpt-3"}) {
			t.Errorf("checkpoints %v", got)
		}
	})
}

// TestStopHearsReports stops a program when reports of it wait to be heard: of the steps since
// its last checkpoint, for which it is asked to save. Which of the two a run hears first is left to
// chance, so that there are several.
func TestStopHearsReports(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			saved := make(chan struct{})
			sv, log := simulate(t, func(p *simProgram) int {
				p.say("step=3")
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-3.npz"), childtest.Zip(t))
				<-saved
				p.say("step=4")
				for !slices.Contains(p.signals(), syscall.SIGUSR1) && p.sleep(time.Second) {
				}
				if slices.Contains(p.signals(), syscall.SIGUSR1) {
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-4.npz"), childtest.Zip(t))
				}
				p.sleep(time.Hour)
				return 0
			})
			ctx, stop := context.WithCancel(t.Context())
			sv.SaveSignal = syscall.SIGUSR1
			sv.Observer = whenSaved{nobody{}, func() { // in the goroutine of the run
				if ctx.Err() == nil {
					close(saved)
					synctest.Wait()
					stop()
				}
			}}
			if exit, err := sv.Run(ctx); err != nil || exit.Step != 4 {
				t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
			}
		})
	}
}

// TestNaNBeforeHang has a program that hangs after its loss was NaN: it goes back, and
// continues from there.
func TestNaNBeforeHang(t *testing.T) {
	sv, out := supervise(t, "steps 1 10;write ckpt-10;await trainerd.manifests;say step=900 loss=nan;sleep|env STEP;steps 11 12")
	sv.MaxRewinds, sv.HangAfter = 1, time.Minute
	exit, err := sv.Run(t.Context())
	if err != nil || exit.Cause != Completed || exit.Attempt != 2 || !strings.Contains(out.String(), `STEP is "10"`) {
		t.Errorf("Run = %+v, %v; output:\n%s", exit, err, out)
	}
}

// TestStopDuringPreparation has a stop while the next start is prepared: the program, which
// would have to save before it has loaded anything, is not started.
func TestStopDuringPreparation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, _ := simulate(t, func(*simProgram) int { starts++; return 1 })
		ctx, stop := context.WithCancel(t.Context())
		ends := &seesEnds{}
		sv.Observer = whenStarted{ends, stop}
		exit, err := sv.Run(ctx)
		if want := (Exit{Attempt: 1, Cause: Stopped, Code: -1, Step: -1}); err != nil || !reflect.DeepEqual(exit, want) || starts != 0 {
			t.Errorf("Run = %+v, %v after %d starts", exit, err, starts)
		}
		if len(ends.seen) != 1 || ends.again[0] || !reflect.DeepEqual(ends.seen[0], exit) {
			t.Errorf("the observer saw %+v", ends)
		}
	})
}

// whenStarted calls stop before a start.
type whenStarted struct {
	Observer
	stop func()
}

func (w whenStarted) Started(int, *Checkpoint) { w.stop() }

// TestStopContinuesProgram: a program that somebody has stopped would not see SIGTERM, and
// would be killed without a save.
func TestStopContinuesProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, _ := simulate(t, func(p *simProgram) int {
			program = p
			p.sleepDeaf(5 * time.Second)
			return 0
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if exit, err := sv.Run(ctx); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got, want := program.signals(), []syscall.Signal{system.SigTerm, system.SigCont}; !slices.Equal(got, want) {
			t.Errorf("it got %v, want %v", got, want)
		}
	})
}

// TestOutliving has a program that saves all and ends at a stop, but for data loaders that
// ignore SIGTERM: they do not hold up the stop. Where it has not saved, they may.
func TestOutliving(t *testing.T) {
	for saves, want := range map[bool]time.Duration{true: leftoverGrace, false: 99 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var ended time.Time
			sv, out := simulate(t, func(p *simProgram) int {
				p.say("step=1")
				p.sleep(time.Hour)
				if saves {
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-1.json"), "{}")
				}
				ended = time.Now()
				p.leave(time.Hour, system.SigKill)
				return 0
			})
			sv.Grace, sv.Checkpoints = 100*time.Second, "ckpt-*"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var begun time.Time
			time.AfterFunc(time.Minute, func() { begun = time.Now(); cancel() })
			if exit, _ := sv.Run(ctx); exit.Cause != Stopped {
				t.Errorf("got %v", exit)
			}
			if took := time.Since(ended); took < want || took > want+5*time.Second {
				t.Errorf("saved %v: the stop takes %v after the end of the program, want %v", saves, took, want)
			}
			if text := childtest.Read(t, filepath.Join(sv.Logdir, "run-report.md")); !strings.Contains(text, fmt.Sprintf(" training, %v stopping", time.Since(begun).Round(time.Millisecond))) {
				t.Errorf("the report has another time to stop than %v:\n%s", time.Since(begun), text)
			}
			if said := strings.Count(out.String(), `for="the end of what the program has left running"`); (said > 0) == saves || strings.Contains(out.String(), `for="the program to end"`) {
				t.Errorf("saved %v: the log has %d times what is waited for:\n%s", saves, said, out)
			}
		})
	}
}

// lateReader takes long for each report, as on a machine that has no time for it.
type lateReader struct{ nobody }

func (lateReader) Reported(*Report) { time.Sleep(10 * inFlight) }

// TestStopAfterLateReports has a program that overwrites its only checkpoint after its last
// step, and reports that wait to be taken: they are as old as when they came.
func TestStopAfterLateReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		sv, _ = simulate(t, func(p *simProgram) int {
			for step := range 5 {
				p.say("step=%d", step+1)
			}
			name := filepath.Join(sv.Logdir, "last")
			childtest.Write(t, name, "state")
			childtest.Must(t, os.Chtimes(name, time.Now(), time.Now()))
			p.sleep(time.Hour)
			return 0
		})
		sv.Checkpoints, sv.Observer = "last", lateReader{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if exit, err := sv.Run(ctx); err != nil || exit.Cause != Stopped || exit.Step != 5 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}
