//go:build unix

package world

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/session"
)

// nodeEvents are what may happen to a program on several nodes, next to childEvents.
var nodeEvents = []*event{
	{name: "node comes late", fails: true},
	{name: "machine loses power", fails: true, program: (*program).losesPower},
	{name: "machine is frozen", fails: true, askChild: (*childNode).freeze},
	{name: "program is frozen", fails: true, askChild: (*childNode).freezeProgram},
	{name: "chief is killed", fails: true, askChild: (*childNode).killChief},
	{name: "chief is stopped", askChild: (*childNode).stopChief},
	{name: "states are refused", fails: true, askChild: (*childNode).refuseStates},
	{name: "logdir-removed", fails: true, single: true, askChild: (*childNode).removeLogdir},
}

// losesPower has the machine of the program lose its power.
func (p *program) losesPower() error {
	p.set(func() { p.powerless = true })
	p.die()
	return nil
}

func (n *childNode) freeze(context.Context) error {
	n.host.freeze(between(n.rnd, time.Second, 10*time.Minute))
	return nil
}

// freezeProgram stops the program on a node for some time, as somebody may who debugs it.
func (n *childNode) freezeProgram(context.Context) error {
	frozen := n.host.processes()
	for _, p := range frozen {
		p.signal(syscall.SIGSTOP)
	}
	time.Sleep(between(n.rnd, time.Second, 10*time.Minute))
	for _, p := range frozen {
		p.signal(syscall.SIGCONT)
	}
	return nil
}

// theChief returns the one that leads now.
func (l *childLife) theChief() *childNode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chief
}

func (n *childNode) killChief(context.Context) error {
	n.theChief().die()
	return nil
}

func (n *childNode) stopChief(context.Context) error {
	n.theChief().sendSignal()
	return nil
}

// refuseStates has the disk refuse for a while what a node tells the others.
func (n *childNode) refuseStates(context.Context) error {
	until := time.Now().Add(between(n.rnd, time.Second, 3*time.Minute))
	n.set(func() { n.refused = until })
	if n.rnd.IntN(2) == 0 { // it has to tell something then
		n.host.signalAll(sigKill)
	}
	return nil
}

// refuses returns an error if the disk refuses a name.
func (n *childNode) refuses(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Now().After(n.refused) || !strings.HasPrefix(name, filepath.Join(n.dir, "trainerd.nodes")+"/") {
		return nil
	}
	return &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
}

// toldWithin is how long it takes until a node has told its state once its disk takes it.
const toldWithin = 5 * time.Second

// judgeWait judges that a chief has waited in vain for a node to end the program. One whose
// program has ended tells it, as soon as its disk takes that.
func (l *childLife) judgeWait(node int) error {
	n := l.now(node)
	if n == nil || !n.runs() || n.fs.Failed() != "" || len(n.host.processes()) > 0 || n.host.wasFrozen(toldWithin) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ended := n.saying.endedFor(); !n.removed && min(ended, time.Since(n.refused), time.Since(n.begun)) > toldWithin {
		return broke("the chief was not told that the program has ended on node %d, %v ago", node, ended)
	}
	return nil
}

// removeLogdir removes the logdir with all that is in it. The chief makes it again.
func (n *childNode) removeLogdir(context.Context) error {
	n.set(func() {
		n.removed, n.homeless, n.lossy = true, true, true
		n.promised, n.announced = session.NoStep, session.NoStep
		n.forget(session.NoStep)
		n.fs.Mark(0)
	})
	n.saved.Store(0)
	if err := removeDir(n.fs, n.dir); !errors.Is(err, faultfs.ErrKilled) {
		return err
	}
	return nil
}

// pauseNodes is a pause that has begun, of a program on several nodes. Meanwhile the chief may
// be killed, and a worker stopped: the pause stays.
func (n *childNode) pauseNodes() error {
	n.set(func() { n.pausing = true })
	time.Sleep(n.plan.during(n.rnd, 2) + 10*time.Second) // until all know
	n.set(func() { n.paused = n.tellsPause() })
	before, deaths := n.reported.Load(), n.hasDeaths()
	time.Sleep(between(n.rnd, time.Second, time.Hour))
	// 0 is of a part that has failed: it was not told, and has waited for the others in vain.
	if at := n.reported.Load(); at != before && at != 0 && !n.hasEnded() && deaths == 0 && n.hasDeaths() == 0 {
		return broke("a program that is paused on all nodes has gone from step %d to %d", before, at)
	}
	if kills, stops := n.rnd.IntN(2) == 0, n.rnd.IntN(2) == 0; !n.hasEnded() {
		if stops {
			n.stopWorker()
		}
		time.Sleep(between(n.rnd, time.Second, 10*time.Minute))
		if kills {
			n.theChief().die()
		}
		time.Sleep(between(n.rnd, time.Second, time.Hour))
	}
	return n.resumeNodes()
}

// stopWorker stops a node that is not the chief's.
func (l *childLife) stopWorker() {
	for _, n := range l.running() {
		if n != l.theChief() {
			n.sendSignal()
			return
		}
	}
}

// resumeNodes ends a pause. By now another chief may lead, or be about to come.
func (l *childLife) resumeNodes() error {
	defer l.set(func() { l.pausing, l.resumed = false, time.Now() })
	for !l.hasEnded() {
		l.set(func() { l.paused = false }) // from now on it may be resumed
		for _, any := range l.running() {
			status, answer := any.network.request(http.MethodPost, "v1/resume", "")
			if status == http.StatusOK {
				return nil
			}
			if status != 0 && status != http.StatusConflict && !isUntold(answer) {
				return broke("resume is answered by %d %s", status, answer)
			}
		}
		time.Sleep(10 * time.Second)
	}
	return nil
}

// isUntold reports whether a pause, or its end, is known to the chief alone: the disk has not
// taken it.
func isUntold(answer []byte) bool {
	return bytes.Contains(answer, []byte("on the chief's node only"))
}

// tellsPause reports whether a chief has told the nodes that the job is paused, and has not
// ended it.
func (h *childHistory) tellsPause() bool {
	var job struct {
		Phase  string `json:"phase"`
		Paused bool   `json:"paused"`
	}
	text, err := os.ReadFile(filepath.Join(h.dir, "trainerd.nodes", "job.json"))
	return err == nil && json.Unmarshal(text, &job) == nil && job.Paused && !isFinal(job.Phase)
}

// resumeLater ends a pause that all nodes of the life before have left.
func (l *childLife) resumeLater() error {
	if !l.pausing {
		return nil
	}
	select {
	case <-time.After(between(l.plan.source(fmt.Sprint("resume in life ", l.number)), 10*time.Second, time.Hour)):
		return l.resumeNodes()
	case <-l.ended:
		return nil
	}
}

// startsInPause reports whether a start begins in a pause.
func (l *childLife) startsInPause(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused && l.crews[id] == nil
}

func (l *childLife) hasDeaths() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deaths
}

// hasEnded reports whether the job has, on all nodes or as the chief says.
func (l *childLife) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending || isClosed(l.ended)
}
