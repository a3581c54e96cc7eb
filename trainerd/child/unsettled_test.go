//go:build unix

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// slowDisk is a disk on which the sync of the files of one name takes until it is told how that ends.
type slowDisk struct {
	atomicfile.FS
	name string
	ends chan error
}

func (d slowDisk) SyncFile(name string) error {
	if filepath.Base(name) == d.name {
		return <-d.ends
	}
	return nil
}

// killedAfterSave simulates a program whose first start fails just after it has saved for the last time,
// on a disk that does not make that durable before it is told to.
func killedAfterSave(t *testing.T, reports bool, second func(p *simProgram) int) (sv *Supervisor, log *screen, disk slowDisk) {
	t.Helper()
	disk = slowDisk{atomicfile.OrOS(nil), "ckpt-2.safetensors", make(chan error)}
	sv, log = simulate(t, func(p *simProgram) int {
		if p.variable("TRAINERD_ATTEMPT") != "1" {
			return second(p)
		}
		for step := 1; step <= 2; step++ {
			if reports {
				p.say("step=%d loss=1", step)
			}
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-"+string(rune('0'+step))+".safetensors"), childtest.TensorsOf(step))
			if step == 1 {
				p.sleep(10 * time.Second)
			}
		}
		return 1
	})
	sv.FS, sv.Retention = disk, []retention.Policy{retention.Last(1)}
	return sv, log, disk
}

// TestStartsBeforeItIsDurable has a program that fails just after it has saved: it is started again at once,
// from that checkpoint, which counts only once the disk has taken it. Until then the one before stays.
func TestStartsBeforeItIsDurable(t *testing.T) {
	for _, reports := range []bool{true, false} {
		for _, fails := range []error{nil, &fs.PathError{Op: "sync", Err: syscall.EIO}} {
			synctest.Test(t, func(t *testing.T) {
				given := ""
				sv, log, disk := killedAfterSave(t, reports, func(p *simProgram) int {
					given = p.variable("TRAINERD_CHECKPOINT")
					p.sleep(time.Hour)
					return 0
				})
				stop, end := begin(t, sv)
				pass(15 * time.Second)
				older, newer := filepath.Join(sv.Logdir, "ckpt-1.safetensors"), filepath.Join(sv.Logdir, disk.name)
				if given != newer || !strings.Contains(log.String(), "pause=0s") {
					t.Errorf("the second start is given %q\n%s", given, log)
				}
				if text := log.String(); strings.Contains(text, "msg=saved step=2") || !exists(older) {
					t.Errorf("it counts before it is durable\n%s", text)
				}
				disk.ends <- fails
				pass(time.Millisecond)
				if counts := strings.Contains(log.String(), "msg=saved step=2"); counts != (fails == nil) || exists(older) == counts {
					t.Errorf("then (%v) it counts: %v\n%s", fails, counts, log)
				}
				stop()
				if fails != nil {
					close(disk.ends)
				}
				if exit, err := end(); exit.Cause != Stopped || err != nil {
					t.Errorf("Run = %+v, %v\n%s", exit, err, log)
				}
			})
		}
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// TestSettledAtTheEnd has no second start: what was saved counts before the run ends.
func TestSettledAtTheEnd(t *testing.T) {
	for name, change := range map[string]func(sv *Supervisor){
		"no more starts":   func(sv *Supervisor) { sv.Restarts.Max = -1 },
		"it cannot start":  func(sv *Supervisor) { sv.Command = []string{filepath.Join(sv.Logdir, "gone")} },
		"not a better one": func(sv *Supervisor) { sv.Restarts.Window = time.Hour },
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, log, disk := killedAfterSave(t, true, func(*simProgram) int { return 1 })
			change(sv)
			if name == "it cannot start" {
				system := sv.System.(*simulated)
				program := system.program
				system.program = func(p *simProgram) int {
					defer func() { system.fails = errors.New("no such program") }()
					return program(p)
				}
			}
			_, end := begin(t, sv)
			pass(15 * time.Second)
			close(disk.ends)
			if _, err := end(); err == nil || !strings.Contains(log.String(), "msg=saved step=2") {
				t.Errorf("%s: Run = %v\n%s", name, err, log)
			}
		})
	}
}

