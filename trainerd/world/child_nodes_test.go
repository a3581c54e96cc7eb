//go:build unix

package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// A childNode is a trainerd on a node, until that is killed or ends.
type childNode struct {
	*childLife
	node   int
	host   *machine
	killAt int64 // operation, 0 for none
	begun  time.Time

	monitor  *control.Monitor
	network  *memoryListener
	out, err bytes.Buffer
	ctx      context.Context
	stop     context.CancelCauseFunc
	done     chan struct{} // closed when it has ended
	died     chan struct{} // closed when it is killed
	gone     chan struct{} // closed when either has happened, and what dies with it has died
	die      func()
	ops      atomic.Int64
	starts   atomic.Bool // it has started the program
	saying   saying

	// Guarded by the life's mu.
	stopped     bool      // somebody asked for it
	led         bool      // it was the chief
	lost        bool      // it has lost the logdir
	powerless   bool      // its machine has no power any more
	refused     time.Time // until when its states are refused
	result      error
	savedThen   int64 // saved at its end
	reachedThen int64 // reported at its end, after which another may train
}

// drawNodes draws what happens on which node.
func (l *childLife) drawNodes(rnd *rand.Rand) {
	l.target = rnd.IntN(l.plan.nodes)
	if l.plan.nodes > 1 && l.number >= 0 && rnd.IntN(2) == 0 {
		l.until = 1 + rnd.Int64N(8)
	}
}

// keepNode has a node take part, from when it comes until the job has ended, with
// another trainerd each time that it comes back.
func (l *childLife) keepNode(ctx context.Context, node int) {
	var running sync.WaitGroup
	defer running.Wait()
	rnd := l.plan.source(fmt.Sprintf("node %d in life %d", node, l.number))
	time.Sleep(l.comesAfter(node, rnd))
	for {
		n := l.newNode(ctx, node)
		if n == nil {
			return
		}
		running.Go(n.run)
		<-n.gone
		away, back := l.awayFor(rnd)
		if !back {
			return
		}
		time.Sleep(away)
	}
}

// comesAfter is how long after others a node comes.
func (l *childLife) comesAfter(node int, rnd *rand.Rand) time.Duration {
	switch {
	case l.plan.nodes == 1:
		return 0
	case node == l.target && l.event.is("node comes late"):
		return between(rnd, 5*time.Second, 10*time.Minute)
	}
	return time.Duration(rnd.Int64N(int64(2 * time.Second)))
}

// awayFor is how long a node is away, if it comes back.
func (l *childLife) awayFor(rnd *rand.Rand) (d time.Duration, back bool) {
	if l.plan.nodes == 1 || l.plan.elastic && rnd.IntN(4) == 0 {
		return 0, false
	}
	return between(rnd, time.Second, 10*time.Minute), true
}

// newNode returns the trainerd of a node that comes, nil if there is no job any more.
func (l *childLife) newNode(ctx context.Context, node int) *childNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil || l.ending || len(l.nodes) > 0 && !slices.ContainsFunc(l.nodes, (*childNode).runs) {
		return nil
	}
	n := &childNode{
		childLife: l, node: node, host: l.hosts[node], begun: time.Now(), network: newMemoryListener(),
		done: make(chan struct{}), died: make(chan struct{}), gone: make(chan struct{}),
	}
	n.ctx, n.stop = context.WithCancelCause(ctx)
	n.die = sync.OnceFunc(func() { close(n.died) })
	if node == l.target && !slices.ContainsFunc(l.nodes, func(m *childNode) bool { return m.node == node }) {
		n.killAt = l.killAt
	}
	l.nodes = append(l.nodes, n)
	return n
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (n *childNode) isDead() bool { return isClosed(n.died) }

// runs reports whether it has neither ended nor been killed.
func (n *childNode) runs() bool { return !isClosed(n.died) && !isClosed(n.done) }

// now returns the newest trainerd of a node, nil before the first.
func (l *childLife) now(node int) *childNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest(node)
}

// newest is now with mu held.
func (l *childLife) newest(node int) *childNode {
	for _, n := range slices.Backward(l.nodes) {
		if n.node == node {
			return n
		}
	}
	return nil
}

// running returns those that run.
func (l *childLife) running() []*childNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.nodes), func(n *childNode) bool { return !n.runs() })
}

// dieAll kills all.
func (l *childLife) dieAll() {
	for _, n := range l.running() {
		n.die()
	}
}

