//go:build unix

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// seesEnds is an observer that keeps which starts there were, and how they ended.
type seesEnds struct {
	nobody
	started []int // attempts
	seen    []Exit
	again   []bool
}

func (s *seesEnds) Started(attempt int, _ *Checkpoint) { s.started = append(s.started, attempt) }
func (s *seesEnds) Ended(e Exit, again bool, _ time.Duration) {
	s.seen, s.again = append(s.seen, e), append(s.again, again)
}

// TestSecondStartFails has a program that cannot be started a second time: that is a
// failure, which may pass.
func TestSecondStartFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		sv, _ = simulate(t, func(*simProgram) int {
			sv.System.(*simulated).fails = errors.New("no such program")
			return 1
		})
		ends := &seesEnds{}
		sv.Observer, sv.Restarts.Max = ends, 1
		if _, err := sv.Run(t.Context()); !is[*ExitError](err) {
			t.Errorf("Run = %v", err)
		}
		want := Exit{Attempt: 2, Cause: Failed, Code: -1, Step: -1}
		if !slices.Equal(ends.again, []bool{true, false}) || !reflect.DeepEqual(ends.seen[len(ends.seen)-1], want) {
			t.Errorf("the observer saw %+v", ends)
		}
	})
}

// TestStartIsRetried has starts that fail for want of something that the machine may have again,
// the first one too: another follows, and the program completes.
func TestStartIsRetried(t *testing.T) {
	for _, tc := range []struct {
		name     string
		err      error
		attempts int // 1 if the first failure is final
	}{
		{"no open files", &os.SyscallError{Syscall: "pipe2", Err: syscall.EMFILE}, 2},
		{"no processes", &fs.PathError{Op: "fork/exec", Path: "python3", Err: syscall.EAGAIN}, 2},
		{"no memory", &fs.PathError{Op: "fork/exec", Path: "python3", Err: syscall.ENOMEM}, 2},
		{"being written", &fs.PathError{Op: "fork/exec", Path: "./train", Err: syscall.ETXTBSY}, 2},
		{"the server of its disk is away", &fs.PathError{Op: "fork/exec", Path: "./train", Err: syscall.ESTALE}, 2},
		{"no program", &fs.PathError{Op: "fork/exec", Path: "./train", Err: syscall.ENOENT}, 1},
		{"no execute permission", &fs.PathError{Op: "fork/exec", Path: "./train", Err: syscall.EACCES}, 1},
		{"no interpreter", &fs.PathError{Op: "fork/exec", Path: "./train", Err: syscall.ENOEXEC}, 1},
		{"not in PATH", &exec.Error{Name: "train", Err: exec.ErrNotFound}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 0 })
			sv.System.(*simulated).fails = tc.err
			sv.Observer = &seesEndsThen{func() { sv.System.(*simulated).fails = nil }}
			exit, err := sv.Run(t.Context())
			if final := tc.attempts == 1; is[*StartError](err) != final || !final && err != nil || exit.Attempt != tc.attempts && !final {
				t.Errorf("%s: Run = %+v, %v", tc.name, exit, err)
			}
			if want := "the program could not be started; it will be started again"; strings.Contains(log.String(), want) == (tc.attempts == 1) {
				t.Errorf("%s: the log has\n%s", tc.name, log)
			}
		})
	}
}

// TestNoSocketLater has a second start for whose socket there is no room: the run does not end.
func TestNoSocketLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sv *Supervisor
		sv, _ = simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_ATTEMPT") == "3" {
				return 0
			}
			sv.System.(*simulated).noSocket = syscall.ENOSPC
			return 1
		})
		starts := 0
		sv.Observer = &seesEndsThen{func() {
			if starts++; starts == 2 {
				sv.System.(*simulated).noSocket = nil
			}
		}}
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 3 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

// seesEndsThen is an observer that does something after each start.
type seesEndsThen struct{ do func() }

func (*seesEndsThen) Started(int, *Checkpoint)          {}
func (*seesEndsThen) Reported(*Report)                  {}
func (*seesEndsThen) Saved(Checkpoint)                  {}
func (*seesEndsThen) Paused(bool)                       {}
func (*seesEndsThen) Waits(string)                      {}
func (s *seesEndsThen) Ended(Exit, bool, time.Duration) { s.do() }

