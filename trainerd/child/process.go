package child

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/machine"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// process is one start of the program.
type process struct {
	number   int
	on       system.System
	dir      string          // by which the processes that it starts are known
	program  system.Program  // once it has started
	listener system.Listener // nil without a socket
	patterns []*regexp.Regexp
	lines    LineReader // nil for none
	out      *output

	// reports carries what the program says; closed when it and all readers have
	// ended. Its reader must continue until then.
	reports chan queued
	exit    Exit          // once reports is closed
	deaf    []int         // that SIGKILL has ended after the program, once reports is closed
	killed  chan struct{} // closed by kill

	readers sync.WaitGroup
	speaks  atomic.Bool // it has made a report, and its other lines are none

	mu       sync.Mutex
	alive    bool      // its group is
	over     time.Time // when the program itself ended, zero before
	failed   bool      // it did so other than with exit code 0
	told     bool
	draining time.Time // deadline for readers, zero while the program runs
	conns    map[deadliner]struct{}
}

// queued is a report, and when it came: the one who takes it may be late.
type queued struct {
	report *Report
	at     time.Time
}

// deadliner is an end of a pipe or connection.
type deadliner interface{ SetReadDeadline(time.Time) error }

// source is where a line comes from.
type source struct {
	out   io.Writer // of lines that are no reports; nil for nowhere
	parse bool      // it may have reports
}

// start starts the program. The process's goroutine ends by closing reports.
// The program inherits the file lock, unless that is nil, and the caller closes it.
func (a *process) start(cmd *exec.Cmd, lock *os.File) error {
	a.reports, a.killed, a.conns = make(chan queued, 256), make(chan struct{}), map[deadliner]struct{}{}
	started := make(chan error)
	go a.run(started, func() (system.Program, error) { return a.on.Start(cmd, lock) })
	err := <-started
	if err != nil {
		for range a.reports { // its goroutine has nothing to say, but ends
		}
	}
	return err
}

// run starts the program, waits for it, and for all that was read from it. It
// keeps its thread, since the program is killed with the thread that started it.
func (a *process) run(started chan<- error, start func() (system.Program, error)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(a.reports)
	begun, kills := time.Now(), machine.OOMKills()
	program, err := start()
	if err != nil {
		started <- err
		return
	}
	stdout, stderr := program.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	a.mu.Lock()
	a.program, a.alive = program, true
	a.mu.Unlock()
	started <- nil
	a.track(stdout)
	a.track(stderr)
	a.readers.Go(func() { a.read(stdout, source{out: a.out.stdout, parse: true}) })
	a.readers.Go(func() { a.read(stderr, source{out: a.out.stderr}) })
	if a.listener != nil {
		a.readers.Go(a.accept)
	}
	code, sig := program.Wait()
	a.mu.Lock()
	a.over, a.failed = time.Now(), code != 0
	a.mu.Unlock()
	a.endGroup(code == 0)
	a.drain()
	a.readers.Wait()
	if a.lines != nil && !a.speaks.Load() {
		for report := a.lines.Flush(); report != nil; report = a.lines.Flush() {
			a.reports <- queued{report, time.Now()}
		}
	}
	a.exit = Exit{Attempt: a.number, Code: code, Signal: sig, Took: time.Since(begun), Step: -1,
		OutOfMemory: code != 0 && machine.OOMKills() > kills}
}

// endGroup ends what the program has started and left. After a SIGTERM that may still
// be saving, until kill, and for a while after a success, too.
func (a *process) endGroup(succeeded bool) {
	if a.awaitGroup(succeeded); a.wasTold() { // else what is in sessions of its own is not waited for
		a.killDeaf()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.signal(system.SigKill) // nobody is left that could refuse
	a.alive = false
}

// awaitGroup waits for the end of what may still be saving.
func (a *process) awaitGroup(succeeded bool) {
	poll := time.NewTicker(system.GroupPoll)
	defer poll.Stop()
	over := time.Now().Add(leftoverGrace)
	for asked := false; !a.program.GroupEnded() || a.wasTold() && time.Now().Before(over) && len(a.on.Leftovers(a.dir)) > 0; {
		switch told := a.wasTold(); {
		case told && !asked:
			a.tellOthers()
			asked = true
		case !told && (!succeeded || time.Now().After(over)):
			return
		}
		select {
		case <-a.killed:
			return
		case <-poll.C:
		}
	}
}

// tellOthers sends SIGTERM to what has outlived the program, also in sessions of its own: what
// started it may have died of the signal and not passed it on.
func (a *process) tellOthers() {
	if left := a.on.Leftovers(a.dir); len(left) > 0 {
		a.on.SignalAll(a.dir, left, system.SigTerm)
		return
	}
	a.send(system.SigTerm) // nobody is left that could refuse
}

// killDeaf ends what SIGTERM has not ended in sessions of their own: their outputs would
// be waited for.
func (a *process) killDeaf() {
	if a.deaf = a.on.Leftovers(a.dir); len(a.deaf) > 0 {
		a.on.SignalAll(a.dir, a.deaf, system.SigKill)
	}
}

// outlived returns for how long what the program has started has outlived it, 0 while it
// runs.
func (a *process) outlived() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over.IsZero() {
		return 0
	}
	return time.Since(a.over)
}

