package child

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
)

// simulated is a system for tests in a bubble of synctest, whose programs are functions:
// what takes minutes takes no time.
type simulated struct {
	program func(p *simProgram) (code int)
	fails   error // of each start
	left    []int // leftover processes, which no signal ends
}

// simulate returns a supervisor of a function, and its log.
func simulate(t *testing.T, program func(p *simProgram) (code int)) (*Supervisor, *screen) {
	t.Helper()
	log := newScreen()
	return &Supervisor{
		Command: []string{"simulated"}, Logdir: filepath.Join(t.TempDir(), "log"), Checkpoints: "ckpt-*",
		Log: slog.New(slog.NewTextHandler(log, nil)), System: &simulated{program: program},
	}, log
}

func (s *simulated) Listen() (system.Listener, error) {
	return &silentListener{closed: make(chan struct{})}, nil
}

func (s *simulated) Start(cmd *exec.Cmd, _ *os.File) (system.Program, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	p := &simProgram{env: cmd.Env, told: make(chan struct{}), ended: make(chan struct{})}
	p.stdout, p.out = net.Pipe()
	p.stderr, p.err = net.Pipe()
	go func() { p.end(s.program(p), 0) }()
	return p, nil
}

func (s *simulated) Leftovers(string) []int                  { return s.left }
func (s *simulated) SignalAll(string, []int, syscall.Signal) {}

// simProgram is a start of a program that is a function.
type simProgram struct {
	env                      []string
	stdout, out, stderr, err net.Conn
	told, ended              chan struct{} // closed by SIGTERM, and at the end
	tell, finish             sync.Once
	code                     int
	sig                      syscall.Signal
}

// end ends the program. Nothing that its function does later is seen.
func (p *simProgram) end(code int, sig syscall.Signal) {
	p.finish.Do(func() {
		p.code, p.sig = code, sig
		p.out.Close()
		p.err.Close()
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
		return false
	case <-time.After(d):
		return true
	}
}

func (p *simProgram) PID() int                                { return 1 << 30 }
func (p *simProgram) Outputs() (stdout, stderr system.Output) { return p.stdout, p.stderr }
func (p *simProgram) GroupEnded() bool                        { return true }

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
	switch sig {
	case system.SigKill:
		p.end(-1, sig)
	case system.SigTerm:
		p.tell.Do(func() { close(p.told) })
	}
	return nil
}

func (p *simProgram) SignalGroup(sig syscall.Signal) error {
	p.Signal(sig)
	return nil
}

// silentListener is one that nobody connects to.
type silentListener struct {
	once   sync.Once
	closed chan struct{}
}

func (l *silentListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, io.EOF
}

func (l *silentListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *silentListener) SetDeadline(time.Time) error { return l.Close() }

func (l *silentListener) Addr() net.Addr { return &net.UnixAddr{Name: "silent", Net: "unix"} }
