package prove

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/lazyregexp"
	"github.com/trainerd/trainerd/trainerd/control"
)

// outcome is what became of a run.
type outcome struct {
	dir         string // the program's working directory, "" for that of the job
	logdir      string
	took        time.Duration
	curves      curves
	first, last int64 // steps of its curves, -1 for none
	done        *Disturbance
	missed      bool      // it ended before its disturbance
	restarts    []restart // of the program, or of trainerd
	failure     error     // a [*FailedError]
}

// restart is a start of the training.
type restart struct{ given, first int64 }

func (o *outcome) extent() string {
	if o.last < 0 {
		return "no steps reported"
	}
	return fmt.Sprintf("steps %d to %d", o.first, o.last)
}

// A run that is disturbed hangs if it takes longer than this, and than so many times
// what it takes undisturbed: a machine may be busier than before.
const (
	defaultLeast = 5 * time.Minute
	patience     = 20
)

// run runs the training to its end, with a disturbance if there is a plan.
func (p *proof) run(ctx context.Context, name string, plan *plan) (*outcome, error) {
	limit := time.Duration(math.MaxInt64)
	if p.reference != nil {
		limit = max(p.least, patience*p.reference.took)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o := &outcome{}
	o.dir, o.logdir = p.workdir(name)
	begun := time.Now()
	s, err := p.start(within, o)
	if err != nil {
		return nil, err
	}
	defer func() { s.end() }()
	if plan != nil {
		s, err = p.disturb(within, s, o, plan)
	}
	code := -1
	if err == nil {
		code, err = s.wait(within)
	}
	if hung := within.Err() != nil && ctx.Err() == nil; hung {
		s.end()
		o.failure, err = &FailedError{Run: name, Code: code, Output: p.tail(s, o), Limit: limit}, nil
	}
	if err != nil {
		return nil, err
	}
	o.took = time.Since(begun)
	if d := o.done; d != nil {
		// Of the last start: the first may have failed, with a checkpoint that was being written.
		d.Resumed, d.given = s.resumed()
		d.Lost = max(d.Step-d.Resumed, 0)
	}
	if code != 0 && o.failure == nil {
		o.failure = &FailedError{Run: name, Code: code, Output: p.tail(s, o), LeftOut: p.leftOut()}
	}
	o.curves = curvesIn(o.logdir)
	o.first, o.last = extentOf(o.curves)
	o.restarts = restartsIn(o.logdir)
	return o, nil
}

// disturb does to a run what the plan says, and returns its current process.
func (p *proof) disturb(ctx context.Context, s *session, o *outcome, plan *plan) (*session, error) {
	step, reached := s.await(ctx, plan.at, func(status *control.Status) bool {
		if plan.at.saved == 0 {
			return true
		}
		published := p.Program || status.Saved != nil && status.Saved.Step > 0 // what a program has saved is looked at when it has ended
		return published && countSaved(o.logdir, p.Pattern) >= plan.at.saved
	})
	if !reached {
		o.missed = true
		return s, ctx.Err()
	}
	o.done = &Disturbance{Kind: plan.kind, Step: step}
	seen := s.starts()
	if plan.kind == Kill && p.Program {
		if err := s.killProgram(); err != nil {
			o.missed = true // it has just ended
			return s, nil
		}
		s.awaitStart(ctx, seen)
	} else {
		code, err := s.signal(ctx, map[Kind]syscall.Signal{Kill: syscall.SIGKILL, Damage: syscall.SIGKILL, Stop: syscall.SIGTERM}[plan.kind])
		if err != nil {
			return s, err
		}
		if plan.kind == Stop && code == 0 && s.complete() {
			o.missed = true // it ended by itself
			return s, nil
		}
		if plan.kind == Damage && (p.Program || len(stepsOfStates(o.logdir, p.Pattern)) > 1) { // a job of our own refuses to begin again
			o.done.Damaged, o.done.cut = damageNewest(o.logdir, p.Pattern)
		}
		again, err := p.start(ctx, o)
		if err != nil {
			return s, err
		}
		s = again
		s.awaitStart(ctx, 0)
	}
	return s, nil
}

// session is a process of trainerd.
type session struct {
	cmd    *exec.Cmd
	client *control.Client
	begun  time.Time
	done   chan struct{} // closed when it has ended and all was read

	mu    sync.Mutex
	lines []string // the end of its output
	pids  []int    // of the program, for each start
	at    int64    // the step that the newest start resumed from
	given bool     // it was given a checkpoint
	ready bool     // the training has begun
	whole bool     // it has said that the job is complete
}

// start starts the training of a run.
func (p *proof) start(ctx context.Context, o *outcome) (*session, error) {
	if p.Workdir != nil {
		if err := p.Workdir.Make(o.dir); err != nil {
			return nil, err
		}
	}
	words := p.Command(o.dir, o.logdir)
	s := &session{cmd: exec.CommandContext(ctx, words[0], words[1:]...), client: control.NewClient(o.logdir), begun: time.Now(), done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), p.Env...)
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 10 * time.Second
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = w, w
	err = s.cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	go func() {
		defer close(s.done)
		s.read(r)
		r.Close()
		s.cmd.Wait() // its error is in ProcessState
	}()
	return s, nil
}

