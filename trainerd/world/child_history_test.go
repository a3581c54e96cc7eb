//go:build unix

package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// A childHistory is a plan of a program that is carried out.
type childHistory struct {
	*place
	hosts  []*machine // of the nodes
	plan   *childPlan
	defect *childDefect // planted; nil for none
	keys   map[string]string
	story  slog.Handler // may be nil

	gaps     []gap          // points that a death of trainerd may have cost, or the end of the part that the curve is from
	kept     map[int64]bool // steps announced as saved, whose checkpoints only a rotation may have removed
	pins     int
	saved    atomic.Int64 // step of the newest checkpoint that the program has written
	unsynced unflushed

	named  int64 // the step of the checkpoint that the program has given a second name
	unsure bool  // what has become of that name
}

// A gap is the steps after one and up to another.
type gap struct{ from, to int64 }

// run carries out a plan in a fresh folder, and returns the first rule that was broken.
func (p *childPlan) run(t *testing.T, planted *childDefect, story *slog.Logger) (o outcome, err error) {
	h := &childHistory{place: newPlace(t), plan: p, defect: planted, keys: p.keys(0), kept: map[int64]bool{}}
	h.place.judge = h.judgeLogdir
	defer h.leave()
	if story != nil {
		h.story = story.Handler()
	}
	if err := h.lay(); err != nil {
		return o, err
	}
	synctest.Test(t, func(t *testing.T) {
		err = h.live(t.Context())
		for _, host := range h.hosts {
			host.signalAll(sigKill)
		}
	})
	if err == nil {
		err = h.judgeEnd()
	}
	return h.outcome(), err
}

// lay writes a config for each node.
func (h *childHistory) lay() error {
	h.others = 1
	err := os.Mkdir(filepath.Join(h.root, "job"), 0o777)
	for node := range h.plan.nodes {
		h.hosts = append(h.hosts, new(machine))
		text := tomlOf(h.plan.keys(node), h.dir)
		err = errors.Join(err, os.WriteFile(h.configOf(node), []byte(text), 0o666))
	}
	return err
}

func (h *childHistory) configOf(node int) string {
	return filepath.Join(h.root, "job", fmt.Sprintf("job%d.toml", node))
}

// live goes through all lives.
func (h *childHistory) live(ctx context.Context) (err error) {
	if err := h.viewData(ctx, h.plan.source("data server")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.view.close()) }()
	lives := append(slices.Clone(h.plan.lives), life{number: -1, event: &event{name: "undisturbed"}})
	l := h.newLife(lives[0])
	for i, of := range lives {
		if err := l.live(ctx); err != nil {
			return fmt.Errorf("life %d (%s): %w", of.number, of.event.name, err)
		}
		synctest.Wait() // for what is alive still
		h.suffered(l.fs.Failed() != "" || l.happened || l.deaths > 0)
		if err := l.settle(ctx, l.fs, of.event.power, l.rnd); err != nil {
			return fmt.Errorf("life %d (%s): %w", of.number, of.event.name, err)
		}
		if of.event.power {
			h.unsynced.forget()
			h.unsure = true
		}
		if of.event.afterChild != nil {
			if err := of.event.afterChild(h, l.rnd); err != nil {
				return err
			}
		}
		if i+1 < len(lives) {
			l = h.newLife(lives[i+1])
		}
		time.Sleep(time.Second) // hosts that start again
	}
	return nil
}

// forget forgets the checkpoints after a step: what is left of them is not known.
func (h *childHistory) forget(after int64) {
	for step := range h.kept {
		if step > after {
			delete(h.kept, step)
		}
	}
	h.named = min(h.named, after)
}

// childLife is one life of the job: from when its nodes start to when it has ended on
// all of them.
type childLife struct {
	*childHistory
	life
	rnd    *rand.Rand
	fault  faultfs.Fault
	fs     *faultfs.FS
	killAt int64 // operation of the trainerd of target, 0 for none
	when   int64 // step of the event
	target int   // node of the event
	until  int64 // step after the event at which the time for the job is over; 0 for none

	reached chan struct{} // closed at the step of the event
	over    chan struct{} // closed when the time is over
	ended   chan struct{} // closed at the end of trainerd on all nodes

	badStarts atomic.Int64 // of the program, which are to come
	badSaves  atomic.Int64 // after which the program fails
	idleEnds  atomic.Int64 // of the program in a row: see noteEnd
	reported  atomic.Int64 // step
	failed    atomic.Bool  // a part of the program: what the others report yet is lost, too
	completed atomic.Bool
	healed    atomic.Bool // the disk is

	mu       sync.Mutex
	broken   error // the first rule
	promised int64 // the step that was announced last
	nan      bool
	rewound  bool
	happened bool
	removed  bool // the logdir was
	homeless bool // and nobody has made it again
	deaths   int
	pausing  bool // there may be a pause
	paused   bool // there is one, in which the program is not started
	resumed  time.Time

	nodes  []*childNode // all that have been there
	chief  *childNode   // that was the last to lead; nil for none
	ending bool         // the job has ended, as the chief says
	crews  map[string]*crew
}