// run has the daemon run the job.
func (n *childNode) run() {
	defer n.stop(nil)
	var attending sync.WaitGroup
	attending.Go(n.attend)
	defer attending.Wait()
	defer n.network.Close()
	defer close(n.done)
	c, err := config.Load(n.configOf(n.node), nil)
	if err != nil {
		n.note(broke("a config that should be valid is not: %w", err))
		return
	}
	n.defect.overLock(n)
	n.monitor = control.NewMonitor(c.Name, c.Logdir, os.Getpid())
	err = daemon.Run(n.ctx, c, daemon.RunOptions{
		Stdout: &n.out, Stderr: &n.err, Again: "again", Log: slog.New(listener(n.noteAnnounced)), Monitor: n.monitor,
		Serve:  func(*slog.Logger) func() { return serveControl(n.monitor, n.network, n.note) },
		FS:     n.defect.overDisk(killableDisk{watchedDisk{n.fs, n.childLife, n.host}, n}),
		System: childSystem{n},
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.result, n.savedThen, n.reachedThen = n.defect.overResult(err), n.saved.Load(), n.reported.Load()
}

// attend does what the system does at the death of a trainerd: what it has started
// directly dies too, and with the machine all does, and what was not synced is lost.
func (n *childNode) attend() {
	defer close(n.gone)
	select {
	case <-n.done:
		return
	case <-n.died:
	}
	n.mu.Lock()
	power := n.event.power || n.powerless
	n.deaths++
	n.gaps = append(n.gaps, gap{from: n.promised, to: -1})
	leads := n.chief == n
	n.mu.Unlock()
	for _, p := range n.host.processes() {
		if p.leader == p || power {
			p.signal(sigKill)
		}
	}
	if n.powerless {
		n.note(n.losePower())
	}
	if leads {
		n.note(n.unlock())
	}
	n.stop(errDead)
}

// unlock unlocks the logdir, as the system does when a process dies. It has that of the
// bubble to itself as long as that has not noticed: so it is left with a file of its own.
func (n *childNode) unlock() error {
	name := filepath.Join(n.dir, logdir.LockFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.WriteFile(name+".new", text, 0o666), os.Rename(name+".new", name))
}

// isJobFile reports whether a name is that of what the chief tells the others.
func isJobFile(name string) bool { return filepath.Base(name) == "job.json" }

// published judges who tells the others what to do: there is one chief.
func (n *childNode) published(name string) {
	var job struct {
		Phase string `json:"phase"`
	}
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &job) != nil {
		return // it was removed meanwhile
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.chief; c != nil && c != n && c.runs() && !c.lost && !n.ending {
		n.noteLocked(broke("node %d leads the job (%s) while node %d does", n.node, job.Phase, c.node))
	}
	n.chief, n.led = n, true
	final := isFinal(job.Phase)
	switch {
	case n.ending && !final && (time.Since(n.begun) < time.Minute || n.host.wasFrozen(time.Minute)): // it came when the others were about to end
		n.stopped = true
		n.stop(trainerd.StopRequest("SIGTERM"))
	case n.ending && !final:
		n.noteLocked(broke("node %d begins the job once more after its end", n.node))
	case final && !n.ending:
		n.ending = true
		time.AfterFunc(n.endsWithin(), n.judgeEnding)
	}
}

// isFinal reports whether a phase is that of a job which has ended.
func isFinal(phase string) bool {
	return slices.Contains([]string{"complete", "stopped", "failed"}, phase)
}

// endsWithin is how long a node may take to end when the job has, or it was asked to.
func (l *childLife) endsWithin() time.Duration {
	grace, err := strconv.ParseFloat(l.keys["supervisor.stop_grace_secs"], 64)
	if err != nil {
		grace = child.DefaultGrace.Seconds()
	}
	return time.Minute + time.Duration(2*grace*float64(time.Second))
}

// judgeEnding wants all nodes to have ended.
func (l *childLife) judgeEnding() {
	for _, n := range l.running() {
		if n.host.frozenFor() == 0 {
			l.note(broke("node %d has not ended %v after the end of the job", n.node, l.endsWithin()))
		}
	}
}

// setStopped notes that somebody asks a trainerd to stop, which it does in time.
func (n *childNode) setStopped() {
	n.set(func() { n.stopped = true })
	if n.plan.nodes == 1 {
		return
	}
	time.AfterFunc(n.endsWithin(), func() {
		if n.runs() && n.host.frozenFor() == 0 {
			n.note(broke("node %d was asked to stop %v ago, and has not ended", n.node, n.endsWithin()))
		}
	})
}

// endInTime ends the job on all nodes when its time is over: by a signal to each of them,
// or by the loss of all.
func (l *childLife) endInTime() {
	select {
	case <-l.ended:
		return
	case <-l.over:
	}
	rnd := l.plan.source(fmt.Sprint("end of life ", l.number))
	if rnd.IntN(3) == 0 {
		l.dieAll()
		return
	}
	for _, n := range l.running() {
		n.sendSignal()
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Second))))
	}
}

