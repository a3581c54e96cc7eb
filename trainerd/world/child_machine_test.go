//go:build unix

package world

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// A machine has the processes of the programs of a history: those of its trainerd, and
// those that outlive it.
type machine struct {
	mu    sync.Mutex
	disk  atomicfile.FS // of the current life
	last  int           // process ID
	alive []*process
	thaws time.Time // until when it is frozen
}

// A process of the machine that does what a function says.
type process struct {
	*machine
	pid    int
	id     string   // of the start of the program
	leader *process // of its group, itself for a leader
	out    *outputPipe
	killed chan struct{} // closed by SIGKILL
	ended  chan struct{} // closed once it has ended
	inbox  chan syscall.Signal

	code int
	sig  syscall.Signal
}

var errDead = errors.New("the process was killed")

// start starts a process, of a group of its own if that is of nobody.
func (m *machine) start(leader *process, id string, do func(p *process) (code int, sig syscall.Signal)) *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	p := &process{machine: m, pid: m.last, id: id, leader: leader, killed: make(chan struct{}), ended: make(chan struct{}), inbox: make(chan syscall.Signal, 1000)}
	if leader == nil {
		p.leader, p.out = p, newOutputPipe()
	}
	m.alive = append(m.alive, p)
	go func() {
		p.code, p.sig = do(p)
		if p.isKilled() {
			p.code, p.sig = -1, syscall.SIGKILL
		}
		m.mu.Lock()
		m.alive = slices.DeleteFunc(m.alive, func(q *process) bool { return q == p })
		m.mu.Unlock()
		if p.out != nil {
			p.out.closeWriting()
		}
		close(p.ended)
	}()
	return p
}

func (p *process) isKilled() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// signal sends a process a signal. It has an effect when the process next looks, or the
// machine is frozen no more, but SIGKILL has it at once: nothing that it writes comes to
// the disk.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	frozen := time.Until(p.thaws)
	switch {
	case sig == syscall.SIGKILL:
		if !p.isKilled() {
			close(p.killed)
		}
	case frozen > 0:
		time.AfterFunc(frozen, func() { p.deliver(sig) })
	default:
		p.deliver(sig)
	}
}

func (p *process) deliver(sig syscall.Signal) {
	select {
	case p.inbox <- sig:
	default:
	}
}

// signalAll sends all processes a signal.
func (m *machine) signalAll(sig syscall.Signal) {
	for _, p := range m.processes() {
		p.signal(sig)
	}
}

// freeze freezes the machine for some time: its programs, and what trainerd does with the
// disk.
func (m *machine) freeze(d time.Duration) {
	m.signalAll(syscall.SIGSTOP)
	m.mu.Lock()
	m.thaws = time.Now().Add(d)
	m.mu.Unlock()
	m.signalAll(syscall.SIGCONT) // which comes then
}

// frozenFor returns for how long the machine is still frozen, 0 for one that is not.
func (m *machine) frozenFor() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(time.Until(m.thaws), 0)
}

// wasFrozen reports whether the machine is frozen, or was within some time.
func (m *machine) wasFrozen(ago time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.thaws) <= ago
}

// setDisk gives the machine the disk of a life.
func (m *machine) setDisk(disk atomicfile.FS) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk = disk
}

// processes returns those that are alive.
func (m *machine) processes() []*process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.alive)
}

// do has a process change the disk, if it is alive.
func (p *process) do(change func(disk atomicfile.FS) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isKilled() {
		return errDead
	}
	return change(p.disk)
}

// childSystem is the machine as one of its trainerds has it.
type childSystem struct{ *childNode }

// Listen implements [system.System]: no program connects.
func (s childSystem) Listen() (system.Listener, error) {
	return &silentListener{newMemoryListener()}, nil
}

