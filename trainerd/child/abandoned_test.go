//go:build unix

package child

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// launched is a system whose program has a rank in a session of its own, with its outputs
// open, which outlives it until it is killed.
type launched struct {
	*simulated
	launcher *simProgram
	ended    time.Time // when the rank was, zero before
}

func (s *launched) SignalAll(_ string, _ []int, sig syscall.Signal) {
	if sig != system.SigKill {
		return
	}
	s.leave()
	s.launcher.out.Close()
	s.launcher.err.Close()
	s.ended = time.Now()
}

// TestRanksOfFailedLauncher has a launcher end before its ranks: those of one that has
// failed are ended before they train on without it, and before the next start has to wait
// for them; those of one that has succeeded, or is being stopped, may still be saving.
func TestRanksOfFailedLauncher(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int
		stop bool
		now  bool // the ranks are ended with the launcher
	}{
		{"it fails", 1, false, true},
		{"it was preempted", 75, false, true},
		{"it succeeds", 0, false, false},
		{"it is stopped", 143, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			on := &launched{}
			var over time.Time
			sv, log := simulate(t, func(p *simProgram) int {
				if on.launcher != nil { // the next start
					return 0
				}
				on.launcher = p
				on.leave(7)
				p.holdOutputs()
				p.say("step=7 loss=1")
				p.sleep(10 * time.Second)
				over = time.Now()
				return tc.code
			})
			on.simulated = sv.System.(*simulated)
			sv.System = on
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.stop {
				time.AfterFunc(5*time.Second, cancel)
			}
			sv.Run(ctx)
			if now := !on.ended.IsZero() && on.ended.Sub(over) <= time.Second; now != tc.now {
				t.Errorf("%s: at once is %v, want %v: the launcher ended at %v, its rank at %v; log:\n%s", tc.name, now, tc.now, over, on.ended, log)
			}
		})
	}
}

// TestRanksOfFailedLauncherOnWorker is that of a launcher that fails on a worker's node: the chief
// learns at once that it has.
func TestRanksOfFailedLauncherOnWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &launched{}
		var over time.Time
		sv, log := simulateFollower(t, func(p *simProgram) int {
			on.launcher = p
			on.leave(7)
			p.holdOutputs()
			p.sleep(10 * time.Second)
			over = time.Now()
			return 1
		})
		on.simulated = sv.System.(*simulated)
		sv.System = on
		begin(t, sv)
		pass(12 * time.Second)
		told := (&nodes{dir: filepath.Join(sv.Logdir, nodesDir), count: 2}).others()[1]
		if over.IsZero() || on.ended.Sub(over) > time.Second || told.Phase != nodeEnded || told.Code != 1 {
			t.Errorf("the launcher failed at %v, its rank was ended at %v, and the chief was told %+v; log:\n%s", over, on.ended, told, log)
		}
	})
}

// TestDeafRanksOfStoppedLauncher has a stop end a launcher whose rank takes no notice of SIGTERM:
// it is killed when its time is over, and not after its outputs have been waited for too; the
// log says what is waited for, and what was killed.
func TestDeafRanksOfStoppedLauncher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &launched{}
		var over time.Time
		sv, log := simulate(t, func(p *simProgram) int {
			on.launcher = p
			on.leave(7)
			p.holdOutputs()
			p.say("step=7 loss=1")
			p.sleep(time.Hour)
			over = time.Now()
			return 143
		})
		on.simulated = sv.System.(*simulated)
		sv.System = on
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		stop()
		if exit, err := end(); exit.Cause != Stopped || time.Since(over) > leftoverGrace+time.Second {
			t.Errorf("Run = %+v, %v, %v after the launcher's end", exit, err, time.Since(over))
		}
		if on.ended.Sub(over) < leftoverGrace {
			t.Errorf("the rank had %v", on.ended.Sub(over))
		}
		for _, want := range []string{"waiting for processes that it has left", "killed processes that the program has left"} {
			if strings.Count(log.String(), want) != 1 || strings.Contains(log.String(), "earlier start") {
				t.Errorf("the log has %q not just once:\n%s", want, log)
			}
		}
		if !strings.Contains(log.String(), "pids=[7]") {
			t.Errorf("the log does not name the rank:\n%s", log)
		}
	})
}