// TestSettledBeforeTheEndIsSaid has a program that saves and ends well: the job is said to be complete once that counts.
func TestSettledBeforeTheEndIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			p.say("step=2 loss=1")
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-2.safetensors"), childtest.TensorsOf(2))
			return 0
		})
		_, err := sv.Run(t.Context())
		if before, _, ends := strings.Cut(log.String(), "cause=completed"); err != nil || !ends || !strings.Contains(before, "msg=saved step=2") {
			t.Errorf("Run = %v\n%s", err, log)
		}
	})
}

// TestNewestOfWhatIsNotDurable has a program that saves for the last time just before it fails. What it is given next is
// the newest by its step, as if there had been time to make that durable.
func TestNewestOfWhatIsNotDurable(t *testing.T) {
	for _, tc := range []struct {
		steps []int // the last one just before it fails
		want  string
	}{{[]int{0}, "0"}, {[]int{10, 20}, "20"}, {[]int{10, 5}, "10"}} {
		synctest.Test(t, func(t *testing.T) {
			var sv *Supervisor
			given := ""
			sv, log := simulate(t, func(p *simProgram) int {
				if given = p.variable("TRAINERD_STEP"); p.variable("TRAINERD_ATTEMPT") == "2" {
					return 0
				}
				for i, step := range tc.steps {
					if i > 0 {
						p.sleep(10 * time.Second)
					}
					childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", step)), childtest.TensorsOf(step))
				}
				return 1
			})
			if _, err := sv.Run(t.Context()); err != nil || given != tc.want {
				t.Errorf("%d: Run = %v, given %q\n%s", tc.steps, err, given, log)
			}
		})
	}
}

// TestDamagedIsSettled has a program that fails while it saves: the next start waits until it is known what is
// damaged, and that is out of the way.
func TestDamagedIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		given := ""
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_ATTEMPT") != "1" {
				given = p.variable("TRAINERD_CHECKPOINT")
				return 0
			}
			p.say("step=1 loss=1")
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-1.safetensors"), childtest.TensorsOf(1))
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-2.safetensors"), childtest.TensorsOf(2)[:99])
			return 1
		})
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 || filepath.Base(given) != "ckpt-1.safetensors" || exists(filepath.Join(sv.Logdir, "ckpt-2.safetensors")) {
			t.Errorf("Run = %+v, %v, given %q\n%s", exit, err, given, log)
		}
	})
}

// TestUnsettledIsProgress has a program without reports: that it got further, and is started again without a
// pause, is known by what it has saved a moment ago.
func TestUnsettledIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := slowDisk{atomicfile.OrOS(nil), "ckpt-2.safetensors", make(chan error)}
		starts := 0
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			if starts++; starts == 1 {
				childtest.Write(t, filepath.Join(sv.Logdir, disk.name), childtest.TensorsOf(2))
				return 1
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.FS, sv.Restarts.Backoff = disk, time.Hour
		stop, end := begin(t, sv)
		pass(time.Minute)
		if starts != 2 {
			t.Errorf("%d starts\n%s", starts, log)
		}
		close(disk.ends)
		stop()
		if exit, err := end(); exit.Cause != Stopped || err != nil {
			t.Errorf("Run = %+v, %v\n%s", exit, err, log)
		}
	})
}