func (h *childHistory) newLife(of life) *childLife {
	rnd := h.plan.source(fmt.Sprint("life ", of.number))
	l := &childLife{childHistory: h, life: of, rnd: rnd, when: 1 + rnd.Int64N(h.plan.steps), promised: h.announced, crews: map[string]*crew{},
		reached: make(chan struct{}), over: make(chan struct{}), ended: make(chan struct{})}
	if of.event.killAt != nil {
		l.killAt = of.event.killAt(rnd)
	}
	if of.event.disk != nil {
		l.fault = of.event.disk(rnd)
		h.lossy = h.lossy || !l.fault.Kill
	}
	l.fs = faultfs.NewFault(l.fault)
	if h.plan.nodes > 1 && h.tellsPause() {
		l.pausing, l.paused = true, true
	}
	l.drawNodes(h.plan.source(fmt.Sprint("nodes of life ", of.number)))
	for _, host := range h.hosts {
		host.setDisk(watchedDisk{l.fs, l, host})
	}
	return l
}

// live has all nodes run the job, with somebody who asks for things.
func (l *childLife) live(ctx context.Context) error {
	var nodes, others sync.WaitGroup
	others.Go(func() { l.note(l.ask(ctx)) })
	others.Go(func() { l.note(l.resumeLater()) })
	others.Go(l.healDisk)
	others.Go(l.endInTime)
	others.Go(func() { l.note(l.lookAtData(ctx, l.plan.during(l.plan.source("data server"), 30), l.ended)) })
	hangs := time.AfterFunc(10*24*time.Hour, func() { l.note(broke("the run makes no progress after step %d", l.reported.Load())) })
	defer hangs.Stop()
	files := openFiles()
	for node := range l.plan.nodes {
		nodes.Go(func() { l.keepNode(ctx, node) })
	}
	nodes.Wait()
	close(l.ended)
	others.Wait()
	return cmp.Or(l.broken, l.judgeExits(), leftOpen(files))
}

// leftOpen wants no file open that was not.
func leftOpen(before map[string]string) error {
	for number, name := range openFiles() {
		if _, was := before[number]; !was && filepath.IsAbs(name) {
			return broke("a file is left open: %s", name)
		}
	}
	return nil
}

// healDisk heals a disk that fails.
func (l *childLife) healDisk() {
	var healed <-chan time.Time
	look := time.NewTicker(time.Minute)
	defer look.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-look.C:
			if l.event.heal > 0 && healed == nil && l.fs.Failed() != "" {
				healed = time.After(l.event.heal)
			}
		case <-healed:
			l.healed.Store(true)
			l.fs.Heal()
			healed = nil
		}
	}
}

// note keeps the first rule that was broken, and ends the life for it.
func (l *childLife) note(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteLocked(err)
}

func (l *childLife) noteLocked(err error) {
	if l.broken == nil {
		l.broken = err
	}
	for _, n := range l.nodes {
		n.stop(err)
	}
}

// floor is the step that was announced last.
func (l *childLife) floor() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised
}

// mayBePart reports whether a checkpoint may be there in part, with nothing to tell: it is
// the first, which nobody has announced or a node was late to write its part of, or
// was being written when the logdir was removed.
func (l *childLife) mayBePart() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.removed || l.plan.parts && len(l.kept) < 2 {
		l.promised = 0
	}
	return l.promised <= 0
}

// reachedOnce reports whether the step of the event was reached for the first time.
func (l *childLife) reachedOnce() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.happened {
		return false
	}
	l.happened = true
	close(l.reached)
	return true
}

// failsAtStart reports whether the program fails before its first step.
func (l *childLife) failsAtStart() bool { return l.badStarts.Add(-1) >= 0 }
