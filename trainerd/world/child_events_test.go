//go:build unix

package world

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

const sigKill = syscall.SIGKILL

// childEvents are what may happen in a life of trainerd with a program: to the disk, to
// trainerd, to the program, and what people ask for.
var childEvents = []*event{
	{name: "killed at an operation", killAt: func(rnd *rand.Rand) int64 { return 1 + rnd.Int64N(200) }},
	{name: "killed at a step", program: func(p *program) error { p.die(); return nil }},
	{name: "killed with a worker", program: func(p *program) error { p.orphan(p.rnd); p.die(); return nil }},
	{name: "power-cut", disk: kill, power: true},
	{name: "disk-error", disk: failure(syscall.EIO, false), fails: true},
	{name: "disk-full-once", disk: failure(syscall.ENOSPC, false), fails: true},
	{name: "disk-full", disk: failure(syscall.ENOSPC, true), heal: time.Hour, fails: true},
	{name: "program fails", fails: true, program: func(p *program) error { return &programEnd{code: 1 + p.rnd.IntN(60)} }},
	{name: "program fails at the start", fails: true, program: func(p *program) error { p.badStarts.Store(2); return &programEnd{code: 1} }},
	{name: "program is killed", fails: true, program: (*program).perish},
	{name: "program is preempted", program: func(p *program) error { return &programEnd{code: 75} }},
	{name: "program hangs", fails: true, program: (*program).hang},
	{name: "NaN", program: (*program).diverge},
	{name: "sigterm", askChild: func(n *childNode, _ context.Context) error { n.sendSignal(); return nil }},
	{name: "sigterm with a worker", program: func(p *program) error { p.orphan(p.rnd); p.sendSignal(); return nil }},
	{name: "stop", askChild: (*childNode).askStop},
	{name: "save", askChild: (*childNode).askSave},
	{name: "pause", askChild: (*childNode).askPause},
	{name: "keep", askChild: (*childNode).askKeep},
	{name: "note", askChild: func(n *childNode, _ context.Context) error { return n.post("note", `{"text": "a note"}`) }},
	{name: "lock-removed", askChild: (*childNode).removeLock},
	{name: "damaged-newest", killAt: func(rnd *rand.Rand) int64 { return 30 + rnd.Int64N(200) }, afterChild: (*childHistory).damageNewest},
}

// laterChildEvents came after childEvents. What a seed meant before stays known: see
// firstChildPlan.
var laterChildEvents = []*event{{name: "NaN, reported late", program: (*program).divergeUnseen}}

// fullForHours is a disk that is full for longer than a program may fail.
var fullForHours = &event{name: "disk-full for hours", disk: failure(syscall.ENOSPC, true), heal: 12 * time.Hour, fails: true}

// fillDisk has the disk of some programs be full for hours in a life.
func (p *childPlan) fillDisk(rnd *rand.Rand) {
	if p.way == nil || !p.way.hasSteps() || len(p.lives) == 0 || rnd.IntN(3) > 0 {
		return
	}
	l := &p.lives[rnd.IntN(len(p.lives))]
	if other := l.event; rnd.IntN(2) == 0 {
		l.event = together(fullForHours, other)
	} else {
		l.event = fullForHours
	}
}

// divergeUnseen is diverge with a save before the report of the loss, as that of a
// program whose lines wait in a buffer.
func (p *program) divergeUnseen() error {
	late := p.keys["child.hang_secs"] == "" && p.mayGoBack() // else it would be killed as one that hangs
	p.crew.change(func() { p.crew.late = late })
	return p.diverge()
}

// hang makes no steps any more, until somebody kills it.
func (p *program) hang() error {
	if p.keys["child.hang_secs"] == "" {
		return nil
	}
	<-p.killed
	return errDead
}

// perish is killed by somebody else than trainerd.
func (p *program) perish() error {
	p.orphan(p.rnd)
	if !p.term {
		p.failed.Store(true) // on other nodes it is ended, too
		p.reported.Store(0)  // a stop that comes now has lost nothing
	}
	return &programEnd{code: -1, sig: sigKill}
}

// mayGoBack reports whether there is something to go back to from a checkpoint that was
// saved after a fault: it has not saved over its only one.
func (p *program) mayGoBack() bool { return p.floor() > 0 && strings.Contains(p.plan.way.pattern, "*") }