// TestFailuresWithACheckpoint has ends in a row of a program that was given its newest
// checkpoint: two failures before a report send it back to the one before, unless it was
// killed, or has got further in between.
func TestFailuresWithACheckpoint(t *testing.T) {
	fails, hangs := Exit{Cause: Failed, Code: 1, Step: -1}, Exit{Cause: Hung, Code: -1, Step: -1}
	killed, reports := Exit{Cause: Failed, Code: -1, Signal: syscall.SIGKILL, Step: -1}, Exit{Cause: Failed, Code: 1, Step: 0}
	for _, tc := range []struct {
		ends []Exit
		back bool
		left bool // the last failure counts
	}{
		{[]Exit{fails}, false, true},
		{[]Exit{fails, fails}, true, false},
		{[]Exit{fails, hangs}, true, false},
		{[]Exit{fails, killed, fails}, true, false},
		{[]Exit{killed, killed, killed}, false, false},
		{[]Exit{fails, reports, fails}, false, true},
		{[]Exit{fails, {Cause: Failed, Code: -1, Signal: syscall.SIGKILL, Step: 0}, fails}, false, true},
		{[]Exit{fails, {Cause: Preempted, Step: -1}, fails}, false, true},
	} {
		s := openStore(t, childtest.Logdir(t, "ckpt-1", "ckpt-2"), "ckpt-*")
		s.Refresh(true)
		s.MarkTried(math.MaxInt64, 0) // it has finished both
		given := s.Known()[1]
		r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}, attempt: attempt{given: &given}}
		for _, e := range tc.ends {
			r.attempt.step = e.Step
			r.onExit(e)
		}
		if got := r.ceiling == &given; got != tc.back || r.counts.stats.Rewinds == 1 != tc.back || (r.failedWith != nil) != tc.left {
			t.Errorf("%+v: back: %v, want %v; has failed with it: %v; %d rewinds", tc.ends, got, tc.back, r.failedWith != nil, r.counts.stats.Rewinds)
		}
	}
}

// TestHangs has a program that makes no step, and when that is too long.
func TestHangs(t *testing.T) {
	const limit = 10 * time.Second
	for _, tc := range []struct {
		limit, ago time.Duration
		attempt
		want bool
	}{
		{limit, limit, attempt{}, true}, {limit, limit - 1, attempt{}, false}, {0, limit, attempt{}, false},
		{limit, limit, attempt{paused: true}, false}, {limit, limit, attempt{hung: true}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			tc.lastProgress = time.Now().Add(-tc.ago)
			r := &run{log: discard, hangAfter: tc.limit, attempt: tc.attempt}
			if got := r.hangs(); got != tc.want || r.attempt.hung != (tc.want || tc.hung) {
				t.Errorf("%+v: %v", tc, got)
			}
		})
	}
}

// TestNoTicker has an interval that switches off: nothing ever comes.
func TestNoTicker(t *testing.T) {
	for _, d := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			ticker := newTicker(d)
			defer ticker.Stop()
			select {
			case <-ticker.C:
				t.Errorf("%v ticks", d)
			case <-time.After(24 * time.Hour):
			}
		})
	}
}