// Start implements [system.System].
func (s childSystem) Start(cmd *exec.Cmd, _ *os.File) (system.Program, error) {
	if s.isDead() {
		return nil, errDead
	}
	for _, p := range s.host.processes() {
		s.note(broke("a start of the program while process %d of an earlier one is alive", p.pid))
	}
	s.defect.overStart(cmd)
	p := newProgram(s.childNode, cmd)
	id := p.env["TRAINERD_RENDEZVOUS"]
	s.note(s.judgeStart(id, p.env["TRAINERD_CHECKPOINT"]))
	s.starts.Store(true)
	s.saying.setTrains(true)
	return childProgram{s, s.host.start(nil, id, p.run)}, nil
}

// Leftovers implements [system.System].
func (s childSystem) Leftovers(string) (pids []int) {
	if s.isDead() || s.defect.leavesOrphans() {
		return nil
	}
	for _, p := range s.host.processes() {
		pids = append(pids, p.pid)
	}
	return pids
}

// SignalAll implements [system.System].
func (s childSystem) SignalAll(_ string, pids []int, sig syscall.Signal) {
	for _, p := range s.host.processes() {
		if slices.Contains(pids, p.pid) && !s.isDead() {
			p.signal(sig)
		}
	}
}

// childProgram is a process as the trainerd that started it has it.
type childProgram struct {
	childSystem
	*process
}

// PID implements [system.Program].
func (p childProgram) PID() int { return p.pid }

// Outputs implements [system.Program].
func (p childProgram) Outputs() (stdout, stderr system.Output) {
	silent := newOutputPipe()
	silent.closeWriting()
	return p.out, silent
}

// Wait implements [system.Program]. The program dies with its trainerd.
func (p childProgram) Wait() (code int, sig syscall.Signal) {
	<-p.ended
	p.saying.setTrains(false)
	return p.code, p.sig
}

// Signal implements [system.Program].
func (p childProgram) Signal(sig syscall.Signal) error {
	select {
	case <-p.ended:
		return os.ErrProcessDone
	default:
	}
	if !p.isDead() {
		p.process.signal(sig)
	}
	return nil
}

// SignalGroup implements [system.Program].
func (p childProgram) SignalGroup(sig syscall.Signal) error {
	for _, q := range p.group() {
		if !p.isDead() {
			q.signal(sig)
		}
	}
	return nil
}

// GroupEnded implements [system.Program].
func (p childProgram) GroupEnded() bool { return p.isDead() || len(p.group()) == 0 }

func (p *process) group() []*process {
	return slices.DeleteFunc(p.processes(), func(q *process) bool { return q.leader != p.leader })
}

// An outputPipe holds what a program has printed until it is read.
type outputPipe struct {
	mu       sync.Mutex
	more     *sync.Cond
	buffer   []byte
	written  bool // to its end
	closed   bool // nobody reads
	deadline time.Time
}

func newOutputPipe() *outputPipe {
	p := new(outputPipe)
	p.more = sync.NewCond(&p.mu)
	return p
}

func (p *outputPipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, syscall.EPIPE
	}
	p.buffer = append(p.buffer, b...)
	p.more.Broadcast()
	return len(b), nil
}

func (p *outputPipe) closeWriting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = true
	p.more.Broadcast()
}

func (p *outputPipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return 0, os.ErrClosed
		case len(p.buffer) > 0:
			n := copy(b, p.buffer)
			p.buffer = p.buffer[n:]
			return n, nil
		case p.written:
			return 0, io.EOF
		case !p.deadline.IsZero() && !time.Now().Before(p.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		p.more.Wait()
	}
}

func (p *outputPipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.more.Broadcast()
	return nil
}

func (p *outputPipe) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	time.AfterFunc(time.Until(t), p.more.Broadcast)
	return nil
}

// A silentListener is one that nobody connects to.
type silentListener struct{ *memoryListener }

// SetDeadline implements [system.Listener].
func (l *silentListener) SetDeadline(t time.Time) error {
	time.AfterFunc(time.Until(t), l.close)
	return nil
}

// AcceptWaiting implements [system.Listener].
func (l *silentListener) AcceptWaiting() (net.Conn, error) { return l.Accept() }

// Accept implements [net.Listener].
func (l *silentListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}