// TestSavedForSomebody has a program that fails as soon as it has saved because somebody asked for that: the
// answer is that checkpoint, and the next start waits until it counts.
func TestSavedForSomebody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := slowDisk{atomicfile.OrOS(nil), "ckpt-2.safetensors", make(chan error)}
		starts := 0
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			if starts++; starts > 1 {
				p.sleep(time.Hour)
				return 0
			}
			p.say("step=2 loss=1")
			for !slices.Contains(p.signals(), syscall.SIGUSR1) {
				time.Sleep(time.Second)
			}
			childtest.Write(t, filepath.Join(sv.Logdir, disk.name), childtest.TensorsOf(2))
			return 1
		})
		sv.FS, sv.SaveSignal = disk, syscall.SIGUSR1
		stop, end := begin(t, sv)
		pass(time.Minute)
		time.AfterFunc(time.Minute, func() {
			if starts != 1 {
				t.Errorf("%d starts before the checkpoint counts", starts)
			}
			close(disk.ends)
		})
		if c, err := sv.Save(t.Context()); err != nil || c.Step != 2 {
			t.Errorf("Save = %+v, %v\n%s", c, err, log)
		}
		pass(time.Minute)
		stop()
		if exit, err := end(); starts != 2 || exit.Cause != Stopped || err != nil {
			t.Errorf("%d starts, Run = %+v, %v\n%s", starts, exit, err, log)
		}
	})
}

// TestSettledInThePause has a start that saves, and gets no further than the one before: what it has saved
// counts long before the next start, which comes after a pause.
func TestSettledInThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			if starts++; starts == 1 {
				p.say("step=3 loss=1")
				return 1
			}
			p.say("step=2 loss=1")
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-2.safetensors"), childtest.TensorsOf(2))
			return 1
		})
		sv.Restarts.Backoff = time.Hour
		stop, end := begin(t, sv)
		pass(time.Minute)
		if starts != 2 || !strings.Contains(log.String(), "msg=saved step=2") {
			t.Errorf("%d starts\n%s", starts, log)
		}
		stop()
		end()
	})
}

// TestSettledBeforeItIsPassedOver has a program that fails twice with what it has saved last, while the disk still takes
// that: once that is done, it is given the one before.
func TestSettledBeforeItIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		sv, log, disk := killedAfterSave(t, false, func(p *simProgram) int {
			given = append(given, filepath.Base(p.variable("TRAINERD_CHECKPOINT")))
			p.sleep(10 * time.Second) // no pause is left to wait in
			if len(given) < 3 {
				return 1
			}
			return 0
		})
		sv.Retention = nil
		time.AfterFunc(time.Hour, func() {
			if len(given) != 2 {
				t.Errorf("given %q before it is known whether the newest counts", given)
			}
			close(disk.ends)
		})
		_, err := sv.Run(t.Context())
		if want := []string{disk.name, disk.name, "ckpt-1.safetensors"}; err != nil || !slices.Equal(given, want) {
			t.Errorf("Run = %v, given %q\n%s", err, given, log)
		}
	})
}

// seesBoth is an observer of reports and saves.
type seesBoth struct {
	nobody
	reported func(report *Report)
	saved    func(c Checkpoint)
}

func (w seesBoth) Reported(report *Report) { w.reported(report) }
func (w seesBoth) Saved(c Checkpoint)      { w.saved(c) }

// TestReportsBeforeVerdicts has reports wait while a checkpoint becomes durable: they may be of the steps that it has, so
// they are taken first.
func TestReportsBeforeVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := slowDisk{atomicfile.OrOS(nil), "ckpt-2.safetensors", make(chan error)}
		var sv *Supervisor
		sv, log := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(sv.Logdir, disk.name), childtest.TensorsOf(2))
			p.sleep(11 * time.Second)
			for step := 1; step <= 50; step++ {
				p.say("step=%d loss=1", step)
			}
			p.sleep(10 * time.Second)
			return 0
		})
		last, saved := int64(0), false
		sv.FS, sv.ScanEvery = disk, 5*time.Second
		sv.Observer = seesBoth{reported: func(report *Report) {
			if last = report.Step; last == 1 { // the others come while this is handled, and so does the verdict
				close(disk.ends)
				time.Sleep(time.Second)
			}
		}, saved: func(Checkpoint) {
			if saved = true; last != 50 {
				t.Errorf("it counts when reports up to step %d are taken\n%s", last, log)
			}
		}}
		if _, err := sv.Run(t.Context()); err != nil || !saved {
			t.Errorf("Run = %v, saved: %v\n%s", err, saved, log)
		}
	})
}