// diverge has the loss of the next step be NaN, if somebody watches it. A chief may learn
// late of what another node reports.
func (p *program) diverge() error {
	if p.keys["child.max_rewinds"] != "" && (p.plan.nodes == 1 || p.mayGoBack()) {
		p.crew.change(func() { p.crew.diverges = p.step + 1 })
		p.set(func() { p.nan = true })
	}
	return nil
}

// ask does what the event of the life says when its step is reached.
func (l *childLife) ask(ctx context.Context) error {
	if l.event.askChild == nil {
		return nil
	}
	select {
	case <-l.ended:
		return nil
	case <-l.reached:
	}
	return l.event.askChild(l.now(l.target), context.WithoutCancel(ctx))
}

// sendSignal sends SIGTERM to trainerd.
func (n *childNode) sendSignal() {
	n.setStopped()
	n.stop(trainerd.StopRequest("SIGTERM"))
}

func (n *childNode) askStop(context.Context) error {
	n.setStopped()
	return n.post("stop", "")
}

// post has an action done. That the run ends, or is not there yet, is not an error.
func (n *childNode) post(action, body string) error {
	status, answer := n.network.request(http.MethodPost, "v1/"+action, body)
	if status == 0 || status == http.StatusOK || status == http.StatusConflict || n.fs.Failed() != "" {
		return nil
	}
	return broke("%s %s is answered by %d %s", action, body, status, answer)
}

func (n *childNode) askSave(context.Context) error {
	return n.post("save", "")
}

func (n *childNode) askPause(context.Context) error {
	if status, answer := n.network.request(http.MethodPost, "v1/pause", ""); isUntold(answer) {
		n.set(func() { n.pausing = true })
		return n.resumeNodes()
	} else if status != http.StatusOK {
		return nil
	}
	if n.plan.nodes > 1 {
		return n.pauseNodes()
	}
	time.Sleep(n.plan.during(n.rnd, 2)) // a step that was being made may be reported
	before := n.reported.Load()
	time.Sleep(between(n.rnd, time.Second, time.Hour))
	stopped := false // a stop wakes a program, which then saves
	n.set(func() { stopped = n.stopped })
	if at := n.reported.Load(); at != before && !stopped {
		return broke("a paused program has gone from step %d to %d", before, at)
	}
	status, answer := n.network.request(http.MethodPost, "v1/resume", "")
	if status != http.StatusOK && status != 0 {
		return broke("resume is answered by %d %s", status, answer)
	}
	return nil
}

// askKeep pins the newest checkpoint, which then stays.
func (n *childNode) askKeep(context.Context) error {
	saved := n.monitor.Status().Saved
	if saved == nil {
		return nil
	}
	if status, _ := n.network.request(http.MethodPost, "v1/keep", fmt.Sprintf(`{"step": %d}`, saved.Step)); status != http.StatusOK {
		return nil
	}
	n.childHistory.pins++
	<-n.ended
	if _, err := os.Stat(saved.Checkpoint); err != nil {
		return broke("checkpoint %s was kept on request: %w", saved.Checkpoint, err)
	}
	return nil
}

// removeLock removes the lock file, which is made again.
func (n *childNode) removeLock(context.Context) error {
	os.Remove(filepath.Join(n.dir, logdir.LockFile))
	return nil
}

// damageNewest turns a bit of the newest checkpoint of a program, when there is an
// older one that was announced.
func (h *childHistory) damageNewest(rnd *rand.Rand) error {
	if h.plan.way == nil || !h.plan.way.hasSteps() {
		return nil
	}
	all, err := found.Scan(h.dir, h.plan.way.pattern)
	if err != nil || len(all) < 2 || h.stepOf(all[len(all)-1]) > h.announced {
		return err // nothing has been recorded of that one, by which damage could be found
	}
	newest, older := all[len(all)-1], all[len(all)-2]
	name := newest.Path
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "model.safetensors")
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
	fsys := faultfs.New(0)
	if err := atomicfile.WriteFile(fsys, name, data); err != nil {
		return err
	}
	os.Chtimes(name, info.ModTime(), info.ModTime())
	h.announced = min(h.announced, h.stepOf(older))
	h.forget(h.announced)
	fsys.Mark(h.announced + 1)
	for range fsys.Replay(h.disk) {
	}
	return nil
}