// TestStepAtTheEnd has what the last line of a start says of its step.
func TestStepAtTheEnd(t *testing.T) {
	for _, tc := range []struct {
		step, most int64
		want       string
	}{{-1, -1, "[cause completed]"}, {-1, 5, "[cause completed step 5]"}, {0, 5, "[cause completed step 0]"}, {-1, 0, "[cause completed step 0]"}} {
		if got := fmt.Sprint((&run{maxStep: tc.most}).endAttrs(&Exit{Step: tc.step})); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// TestStagesOfAStop has a program that neither saves nor ends: it gets the signals in
// turn, within its grace.
func TestStagesOfAStop(t *testing.T) {
	for _, tc := range []struct {
		save syscall.Signal
		want string
	}{
		{0, "terminated 0s, continued 0s, terminated 50s, killed 1m40s"},
		{syscall.SIGUSR1, "user defined signal 1 0s, terminated 50s, continued 50s, terminated 1m15s, killed 1m40s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var stopped time.Time
			var got []string
			sv, log := simulate(t, func(p *simProgram) int {
				p.say("step=0")
				for alive := true; alive; {
					alive = p.sleepDeaf(time.Millisecond)
					for _, sig := range p.signals()[len(got):] {
						got = append(got, fmt.Sprint(sig, " ", time.Since(stopped).Truncate(time.Second)))
					}
				}
				return 0
			})
			sv.SaveSignal, sv.Grace = tc.save, 100*time.Second
			stop, end := begin(t, sv)
			time.Sleep(10 * time.Second)
			stopped = time.Now()
			stop()
			exit, err := end()
			synctest.Wait()
			if !is[*SaveLostError](err) || !strings.Contains(log.String(), "not ended in time; killing it") {
				t.Errorf("Run = %v; log:\n%s", err, log)
			}
			if said := strings.Count(log.String(), `for="the program to end"`); said != 6 {
				t.Errorf("in 100 s, the log has %d times what is waited for:\n%s", said, log)
			}
			if text := strings.Join(got, ", "); text != tc.want || exit.Cause != Stopped || exit.Signal != syscall.SIGKILL {
				t.Errorf("Run = %+v; it got %s\nwant %s", exit, text, tc.want)
			}
		})
	}
}

// TestCanSaveFirst has what a program must have done, and be, to be asked to save at a stop.
func TestCanSaveFirst(t *testing.T) {
	base := func() *run {
		sv := &Supervisor{SaveSignal: syscall.SIGUSR1, Checkpoints: "ckpt-*"}
		return &run{Supervisor: sv, attempt: attempt{step: 0}, prompter: prompter{covered: -1}}
	}
	if !base().canSaveFirst() {
		t.Error("one that has made step 0 is not asked")
	}
	for what, change := range map[string]func(r *run){
		"no signal":          func(r *run) { r.SaveSignal = 0 },
		"no checkpoints":     func(r *run) { r.Checkpoints = "" },
		"no grace":           func(r *run) { r.Grace = -1 },
		"it hung":            func(r *run) { r.attempt.hung = true },
		"it reports nothing": func(r *run) { r.attempt.step, r.prompter.covered = -1, found.NoStep },
		"it has saved":       func(r *run) { r.prompter.covered = 0 },
	} {
		r := base()
		if change(r); r.canSaveFirst() {
			t.Errorf("%s, and it is asked", what)
		}
	}
}

// TestSaveLostTexts has what users read of a stop that has lost steps.
func TestSaveLostTexts(t *testing.T) {
	const end = "; have it save on SIGTERM, or set child.save_signal, and give it time by supervisor.stop_grace_secs"
	for want, err := range map[string]*SaveLostError{
		"the program was stopped and has saved nothing":                                            {Step: -1, Saved: found.NoStep},
		"the program was stopped at step 0 and has saved nothing":                                  {Step: 0},
		"the program was stopped at step 7 without saving; it continues from step 3 (/log/ckpt-3)": {Step: 7, Newest: "/log/ckpt-3", Saved: 3},
		"the program was stopped at step 7 without saving; it continues from /log/last":            {Step: 7, Newest: "/log/last", Saved: found.NoStep},
	} {
		if got := err.Error(); got != want+end {
			t.Errorf("got  %s\nwant %s", got, want+end)
		}
	}
}

// TestLacksSteps has checkpoints at a stop: a program may count a step that it has reported
// as the next one, and one that reports nothing makes steps all the time.
func TestLacksSteps(t *testing.T) {
	begun := time.Unix(1_000_000, 0)
	for _, tc := range []struct {
		step, saved  int64 // reported, and of the checkpoint
		at           time.Duration
		lacks, whole bool
	}{
		{10, 10, 0, false, true}, {10, 9, 0, false, false}, {10, 8, 0, true, false},
		{0, 0, -time.Hour, false, true}, {0, -1, -time.Hour, true, false},
		{-1, 3, -inFlight, false, false}, {-1, 3, -inFlight - 1, true, false}, {-1, 9, -time.Hour, true, true},
	} {
		r := &run{Supervisor: &Supervisor{Steps: 9}, attempt: attempt{step: tc.step, ending: &ending{begun: begun}}}
		c := Checkpoint{Step: tc.saved, Saved: begun.Add(tc.at)}
		if tc.saved < 0 { // its name has no step
			r.attempt.beforeLast = begun
		}
		if lacks, whole := r.lacksAtTheEnd(c), r.coversAll(c); lacks != tc.lacks || whole != tc.whole {
			t.Errorf("%+v: it lacks steps: %v; it has all: %v", tc, lacks, whole)
		}
	}
}

// TestCoversAllOfSilentProgram has a program that reports nothing, whose checkpoint has all only if
// it is known how many steps there are.
func TestCoversAllOfSilentProgram(t *testing.T) {
	for steps, want := range map[int64]bool{0: false, 1: true, 2: false} {
		r := &run{Supervisor: &Supervisor{Steps: steps}, attempt: attempt{step: -1}}
		if got := r.coversAll(Checkpoint{Step: 1}); got != want {
			t.Errorf("of %d steps, a checkpoint of step 1 has all: %v", steps, got)
		}
	}
}

// TestToldOnce has a program that saves at a stop, and takes some time to end then: it is not told
// a second time, which would end some programs before they have finished.
func TestToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []syscall.Signal
		sv, _ := simulate(t, func(p *simProgram) int {
			p.say("step=3")
			p.sleep(time.Hour)
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-3"), "weights")
			p.sleepDeaf(20 * time.Second)
			got = p.signals()
			return 0
		})
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped || !slices.Equal(got, []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}) {
			t.Errorf("Run = %+v, %v; it got %v", exit, err, got)
		}
	})
}

