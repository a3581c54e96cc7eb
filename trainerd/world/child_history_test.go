//go:build unix

package world

import (
	"bytes"
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

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// A childHistory is a plan of a program that is carried out.
type childHistory struct {
	*place
	machine *machine
	plan    *childPlan
	defect  *childDefect // planted; nil for none
	keys    map[string]string
	config  string       // file of the job
	story   slog.Handler // may be nil

	gaps  []gap          // points that a death of trainerd may have cost
	kept  map[int64]bool // steps announced as saved, whose checkpoints only a rotation may have removed
	pins  int
	saved atomic.Int64 // step of the newest checkpoint that the program has written
}

// A gap is the steps after one and up to another.
type gap struct{ from, to int64 }

// run carries out a plan in a fresh folder, and returns the first rule that was broken.
func (p *childPlan) run(t *testing.T, planted *childDefect, story *slog.Logger) (o outcome, err error) {
	h := &childHistory{place: newPlace(t), machine: new(machine), plan: p, defect: planted, keys: p.keys(), kept: map[int64]bool{}}
	h.place.judge = h.judgeLogdir
	defer h.leave()
	if story != nil {
		h.story = story.Handler()
	}
	h.others, h.config = 1, filepath.Join(h.root, "job.toml")
	if err := os.WriteFile(h.config, []byte(p.toml(h.dir)), 0o666); err != nil {
		return o, err
	}
	synctest.Test(t, func(t *testing.T) {
		err = h.live(t.Context())
		for _, p := range h.machine.processes() {
			p.signal(sigKill)
		}
	})
	if err == nil {
		err = h.judgeEnd()
	}
	return h.outcome(), err
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
		h.suffered(l.fs.Failed() != "" || l.happened || l.isDead())
		if err := l.settle(ctx, l.fs, of.event.power, l.rnd); err != nil {
			return fmt.Errorf("life %d (%s): %w", of.number, of.event.name, err)
		}
		if of.event.afterChild != nil {
			if err := of.event.afterChild(h, l.rnd); err != nil {
				return err
			}
		}
		if i+1 < len(lives) {
			l = h.newLife(lives[i+1])
		}
		time.Sleep(time.Second) // a host that starts again
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
}

// childLife is one life of trainerd with the program.
type childLife struct {
	*childHistory
	life
	rnd    *rand.Rand
	fault  faultfs.Fault
	fs     *faultfs.FS
	killAt int64 // operation of trainerd, 0 for none
	when   int64 // step of the event

	monitor  *control.Monitor
	network  *memoryListener
	out, err bytes.Buffer
	stop     context.CancelCauseFunc
	reached  chan struct{} // closed at the step of the event
	ended    chan struct{} // closed at the end of trainerd
	died     chan struct{} // closed when it is killed
	die      func()

	ops       atomic.Int64
	starts    atomic.Int64
	badStarts atomic.Int64 // of the program, which are to come
	reported  atomic.Int64 // step
	completed atomic.Bool
	mu        sync.Mutex
	broken    error // the first rule
	promised  int64 // the step that was announced last
	stopped   bool  // somebody asked for it
	nan       bool
	rewound   bool
	happened  bool
}

func (h *childHistory) newLife(of life) *childLife {
	rnd := h.plan.source(fmt.Sprint("life ", of.number))
	l := &childLife{childHistory: h, life: of, rnd: rnd, when: 1 + rnd.Int64N(h.plan.steps), promised: h.announced,
		reached: make(chan struct{}), ended: make(chan struct{}), died: make(chan struct{})}
	l.die = sync.OnceFunc(func() { close(l.died) })
	if of.event.killAt != nil {
		l.killAt = of.event.killAt(rnd)
	}
	if of.event.disk != nil {
		l.fault = of.event.disk(rnd)
		h.lossy = h.lossy || !l.fault.Kill
	}
	l.fs = faultfs.NewFault(l.fault)
	h.machine.mu.Lock()
	defer h.machine.mu.Unlock()
	h.machine.disk = watchedDisk{l.fs, l}
	return l
}

func (l *childLife) isDead() bool {
	select {
	case <-l.died:
		return true
	default:
		return false
	}
}

// live has the daemon run the job, with somebody who asks for things.
func (l *childLife) live(ctx context.Context) error {
	c, err := config.Load(l.config, nil)
	if err != nil {
		return broke("a config that should be valid is not: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l.stop = stop
	l.monitor, l.network = control.NewMonitor(c.Name, c.Logdir, os.Getpid()), newMemoryListener()
	var others sync.WaitGroup
	others.Go(func() { l.note(l.ask(ctx)) })
	others.Go(l.attend)
	others.Go(func() { l.note(l.lookAtData(ctx, l.plan.during(l.plan.source("data server"), 30), l.ended)) })
	hangs := time.AfterFunc(10*24*time.Hour, func() { l.note(broke("the run makes no progress after step %d", l.reported.Load())) })
	defer hangs.Stop()
	files := openFiles()
	err = daemon.Run(ctx, c, daemon.RunOptions{
		Stdout: &l.out, Stderr: &l.err, Again: "again", Log: slog.New(childLog{l}), Monitor: l.monitor,
		Serve:  func(*slog.Logger) func() { return serveControl(l.monitor, l.network, l.note) },
		FS:     l.defect.overDisk(killableDisk{watchedDisk{l.fs, l}}),
		System: childSystem{l},
	})
	err = l.defect.overResult(err)
	close(l.ended)
	others.Wait()
	l.network.Close()
	if l.isDead() {
		l.gaps = append(l.gaps, gap{from: l.promised, to: -1})
	}
	return errors.Join(l.broken, l.judgeExit(err), leftOpen(files))
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

// attend does what the system does at the death of trainerd: what it has started
// directly dies too, and with the machine all does. It also heals a disk.
func (l *childLife) attend() {
	var healed <-chan time.Time
	look := time.NewTicker(time.Minute)
	defer look.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-l.died:
			for _, p := range l.machine.processes() {
				if p.leader == p || l.event.power {
					p.signal(sigKill)
				}
			}
			l.stop(errDead)
			return
		case <-look.C:
			if l.event.heal > 0 && healed == nil && l.fs.Failed() != "" {
				healed = time.After(l.event.heal)
			}
		case <-healed:
			l.fs.Heal()
			healed = nil
		}
	}
}

// note keeps the first rule that was broken, and ends the run for it.
func (l *childLife) note(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
	}
	l.stop(err)
}

// floor is the step that was announced last.
func (l *childLife) floor() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised
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

// watchedDisk is the disk of the machine: at a power cut all dies.
type watchedDisk struct {
	*faultfs.FS
	l *childLife
}

func (d watchedDisk) see(err error) error {
	if errors.Is(err, faultfs.ErrKilled) {
		d.l.die()
	}
	return err
}

func (d watchedDisk) Create(name string) (atomicfile.File, error) {
	f, err := d.FS.Create(name)
	return f, d.see(err)
}
func (d watchedDisk) Rename(from, to string) error { return d.see(d.FS.Rename(from, to)) }
func (d watchedDisk) Remove(name string) error     { return d.see(d.FS.Remove(name)) }
func (d watchedDisk) Mkdir(name string) error      { return d.see(d.FS.Mkdir(name)) }
func (d watchedDisk) SyncDir(name string) error    { return d.see(d.FS.SyncDir(name)) }
func (d watchedDisk) SyncFile(name string) error   { return d.see(d.FS.SyncFile(name)) }

// killableDisk is the disk as trainerd has it, which may be killed at an operation.
type killableDisk struct{ watchedDisk }

// next counts an operation.
func (d killableDisk) next() error {
	if d.l.ops.Add(1) == d.l.killAt {
		d.l.die()
	}
	if d.l.isDead() {
		return faultfs.ErrKilled
	}
	return nil
}

func (d killableDisk) Create(name string) (atomicfile.File, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	f, err := d.watchedDisk.Create(name)
	if err != nil {
		return nil, err
	}
	return killableFile{f, d}, nil
}

func (d killableDisk) Rename(from, to string) error {
	return cmpErr(d.next(), func() error { return d.watchedDisk.Rename(from, to) })
}

func (d killableDisk) Remove(name string) error {
	return cmpErr(d.next(), func() error { return d.watchedDisk.Remove(name) })
}

func (d killableDisk) Mkdir(name string) error {
	return cmpErr(d.next(), func() error { return d.watchedDisk.Mkdir(name) })
}

func (d killableDisk) SyncDir(name string) error {
	return cmpErr(d.next(), func() error { return d.watchedDisk.SyncDir(name) })
}

func (d killableDisk) SyncFile(name string) error {
	return cmpErr(d.next(), func() error { return d.watchedDisk.SyncFile(name) })
}

type killableFile struct {
	atomicfile.File
	disk killableDisk
}

func (f killableFile) Write(b []byte) (n int, err error) {
	return n, cmpErr(f.disk.next(), func() error { n, err = f.File.Write(b); return f.disk.see(err) })
}

func (f killableFile) Sync() error {
	return cmpErr(f.disk.next(), func() error { return f.disk.see(f.File.Sync()) })
}

// cmpErr returns an error, or that of what is done without one.
func cmpErr(err error, do func() error) error {
	if err != nil {
		return err
	}
	return do()
}