// TestRanksWhoseLossIsNaN has a launcher whose ranks are in a session of their own: they are
// ended with it when the loss is NaN, and do not train on with what is of no use.
func TestRanksWhoseLossIsNaN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &launched{}
		var said time.Time
		sv, log := simulate(t, func(p *simProgram) int {
			on.launcher = p
			on.leave(7)
			p.holdOutputs()
			said = time.Now()
			p.say("step=7 loss=nan")
			p.sleep(time.Hour)
			return 1
		})
		on.simulated = sv.System.(*simulated)
		sv.System, sv.MaxRewinds = on, 1
		if _, err := sv.Run(t.Context()); !is[*trainerd.NaNError](err) || on.ended.Sub(said) > time.Second {
			t.Errorf("Run: %v; the rank ended %v after the loss was NaN; log:\n%s", err, on.ended.Sub(said), log)
		}
	})
}

// saving is a system whose program has a rank in a session of its own, which takes a while to
// save after SIGTERM.
type saving struct {
	*simulated
	logdir string

	mu  sync.Mutex
	got []syscall.Signal // by the rank
}

func (s *saving) SignalAll(_ string, _ []int, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got = append(s.got, sig); sig != system.SigTerm {
		return
	}
	time.AfterFunc(leftoverGrace-time.Second, func() {
		os.WriteFile(filepath.Join(s.logdir, "ckpt-7"), []byte("weights"), 0o666)
		s.leave()
	})
}

// TestRankSavesAfterItsLauncher has a stop end a launcher that does not pass on SIGTERM to its
// rank, which is in a session of its own: the rank gets it, too, and the time to save.
func TestRankSavesAfterItsLauncher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		on := &saving{}
		sv, log := simulate(t, func(p *simProgram) int {
			on.leave(7)
			p.say("step=7 loss=1")
			p.sleep(time.Hour)
			return 143
		})
		on.simulated, on.logdir = sv.System.(*simulated), sv.Logdir
		sv.System, sv.Grace = on, time.Minute
		time.AfterFunc(10*time.Second, cancel)
		exit, err := sv.Run(ctx)
		if err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
		}
		if got := slices.DeleteFunc(on.got, func(sig syscall.Signal) bool { return sig == system.SigCont }); !slices.Equal(got, []syscall.Signal{system.SigTerm}) {
			t.Errorf("the rank got %v", got)
		}
	})
}

// TestGroupOfStoppedProgram has a stop end a program whose group ends some seconds later, without
// processes that anybody finds: there are none to name.
func TestGroupOfStoppedProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			p.say("step=7 loss=1")
			p.sleep(time.Hour)
			p.leave(5 * time.Second)
			return 143
		})
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		stop()
		stopped := time.Now()
		if exit, err := end(); exit.Cause != Stopped || time.Since(stopped) < 5*time.Second || strings.Contains(log.String(), "processes") {
			t.Errorf("Run = %+v, %v after %v; log:\n%s", exit, err, time.Since(stopped), log)
		}
	})
}

// TestOneSignalForTheGroup has a stop end a program that leaves processes which are found: they get
// SIGTERM, and their group does not get it once more, which many take for the wish to end without
// a save.
func TestOneSignalForTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, log := simulate(t, func(p *simProgram) int {
			program = p
			p.say("step=7 loss=1")
			p.sleep(time.Hour)
			p.leave(5 * time.Second)
			return 143
		})
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		on := sv.System.(*simulated)
		on.leave(7)
		stop()
		pass(3 * time.Second)
		program.mu.Lock()
		late := slices.Clone(program.late)
		program.mu.Unlock()
		if slices.Contains(late, system.SigTerm) || !slices.Contains(on.ended, system.SigTerm) {
			t.Errorf("its group got %v, what was found %v; log:\n%s", late, on.ended, log)
		}
		on.leave()
		end()
	})
}