// TestFirstFolderOfThisStart has a program that writes its first folder and reports nothing:
// how it ends shows whether it has finished that.
func TestFirstFolderOfThisStart(t *testing.T) {
	for code, want := range map[int]int{0: 1, 1: 0} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int {
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-1", "w"), "weights")
				p.sleep(10 * time.Second)
				return code
			})
			sv.Restarts.Max = -1
			if _, err := sv.Run(t.Context()); (err == nil) != (code == 0) || strings.Count(log.String(), "msg=saved") != want {
				t.Errorf("exit code %d: Run = %v; log:\n%s", code, err, log)
			}
		})
	}
}

// TestLeftoversOfAFailure has a program that leaves a process and fails, is killed, or is
// stopped: nobody is left that would end it.
func TestLeftoversOfAFailure(t *testing.T) {
	for what, ends := range map[string]func(p *simProgram) int{
		"fails":      func(*simProgram) int { return 1 },
		"is killed":  func(p *simProgram) int { p.end(-1, syscall.SIGKILL); return 0 },
		"is stopped": func(p *simProgram) int { p.sleep(time.Hour); return 0 },
	} {
		want := []syscall.Signal{syscall.SIGKILL}
		if what == "is stopped" { // it may be what saves
			want = []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
		}
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, nil)
			left := &leftover{simulated: sv.System.(*simulated), endsOn: syscall.SIGKILL}
			left.program = func(p *simProgram) int { left.alive.Store(true); return ends(p) }
			sv.System, sv.Restarts.Max = left, -1
			stop, end := begin(t, sv)
			time.AfterFunc(10*time.Second, stop)
			exit, err := end()
			got := slices.DeleteFunc(left.got, func(sig syscall.Signal) bool { return sig == syscall.SIGCONT }) // of the stop
			if (err == nil) != (what == "is stopped") || !slices.Equal(got, want) || len(exit.Left) > 0 {
				t.Errorf("%s: Run = %+v, %v; the process got %v", what, exit, err, got)
			}
			if said := strings.Count(log.String(), "killing processes that the program has left"); (said == 1) != (what != "is stopped") {
				t.Errorf("%s: it is said %d times that they are killed:\n%s", what, said, log)
			}
		})
	}
}

// TestOnTrialIsSaid has a checkpoint that nothing shows to be finished, and one that is: the
// log says so of the first.
func TestOnTrialIsSaid(t *testing.T) {
	for name, want := range map[string]bool{"ckpt-1/model.safetensors": true, "ckpt-1.safetensors": false} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 0 })
			childtest.Write(t, filepath.Join(sv.Logdir, name), childtest.Tensors())
			if _, err := sv.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if got := strings.Contains(log.String(), "nothing shows that the program has finished writing"); got != want {
				t.Errorf("%s: it is said: %v; log:\n%s", name, got, log)
			}
		})
	}
}