// hasFailed reports whether the program itself has ended, other than with exit code 0.
func (a *process) hasFailed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *process) wasTold() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told
}

// terminate asks the program to end. What it has started is ended by it, or by
// endGroup once it has ended, or by send.
func (a *process) terminate() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = true
	if !a.alive {
		return nil
	}
	if err := a.program.Signal(system.SigTerm); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// kill ends the program and its group. It must be called once at most.
func (a *process) kill() error {
	close(a.killed)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.signal(system.SigKill)
}

// send sends a signal to the program and its group.
func (a *process) send(sig syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.signal(sig)
}

// sendLeader sends a signal to the program alone: what it has started may not
// know it, and end.
func (a *process) sendLeader(sig syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.alive {
		return ErrNotRunning
	}
	return a.program.Signal(sig)
}

// signal sends a signal to the group unless it has ended. The caller holds mu.
func (a *process) signal(sig syscall.Signal) error {
	if !a.alive {
		return nil
	}
	return a.program.SignalGroup(sig)
}

// track notes an end that drain must bring to its end.
func (a *process) track(d deadliner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[d] = struct{}{}
	if !a.draining.IsZero() {
		d.SetReadDeadline(a.draining)
	}
}

func (a *process) untrack(d deadliner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.conns, d)
}

// drain lets the readers take what is there, and not wait for more.
func (a *process) drain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.draining = time.Now().Add(drainTime)
	for d := range a.conns {
		d.SetReadDeadline(a.draining) // one that is closed needs none
	}
	if a.listener != nil {
		a.listener.SetDeadline(time.Now())
	}
}

// read takes all lines of a stream: reports go to the owner, others on.
func (a *process) read(r io.Reader, from source) {
	for lines := newLineReader(r); ; {
		line, k, err := lines.next()
		if err != nil {
			return
		}
		report, pure := a.parse(line, k, from.parse)
		if report != nil {
			a.reports <- queued{report, time.Now()}
		}
		if !pure && k != drawnOver {
			a.out.line(from.out, line)
		}
	}
}

func (a *process) parse(line []byte, k kind, parse bool) (r *Report, pure bool) {
	if k == pieceOfLine || k == shownLine {
		return nil, false
	}
	if parse {
		if r, pure = ParseReport(string(line)); pure { // else step=10 may be in a line of a log that is about something else
			a.speaks.Store(true)
		}
		if pure || r != nil && len(r.Values) > 0 {
			return r, pure
		}
	}
	if found := a.understand(string(line)); found != nil {
		return found, false
	}
	return r, false
}

// understand reads a line that is no report, or one without numbers; nil for nothing.
func (a *process) understand(line string) *Report {
	for _, p := range a.patterns {
		if r := matchPattern(p, line); r != nil {
			return r
		}
	}
	if len(a.patterns) > 0 || a.lines == nil || a.speaks.Load() {
		return nil // the user, or the program, knows better
	}
	return a.lines.Read(line)
}

// output is where lines go that are no reports.
type output struct {
	turn           chan struct{} // has room for the one who writes
	stdout, stderr io.Writer     // nil for nowhere
}

func newOutput(stdout, stderr io.Writer) *output {
	return &output{make(chan struct{}, 1), stdout, stderr}
}

// line writes a whole line. One that cannot be shown is not a reason to stop
// training.
func (o *output) line(w io.Writer, line []byte) {
	if w == nil {
		return
	}
	text := append(line, '\n')
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	w.Write(text)
}
