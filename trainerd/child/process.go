package child

import (
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
	dir      string          // identifies the processes that it starts
	program  system.Program  // once it has started
	listener system.Listener // nil without a socket
	patterns []*regexp.Regexp
	lines    LineReader // nil for none
	out      *output

	// reports carries the program's reports; it is closed when the program and all readers have
	// ended, and must be read until then.
	reports chan queued
	exit    Exit          // once reports is closed
	deaf    []int         // processes that ignored SIGTERM and were killed, once reports is closed
	killed  chan struct{} // closed by kill

	readers     sync.WaitGroup
	hasReported atomic.Bool // it has made a report, so no other line is searched for numbers

	mu          sync.Mutex
	alive       bool      // its group is
	over        time.Time // when the program itself ended, zero before
	failed      bool      // its exit code was not 0
	terminating bool      // it got SIGTERM
	draining    time.Time // deadline for readers, zero while the program runs
	conns       map[deadliner]struct{}
}

// queued is a report with its time of arrival: it may be handled later.
type queued struct {
	report *Report
	at     time.Time
}

// start starts the program. The process's goroutine ends by closing reports.
// The program inherits the file lock, unless that is nil, and the caller closes it.
func (p *process) start(cmd *exec.Cmd, lock *os.File) error {
	p.reports, p.killed, p.conns = make(chan queued, 256), make(chan struct{}), map[deadliner]struct{}{}
	started := make(chan error)
	go p.run(started, func() (system.Program, error) { return p.on.Start(cmd, lock) })
	err := <-started
	if err != nil {
		for range p.reports { // its goroutine has nothing to say, but ends
		}
	}
	return err
}

// run starts the program, and waits for it and for its readers. It keeps its thread, because the
// program is killed with the thread that started it.
func (p *process) run(started chan<- error, start func() (system.Program, error)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.reports)
	begun, kills := time.Now(), machine.OOMKills()
	program, err := start()
	if err != nil {
		started <- err
		return
	}
	stdout, stderr := program.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	p.mu.Lock()
	p.program, p.alive = program, true
	p.mu.Unlock()
	started <- nil
	p.track(stdout)
	p.track(stderr)
	p.readers.Go(func() { p.read(stdout, source{out: p.out.stdout, parse: true}) })
	p.readers.Go(func() { p.read(stderr, source{out: p.out.stderr}) })
	if p.listener != nil {
		p.readers.Go(p.accept)
	}
	code, sig := program.Wait()
	failed := code != 0
	p.mu.Lock()
	p.over, p.failed = time.Now(), failed
	p.mu.Unlock()
	p.endGroup(!failed)
	p.drain()
	p.readers.Wait()
	if p.lines != nil && !p.hasReported.Load() {
		for report := p.lines.Flush(); report != nil; report = p.lines.Flush() {
			p.reports <- queued{report, time.Now()}
		}
	}
	p.exit = Exit{Attempt: p.number, Code: code, Signal: sig, Took: time.Since(begun), Step: -1,
		OutOfMemory: failed && machine.OOMKills() > kills}
}

// endGroup ends the processes that the program has left. They may still be saving: after
// a SIGTERM they have until kill, and after a success leftoverGrace.
func (p *process) endGroup(succeeded bool) {
	if p.awaitGroup(succeeded); p.isTerminating() { // else what is in sessions of its own is not waited for
		p.killDeaf()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal(system.SigKill) // nobody is left that could refuse
	p.alive = false
}

// awaitGroup waits for processes that may still be saving.
func (p *process) awaitGroup(succeeded bool) {
	poll := time.NewTicker(system.GroupPoll)
	defer poll.Stop()
	over := time.Now().Add(leftoverGrace)
	for asked := false; !p.program.GroupEnded() || p.isTerminating() && time.Now().Before(over) && len(p.on.Leftovers(p.dir)) > 0; {
		switch terminating := p.isTerminating(); {
		case terminating && !asked:
			p.terminateOthers()
			asked = true
		case !terminating && (!succeeded || time.Now().After(over)):
			return
		}
		select {
		case <-p.killed:
			return
		case <-poll.C:
		}
	}
}

// terminateOthers sends SIGTERM to the processes that outlive the program, also to those in sessions
// of their own: their parent may have died of the signal without passing it on.
func (p *process) terminateOthers() {
	if left := p.on.Leftovers(p.dir); len(left) > 0 {
		p.on.SignalAll(p.dir, left, system.SigTerm)
		return
	}
	p.send(system.SigTerm) // nobody is left that could refuse
}

// killDeaf kills processes in sessions of their own that ignored SIGTERM: the readers would
// wait for their outputs.
func (p *process) killDeaf() {
	if p.deaf = p.on.Leftovers(p.dir); len(p.deaf) > 0 {
		p.on.SignalAll(p.dir, p.deaf, system.SigKill)
	}
}

// outlived returns how long ago the program itself ended, 0 while it runs: processes that still
// have its outputs open have outlived it for that long.
func (p *process) outlived() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over.IsZero() {
		return 0
	}
	return time.Since(p.over)
}

// hasFailed reports whether the program itself has ended with another exit code than 0.
func (p *process) hasFailed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *process) isTerminating() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.terminating
}

// terminate asks the program to end. The processes that it has started are ended by the program, by
// endGroup once it has ended, or by send.
func (p *process) terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terminating = true
	if !p.alive {
		return nil
	}
	if err := p.program.Signal(system.SigTerm); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// kill kills the program and its group. It must be called at most once.
func (p *process) kill() error {
	close(p.killed)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signal(system.SigKill)
}

// send sends a signal to the program and its group.
func (p *process) send(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signal(sig)
}

// sendLeader sends a signal to the program alone: processes that it has started may not handle the
// signal, and die.
func (p *process) sendLeader(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive {
		return ErrNotRunning
	}
	return p.program.Signal(sig)
}

// signal sends a signal to the group unless it has ended. The caller holds mu.
func (p *process) signal(sig syscall.Signal) error {
	if !p.alive {
		return nil
	}
	return p.program.SignalGroup(sig)
}
