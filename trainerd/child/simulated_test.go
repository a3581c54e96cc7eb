//go:build unix

package child

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// simulated is a system for tests in a bubble of synctest, whose programs are functions:
// what takes minutes takes no time.
type simulated struct {
	program  func(p *simProgram) (code int)
	fails    error // of each start
	noSocket error // of each Listen
	open     []*silentListener

	mu    sync.Mutex
	left  []int            // leftover processes, which no signal ends
	ended []syscall.Signal // sent to leftover processes
}

// leave has a program leave processes, which no signal ends.
func (s *simulated) leave(pids ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = pids
}

// pass lets time pass, and what is due at its end happen: what programs have done until then
// may be looked at.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// simulate returns a supervisor of a function, and its log.
func simulate(t *testing.T, program func(p *simProgram) (code int)) (*Supervisor, *screen) {
	t.Helper()
	log := newScreen()
	return &Supervisor{
		Command: []string{"simulated"}, Logdir: filepath.Join(t.TempDir(), "log"), Checkpoints: "ckpt-*",
		Log: logTo(log), System: &simulated{program: program},
	}, log
}

func (s *simulated) Listen() (system.Listener, error) {
	if s.noSocket != nil {
		return nil, s.noSocket
	}
	l := &silentListener{owner: s, woken: make(chan struct{})}
	s.open = append(s.open, l)
	return l, nil
}

func (s *simulated) Start(cmd *exec.Cmd, _ *os.File) (system.Program, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	p := &simProgram{args: cmd.Args, env: cmd.Env, told: make(chan struct{}), ended: make(chan struct{})}
	p.stdout, p.out = net.Pipe()
	p.stderr, p.err = net.Pipe()
	go func() { p.end(s.program(p), 0) }()
	return p, nil
}

func (s *simulated) Leftovers(string) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

func (s *simulated) SignalAll(_ string, _ []int, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, sig)
}

// simProgram is a start of a program that is a function.
type simProgram struct {
	args, env                []string
	stdout, out, stderr, err net.Conn
	told, ended              chan struct{} // closed by SIGTERM, and at the end
	tell, finish             sync.Once
	code                     int
	sig                      syscall.Signal

	mu      sync.Mutex
	refuses error // signals
	got     []syscall.Signal
	late    []syscall.Signal // that its group got after its end
	group   []syscall.Signal // that end what it has left in its group, nil for nothing left
	holds   bool             // something that it has started has its outputs open after its end
}

// leave has processes of its group outlive the program until one of these signals comes, if
// any, or some time has passed.
func (p *simProgram) leave(d time.Duration, ends ...syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group = append([]syscall.Signal{}, ends...)
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.group = nil
	})
}

// refuse has signals fail from now on.
func (p *simProgram) refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = err
}

// holdOutputs has something that the program has started hold its outputs open.
func (p *simProgram) holdOutputs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = true
}

// variable returns a variable of its environment, "" for none.
func (p *simProgram) variable(name string) (value string) {
	for _, v := range p.env {
		if text, ok := strings.CutPrefix(v, name+"="); ok {
			value = text
		}
	}
	return value
}

// signals returns those that it has got.
func (p *simProgram) signals() []syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// end ends the program. Nothing that its function does later is seen.
func (p *simProgram) end(code int, sig syscall.Signal) {
	p.finish.Do(func() {
		p.code, p.sig = code, sig
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.holds {
			p.out.Close()
			p.err.Close()
		}
		close(p.ended)
	})
}

// say prints a line.
func (p *simProgram) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// sleep waits, and reports whether the program is to continue: it has not got SIGTERM.
func (p *simProgram) sleep(d time.Duration) bool {
	select {
	case <-p.ended:
		return false
	case <-p.told:
		time.Sleep(time.Nanosecond) // the other signals of that stage come, too
		return false
	case <-time.After(d):
		return true
	}
}

// sleepDeaf is sleep for a program that takes no notice of SIGTERM.
func (p *simProgram) sleepDeaf(d time.Duration) bool {
	select {
	case <-p.ended:
		return false
	case <-time.After(d):
		return true
	}
}

func (p *simProgram) PID() int                                { return 1 << 30 }
func (p *simProgram) Outputs() (stdout, stderr system.Output) { return p.stdout, p.stderr }

func (p *simProgram) GroupEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.group == nil
}

func (p *simProgram) Wait() (code int, sig syscall.Signal) {
	<-p.ended
	return p.code, p.sig
}

func (p *simProgram) Signal(sig syscall.Signal) error {
	select {
	case <-p.ended:
		return os.ErrProcessDone
	default:
	}
	p.mu.Lock()
	p.got = append(p.got, sig)
	refuses := p.refuses
	p.mu.Unlock()
	switch sig {
	case system.SigKill:
		p.end(-1, sig)
	case system.SigTerm:
		p.tell.Do(func() { close(p.told) })
	}
	return refuses
}

func (p *simProgram) SignalGroup(sig syscall.Signal) error {
	if err := p.Signal(sig); err != os.ErrProcessDone {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, sig)
	if slices.Contains(p.group, sig) {
		p.group = nil
	}
	return nil
}

// silentListener is one that nobody connects to.
type silentListener struct {
	owner *simulated
	once  sync.Once
	woken chan struct{}
}

func (l *silentListener) Accept() (net.Conn, error) {
	<-l.woken
	return nil, io.EOF
}

func (l *silentListener) AcceptWaiting() (net.Conn, error) { return l.Accept() }

func (l *silentListener) Close() error {
	l.owner.open = slices.DeleteFunc(l.owner.open, func(o *silentListener) bool { return o == l })
	return l.SetDeadline(time.Time{})
}

func (l *silentListener) SetDeadline(time.Time) error {
	l.once.Do(func() { close(l.woken) })
	return nil
}

func (l *silentListener) Addr() net.Addr { return &net.UnixAddr{Name: "silent", Net: "unix"} }

func picky(sv *Supervisor, fails func(op, name string) bool) {
	sv.FS = childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: sv.Logdir, Fails: fails}
}