// TestChooseReadsOlder has a run that goes back behind its newest checkpoint, to one that was
// damaged since it was read: it is given the one before that.
func TestChooseReadsOlder(t *testing.T) {
	dir := t.TempDir()
	for step := 1; step <= 3; step++ {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("ckpt-%d.safetensors", step)), childtest.TensorsOf(step))
	}
	openStore(t, dir, "ckpt-*").Refresh(true)
	damageSilently(t, filepath.Join(dir, "ckpt-2.safetensors"), childtest.TensorsOf(2))

	s := openStore(t, dir, "ckpt-*")
	s.ReadRecords()
	s.Refresh(true)
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}, ceiling: &Checkpoint{Step: 3}}
	if r.choose(t.Context()); r.attempt.given == nil || r.attempt.given.Step != 1 || r.counts.stats.FailedSaves != 1 {
		t.Errorf("it is given %v; %d do not count", r.attempt.given, r.counts.stats.FailedSaves)
	}
}

// TestChooseMovesDamaged has a newest checkpoint that is damaged while the program runs, and one
// before it that was damaged since it was read, as it turns out then: both are out of the way of a
// program that takes its newest, which is given the third.
func TestChooseMovesDamaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sees [][]string
		var given []string
		sv, log := simulate(t, func(p *simProgram) int {
			dir := p.variable("TRAINERD_LOGDIR")
			sees, given = append(sees, checkpointsIn(t, dir)), append(given, p.variable("TRAINERD_STEP"))
			if len(sees) > 1 {
				return 0
			}
			childtest.Write(t, filepath.Join(dir, "ckpt-3.safetensors"), childtest.TensorsOf(3)[:100])
			return 1
		})
		for step := 1; step <= 3; step++ {
			childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprintf("ckpt-%d.safetensors", step)), childtest.TensorsOf(step))
		}
		openStore(t, sv.Logdir, "ckpt-*").Refresh(true)
		damageSilently(t, filepath.Join(sv.Logdir, "ckpt-2.safetensors"), childtest.TensorsOf(2))
		if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(given, []string{"3", "1"}) {
			t.Errorf("Run = %v; it is given %q", err, given)
		}
		if got := fmt.Sprint(sees); got != "[[ckpt-1.safetensors ckpt-2.safetensors ckpt-3.safetensors] [ckpt-1.safetensors]]" {
			t.Errorf("it sees %s; log:\n%s", got, log)
		}
		if got, err := manifest.Records(sv.Logdir); err != nil || len(got) != 1 || got[0].Step != 1 {
			t.Errorf("recorded are %v, %v", got, err)
		}
		if strings.Contains(log.String(), "cannot") {
			t.Errorf("nothing names them, and the disk works; log:\n%s", log)
		}
	})
}

// damageSilently changes a file, but neither its size nor its time.
func damageSilently(t *testing.T, name, content string) {
	t.Helper()
	at := childtest.Stat(t, name).ModTime()
	childtest.Write(t, name, childtest.Flip(content, 300))
	childtest.Must(t, os.Chtimes(name, at, at))
}

// TestTakeReportsAtTheEnd has a program that ends while its reports wait: all are taken, and
// nothing more is asked of it.
func TestTakeReportsAtTheEnd(t *testing.T) {
	for _, ended := range []bool{false, true} {
		a := &process{reports: make(chan queued, 4)}
		for step := range int64(3) {
			a.reports <- queued{&Report{Step: step}, time.Now()}
		}
		if ended {
			close(a.reports)
		}
		sv, _ := supervise(t, "")
		r := sv.newRun(t.Context())
		childtest.Must(t, r.acquire())
		t.Cleanup(func() { r.close() })
		r.attempt = attempt{process: a, step: -1}
		if more := r.takeReports(); more == ended || len(a.reports) != 0 {
			t.Errorf("ended %v: it may say more: %v; %d reports are left", ended, more, len(a.reports))
		}
	}
}
