//go:build unix

package child

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// save has a program write a checkpoint, whose time is by the bubble's clock.
func (p *simProgram) save(t *testing.T, name string) {
	name = filepath.Join(p.variable("TRAINERD_LOGDIR"), name)
	childtest.Write(t, name, "weights")
	childtest.Must(t, os.Chtimes(name, time.Now(), time.Now()))
}

// asked returns how often a program was asked to save.
func (p *simProgram) asked() int {
	return len(slices.DeleteFunc(p.signals(), func(s syscall.Signal) bool { return s != syscall.SIGUSR1 }))
}

// savesLate makes steps, and writes the checkpoint of an early one in the background until it
// has been asked to save for a while; then it saves the last step, which takes time, too. A
// checkpoint may have shown before that its names have the steps of its reports.
func savesLate(t *testing.T, early, last string, shown bool) func(p *simProgram) int {
	return func(p *simProgram) int {
		for step := 1; step <= 20; step++ {
			p.say("step=%d", step)
			time.Sleep(time.Second)
			if step == 10 && shown {
				p.save(t, "ckpt-step10")
				p.sleep(2 * time.Second)
			}
		}
		for p.asked() == 0 {
			if !p.sleep(time.Second) {
				return 1
			}
		}
		p.sleep(5 * time.Second)
		p.save(t, early)
		if p.sleep(20 * time.Second) {
			p.save(t, last)
		}
		p.sleep(time.Hour)
		return 0
	}
}

// TestStopAwaitsTheSave stops a program that is about to end a save of its own, which it has begun
// long before: the one that it is asked for is waited for all the same.
func TestStopAwaitsTheSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, savesLate(t, "ckpt-step12", "ckpt-step20", false))
		sv.SaveSignal = syscall.SIGUSR1
		stop, end := begin(t, sv)
		pass(30 * time.Second)
		stop()
		end()
		if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-step20")); err != nil {
			t.Errorf("%v; log:\n%s", err, log)
		}
	})
}

// TestStopLosesTheSave is TestStopAwaitsTheSave with a program that does no more than to end its
// own save: the steps since are lost, and that is said, where the names are known to have steps.
// Else a step may be several of what the reports count.
func TestStopLosesTheSave(t *testing.T) {
	for _, shown := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, savesLate(t, "ckpt-step12", "other", shown))
			sv.SaveSignal = syscall.SIGUSR1
			stop, end := begin(t, sv)
			pass(30 * time.Second)
			stop()
			if exit, err := end(); exit.Cause != Stopped || is[*SaveLostError](err) != shown {
				t.Errorf("shown: %v: Run = %+v, %v; log:\n%s", shown, exit, err, log)
			}
		})
	}
}

// TestOwnSaveIsNoAnswer asks a program to save by the clock while a save of its own, of some steps
// before, is not found yet. It saves for longer than the interval then, and gets no second signal
// meanwhile; nor is it stopped before it has saved.
func TestOwnSaveIsNoAnswer(t *testing.T) {
	for _, tc := range []struct {
		own, name string
		stopped   bool
	}{{"last", "last", true}, {"ckpt-step2", "ckpt-step100", false}} {
		synctest.Test(t, func(t *testing.T) {
			var asked int
			sv, log := simulate(t, func(p *simProgram) int {
				for step := 1; step <= 100 && p.asked() == 0; step++ {
					if p.say("step=%d", step); step == 96 {
						p.save(t, tc.own)
					}
					p.sleep(time.Second)
				}
				if asked = p.asked(); p.sleep(250 * time.Second) {
					asked = p.asked()
					p.save(t, tc.name)
				}
				p.sleep(time.Hour)
				return 0
			})
			sv.Checkpoints, sv.SaveSignal, sv.SaveEvery, sv.ScanEvery = tc.own[:4]+"*", syscall.SIGUSR1, 100*time.Second, 20*time.Second
			sv.Grace = time.Hour
			stop, end := begin(t, sv)
			pass(340 * time.Second)
			if tc.stopped {
				stop()
			}
			pass(30 * time.Second)
			stop()
			if _, err := end(); err != nil || !tc.stopped && asked != 1 {
				t.Errorf("%s: %v; it was asked to save %d times; log:\n%s", tc.own, err, asked, log)
			}
		})
	}
}

// TestOlderSaveIsTheAnswer has a program that has ended a save of its own, which no scan has found
// yet, and is asked to save then: that is the answer if it has the steps that had been reported, but
// for one that may be counted ahead.
func TestOlderSaveIsTheAnswer(t *testing.T) {
	for _, tc := range []struct {
		reported int
		name     string
		want     bool
	}{{0, "ckpt-step0", true}, {5, "ckpt-step4", true}, {6, "ckpt-step4", false}} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				p.say("step=%d", tc.reported)
				p.save(t, tc.name)
				p.sleep(time.Minute)
				return 0
			})
			sv.SaveSignal, sv.ScanEvery = syscall.SIGUSR1, 20*time.Second
			begin(t, sv)
			pass(5 * time.Second)
			if c, err := sv.Save(t.Context()); (err == nil) != tc.want || tc.want && filepath.Base(c.Path) != tc.name {
				t.Errorf("after step %d: %v, %v; log:\n%s", tc.reported, c, err, log)
			}
		})
	}
}

// TestSaveDuringAStop asks for a save while a program is being stopped, which has saved since and
// trains on: that save is the answer.
func TestSaveDuringAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			p.say("step=1")
			for step := 2; step <= 40; step++ {
				p.sleepDeaf(time.Second)
				if p.say("step=%d", step); step == 32 {
					p.save(t, "ckpt-last")
				}
			}
			p.sleepDeaf(time.Minute)
			return 0
		})
		sv.SaveSignal, sv.ScanEvery, sv.Grace = syscall.SIGUSR1, 20*time.Second, time.Hour
		stop, end := begin(t, sv)
		pass(30*time.Second + time.Millisecond)
		stop()
		pass(8 * time.Second)
		if c, err := sv.Save(t.Context()); err != nil || filepath.Base(c.Path) != "ckpt-last" {
			t.Errorf("Save = %v, %v; log:\n%s", c, err, log)
		}
		end()
	})
}

// TestIsFromAnEnd has checkpoints that are dated about when an end began: a kernel dates a file that
// is written right after the signal a little before it.
func TestIsFromAnEnd(t *testing.T) {
	begun := time.Now()
	for _, tc := range []struct {
		name  string
		saved time.Duration // after the end began
		step  int64         // when it began, -1 without reports
		want  bool
	}{
		{"last", time.Second, 7, true},
		{"last", 0, 7, true},
		{"last", 1 - diskTick, 7, true},
		{"last", -diskTick, 7, false},
		{"ckpt-6", 0, 7, false},
		{"ckpt-6", 1, 7, true},
		{"ckpt-7", -diskTick, 7, true},
		{"ckpt-7", -diskTick, -1, false},
		{"ckpt-0", -diskTick, 0, true},
	} {
		c := foundAt(t, tc.name, found.Moment{})
		c.Saved = begun.Add(tc.saved)
		if got := (&ending{begun: begun, step: tc.step}).isFrom(c); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}