var (
	startedLine  = lazyregexp.New(`msg=started pid=(\d+) attempt=\d+ checkpoint=(\S+)`)
	restoredLine = lazyregexp.New(`msg="restored; training continues"(?: step=(\d+))?`)
	freshLine    = lazyregexp.New(`msg="training from the beginning"`)
)

// maxTail bounds the lines of output that are kept.
const maxTail = 30

// read reads the output of a process.
func (s *session) read(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.note(lines.Text())
	}
	io.Copy(io.Discard, r) // after a line that is too long
}

func (s *session) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines = append(s.lines, line); len(s.lines) > maxTail {
		s.lines = s.lines[1:]
	}
	s.whole = s.whole || strings.HasPrefix(line, "job is complete")
	if found := restoredLine().FindStringSubmatch(line); found != nil {
		s.at, _ = strconv.ParseInt(found[1], 10, 64)
		s.ready = true
	}
	if freshLine().MatchString(line) {
		s.at, s.ready = 0, true
	}
	if found := startedLine().FindStringSubmatch(line); found != nil {
		pid, _ := strconv.Atoi(found[1])
		s.pids, s.ready = append(s.pids, pid), true
		if s.given = found[2] != "none"; !s.given {
			s.at = 0
		}
	}
}

// poll is the time between two looks at a run.
const poll = 5 * time.Millisecond

// await waits until a run is at a moment and has saved, and returns its step; reached is false
// when it has ended before.
func (s *session) await(ctx context.Context, m moment, hasSaved func(*control.Status) bool) (step int64, reached bool) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return -1, false
		case <-ctx.Done():
			return -1, false
		case <-tick.C:
		}
		due := m.step < 0 && time.Since(s.begun) >= m.after
		if m.step < 0 && !due {
			continue
		}
		status, err := s.client.Status(ctx)
		if err != nil {
			continue // it is about to begin, or to end
		}
		switch {
		case !hasSaved(status):
		case due:
			return -1, true
		case status.Step >= m.step:
			return status.Step, true
		}
	}
}

// starts returns how often the program was started.
func (s *session) starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pids)
}

// awaitStart waits for a start of the program after so many, or of the training of
// a job of our own.
func (s *session) awaitStart(ctx context.Context, seen int) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		s.mu.Lock()
		ready := len(s.pids) > seen || seen == 0 && s.ready
		s.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// resumed returns the step that the newest start resumed from, and whether the
// program was given a checkpoint.
func (s *session) resumed() (step int64, given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.given
}

func (s *session) complete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole
}

// killProgram kills the program and its group.
func (s *session) killProgram() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pids) == 0 {
		return os.ErrProcessDone
	}
	return killGroup(s.pids[len(s.pids)-1])
}

// signal ends trainerd by a signal, and returns its exit code.
func (s *session) signal(ctx context.Context, sig syscall.Signal) (int, error) {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	return s.wait(ctx)
}

// wait waits for the end of the process, and returns its exit code.
func (s *session) wait(ctx context.Context) (int, error) {
	<-s.done
	s.client.Close()
	return s.cmd.ProcessState.ExitCode(), ctx.Err()
}

// end ends a process that an error has left.
func (s *session) end() {
	select {
	case <-s.done:
	default:
		s.cmd.Process.Kill() // it may have just ended
		<-s.done
	}
	s.client.Close()
}

func (s *session) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Clone(s.lines), "\n")
}

// tail returns the end of a run's output, with the names of the original folder in place of the
// copy's.
func (p *proof) tail(s *session, o *outcome) string {
	text := s.tail()
	if p.Workdir != nil {
		text = strings.ReplaceAll(text, o.dir, p.Workdir.Dir)
	}
	return text
}

// leftOut returns the checkpoints that the copies of the working directory do not have.
func (p *proof) leftOut() []string {
	if p.Workdir == nil {
		return nil
	}
	return p.Workdir.leftOut
}
