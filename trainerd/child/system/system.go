// Package system runs the programs of package child: the processes and their groups, the pipes and
// the socket for their reports, and leftover processes. [OS] is the operating system; tests may use
// another [System].
package system

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// GroupVariable is the environment variable that identifies the processes of a
// program, with the logdir as its value: those that began their own session, like
// torchrun's workers, and those that outlived a killed trainerd. It is not
// TRAINERD_LOGDIR, which people set in their shells.
const GroupVariable = "TRAINERD_GROUP"

// GroupPoll is the time between two checks of a group whose leader has ended.
const GroupPoll = 20 * time.Millisecond

// System runs programs: it is the operating system, or a simulation of one.
type System interface {
	// Listen makes the socket for the reports of a start. Its address is the one in the program's
	// environment; Close removes it. The error is [ErrNoSockets] if sockets are forbidden.
	Listen() (Listener, error)
	// Start starts a program in its own process group, which is killed with the
	// calling thread. It inherits the file lock, unless that is nil.
	Start(cmd *exec.Cmd, lock *os.File) (Program, error)
	// Leftovers returns the live processes that were started for a logdir, and
	// their descendants.
	Leftovers(logdir string) []int
	// SignalAll sends a signal to those of the processes that still belong to a
	// logdir.
	SignalAll(logdir string, pids []int, sig syscall.Signal)
}

// Program is a started program. Its methods are safe for concurrent use.
type Program interface {
	// PID returns its process ID.
	PID() int
	// Outputs returns its standard output and standard error, which the caller closes.
	Outputs() (stdout, stderr Output)
	// Wait waits for its end, and returns its exit code or the signal that ended it.
	Wait() (code int, sig syscall.Signal)
	// Signal sends a signal only to the program, SignalGroup to its group as long as there is one,
	// even after Wait. On Linux, a SigTerm that the program has already got by Signal goes only to
	// the others in its group: many programs treat a second one as a request to end without
	// finishing the save. On Linux, a signal other than SigTerm and SigKill that the program does
	// not handle goes to its nearest descendants that do, such as the ranks of a launcher, or the
	// error is ErrUnhandled.
	Signal(sig syscall.Signal) error
	SignalGroup(sig syscall.Signal) error
	// GroupEnded reports whether its group has no other process, after Wait.
	GroupEnded() bool
}

// ErrUnhandled says that a signal was not sent because every process of the program would die of
// it, or ignores it.
var ErrUnhandled = errors.New("no process of the program handles the signal")

// ErrNoSockets says that nobody may make a unix socket here, as in a sandbox that forbids them.
var ErrNoSockets = errors.New("unix sockets are forbidden here")

// Output is an output of a program.
type Output interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// Listener takes connections until its deadline.
type Listener interface {
	net.Listener
	SetDeadline(time.Time) error
	// AcceptWaiting accepts, after the deadline, a connection that is already waiting. If there is
	// none, it returns [os.ErrDeadlineExceeded] at once.
	AcceptWaiting() (net.Conn, error)
}

// OS is the [System] of the real operating system.
type OS struct{}

// Listen implements [System].
func (OS) Listen() (Listener, error) {
	ln, err := listen()
	if err != nil {
		return nil, err
	}
	return ownedListener{ln}, nil
}

// Leftovers implements [System].
func (OS) Leftovers(logdir string) []int { return leftovers(logdir) }

// SignalAll implements [System].
func (OS) SignalAll(logdir string, pids []int, sig syscall.Signal) {
	signalAll(logdir, pids, sig)
}

// Start implements [System].
func (OS) Start(cmd *exec.Cmd, lock *os.File) (Program, error) {
	ownGroup(cmd)
	if lock != nil {
		cmd.ExtraFiles = []*os.File{lock}
	}
	p := &command{cmd: cmd}
	ends, err := p.pipes()
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	for _, end := range ends {
		end.Close() // it is the program's now
	}
	if err != nil {
		p.stdout.Close()
		p.stderr.Close()
		return nil, err
	}
	return p, nil
}

// command is a [Program] of the operating system.
type command struct {
	cmd            *exec.Cmd
	stdout, stderr *os.File // the ends to read
}

// pipes makes the program's outputs, and returns its ends of them.
func (p *command) pipes() (ends []*os.File, err error) {
	stdout, outEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, errEnd, err := os.Pipe()
	if err != nil {
		stdout.Close()
		outEnd.Close()
		return nil, err
	}
	p.stdout, p.stderr = stdout, stderr
	p.cmd.Stdout, p.cmd.Stderr = outEnd, errEnd
	return []*os.File{outEnd, errEnd}, nil
}

// PID implements [Program].
func (p *command) PID() int { return p.cmd.Process.Pid }

// Outputs implements [Program].
func (p *command) Outputs() (stdout, stderr Output) { return p.stdout, p.stderr }

// Wait implements [Program].
func (p *command) Wait() (code int, sig syscall.Signal) {
	p.cmd.Wait() // its error is in ProcessState
	return p.cmd.ProcessState.ExitCode(), signalOf(p.cmd.ProcessState)
}

// Signal implements [Program].
func (p *command) Signal(sig syscall.Signal) error {
	if sig == SigTerm || sig == SigKill {
		return p.cmd.Process.Signal(sig)
	}
	return signalHandlers(p.cmd.Process, sig)
}

// SignalGroup implements [Program].
func (p *command) SignalGroup(sig syscall.Signal) error {
	if sig == SigTerm {
		return signalOthers(p.PID(), sig)
	}
	return signalGroup(p.PID(), sig)
}

// GroupEnded implements [Program].
func (p *command) GroupEnded() bool { return groupEnded(p.PID()) }