// isOver reports whether the time for the job is over at a step, for the first time.
func (l *childLife) isOver(step int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == 0 || !l.happened || step < l.when+l.until {
		return false
	}
	l.until = 0
	return true
}

// judgeStart judges a start of the program: no process of another start is alive on a
// node that could have ended it, and all nodes begin with the same checkpoint.
func (n *childNode) judgeStart(id, checkpoint string) error {
	if n.plan.nodes == 1 {
		return nil
	}
	if n.startsInPause(id) {
		return broke("node %d begins start %q in a pause", n.node, id)
	}
	for _, other := range n.running() {
		alone := time.Since(other.begun) < 5*time.Minute && !other.starts.Load() // it may be ending what it has found
		for _, p := range other.host.processes() {
			if p.id != id && !alone && other.host.frozenFor() == 0 && !n.host.wasFrozen(toldWithin) { // else it begins what it was about to
				return broke("node %d begins start %q while process %d of start %q is alive on node %d", n.node, id, p.pid, p.id, other.node)
			}
		}
	}
	c, floor := n.crewOf(id), n.floor()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given == nil {
		c.given, c.told = &checkpoint, floor
	}
	if *c.given != checkpoint {
		return broke("node %d is given %q, and another %q in the same start", n.node, checkpoint, *c.given)
	}
	return nil
}

// crewOf returns the crew of a start.
func (l *childLife) crewOf(id string) *crew {
	if l.plan.nodes == 1 {
		return newCrew(l.plan.team, id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crews[id] == nil {
		l.crews[id] = newCrew(l.plan.team, id)
	}
	return l.crews[id]
}

// judgeExits judges how all have ended.
func (l *childLife) judgeExits() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.nodes {
		if err := n.judgeExit(n.result); err != nil {
			return fmt.Errorf("node %d: %w", n.node, err)
		}
	}
	return l.judgeLeft()
}

// judgeLeft wants nothing to be left on machines whose trainerd has ended by itself.
func (l *childLife) judgeLeft() error {
	if l.plan.nodes == 1 {
		return nil
	}
	for node, host := range l.hosts {
		if n := l.newest(node); n != nil && !n.isDead() && len(host.processes()) > 0 {
			return broke("%d processes are left on node %d", len(host.processes()), node)
		}
	}
	return nil
}

// judgeFollower judges an error of one that has followed a chief.
func (n *childNode) judgeFollower(e *child.ChiefError) error {
	failed := func(c *childNode) bool { return c.led && (c.result != nil || c.isDead()) }
	if !slices.ContainsFunc(n.nodes, failed) {
		return broke("no chief has failed: %w", e)
	}
	if code := daemon.ExitCode(e); code != daemon.ExitFailed {
		return broke("the exit code is %d: %w", code, e)
	}
	return nil
}

// A saying is what the log of a trainerd has said, and when.
type saying struct {
	mu     sync.Mutex
	last   time.Time // of a line, or the end of the program
	said   string
	trains bool      // the program runs
	ended  time.Time // when it did so last
	until  time.Time // when a pause ends that was announced
}

// line notes a line of the log. While no program runs, such lines follow each other.
func (n *childNode) line(r slog.Record, attrs map[string]slog.Value) {
	s := &n.saying
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if quiet := now.Sub(s.last); !s.trains && !s.last.IsZero() && quiet > silence && now.Sub(s.until) > silence && n.plan.nodes > 1 && !n.isDead() && !n.hasPause() && !n.host.wasFrozen(silence) {
		n.note(broke("node %d is silent for %v after %q", n.node, quiet, s.said))
	}
	s.last, s.said = now, r.Message
	switch {
	case strings.Contains(r.Message, "it will be started again"):
		s.until = now.Add(attrs["pause"].Duration())
	case strings.HasPrefix(r.Message, "the job is paused"):
		s.until = now.AddDate(1, 0, 0)
	case r.Message == "started":
		s.until = time.Time{}
	}
}

// hasPause reports whether there is a pause, in which a worker has nothing to say, or was
// shortly before.
func (l *childLife) hasPause() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pausing || time.Since(l.resumed) <= silence
}

// setTrains says whether the program runs.
func (s *saying) setTrains(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trains, s.last, s.ended = is, time.Now(), time.Now()
}

// endedFor returns for how long the program has run no more, 0 while it does.
func (s *saying) endedFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trains {
		return 0
	}
	return time.Since(s.ended)
}
