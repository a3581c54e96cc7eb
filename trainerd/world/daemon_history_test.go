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
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A daemonHistory is a plan of a job that is carried out.
type daemonHistory struct {
	*place
	plan   *daemonPlan
	defect *daemonDefect // planted; nil for none
	trace  *trace
	keys   map[string]string
	config string       // file of the job
	story  slog.Handler // may be nil

	changedEval, changedSummaries bool  // by a request: when they come is not known any more
	stepped                       bool  // in the newest life; else the job was found complete
	from                          int64 // the points after it are there: the logdir was removed; 0 for all
}

// run carries out a plan in a fresh folder, and returns the first rule that was broken.
func (p *daemonPlan) run(t *testing.T, planted *daemonDefect, story *slog.Logger) (o outcome, err error) {
	h := &daemonHistory{place: newPlace(t), plan: p, defect: planted, keys: p.keys(true)}
	defer h.leave()
	if story != nil {
		h.story = story.Handler()
	}
	if err := h.prepare(t.Context()); err != nil {
		return o, err
	}
	synctest.Test(t, func(t *testing.T) { err = h.live(t.Context()) })
	if err == nil {
		err = h.judgeEnd(t.Context())
	}
	return h.outcome(), err
}

// prepare lays out what the job reads, and trains it without a disturbance.
func (h *daemonHistory) prepare(ctx context.Context) error {
	dir := filepath.Join(h.root, "job")
	h.others, h.config = 1, filepath.Join(dir, "job.toml")
	if err := errors.Join(os.Mkdir(dir, 0o777), h.plan.kind.lay(dir)); err != nil {
		return err
	}
	if err := os.WriteFile(h.config, []byte(h.plan.toml(h.dir, true)), 0o666); err != nil {
		return err
	}
	var err error
	h.trace, err = h.plan.reference(ctx, dir)
	return err
}

// live goes through all lives.
func (h *daemonHistory) live(ctx context.Context) (err error) {
	if err := h.viewData(ctx, h.plan.source("data server")); err != nil {
		return err
	}
	h.defect.overView(h.view)
	defer func() { err = errors.Join(err, h.view.close()) }()
	for _, l := range append(slices.Clone(h.plan.lives), life{number: -1, event: &event{name: "undisturbed"}}) {
		if err := h.liveOnce(ctx, l); err != nil {
			return fmt.Errorf("life %d (%s): %w", l.number, l.event.name, err)
		}
		time.Sleep(time.Second) // a host that starts again
	}
	return nil
}

// daemonLife is one life of a job.
type daemonLife struct {
	*daemonHistory
	life
	rnd   *rand.Rand
	fault faultfs.Fault
	fs    *faultfs.FS
	disk  atomicfile.FS // over fs

	monitor  *control.Monitor
	network  *memoryListener
	out, err bytes.Buffer
	stop     context.CancelCauseFunc
	reached  chan struct{} // closed at the step of the event
	ended    chan struct{} // closed at the end of the run
	when     int64

	mu      sync.Mutex
	broken  error // the first rule
	step    int64 // the newest
	stopped bool  // somebody asked for it
	frozen  bool  // no step is to come: it is paused

	homeless bool // the logdir was removed, and the run has not seen that yet
}

func (h *daemonHistory) liveOnce(ctx context.Context, of life) error {
	rnd := h.plan.source(fmt.Sprint("life ", of.number))
	l := &daemonLife{daemonHistory: h, life: of, rnd: rnd, when: 1 + rnd.Int64N(h.trace.last), reached: make(chan struct{}), ended: make(chan struct{})}
	if of.event.disk != nil {
		l.fault = of.event.disk(rnd)
		h.lossy = h.lossy || !l.fault.Kill
	}
	l.fs = faultfs.NewFault(l.fault)
	l.disk = h.defect.overDisk(slowDisk{l.fs, h.plan.source("slow disk").IntN(3)})
	files := openFiles()
	err := l.supervise(ctx)
	h.stepped = l.step > 0
	h.suffered(l.fs.Failed() != "" || of.event.ask != nil && l.step >= l.when)
	if err := errors.Join(l.broken, l.judgeExit(err)); err != nil {
		return err
	}
	for number, name := range openFiles() {
		if _, before := files[number]; !before && filepath.IsAbs(name) {
			return broke("a file is left open: %s", name)
		}
	}
	if err := l.replaceLogdir(); err != nil {
		return err
	}
	if err := h.settle(ctx, l.fs, of.event.power, rnd); err != nil {
		return err
	}
	if err := h.judgeNewest(ctx); err != nil {
		return err
	}
	if of.event.after != nil {
		return of.event.after(h.place, rnd)
	}
	return nil
}

// openFiles returns what the descriptors of the process are, nothing where nobody says.
func openFiles() map[string]string {
	files := map[string]string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if name, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil { // else that of ReadDir
			files[e.Name()] = name
		}
	}
	return files
}

// supervise has the daemon run the job, with somebody who asks for things.
func (l *daemonLife) supervise(ctx context.Context) error {
	c, err := config.Load(l.config, nil)
	if err != nil {
		return broke("a config that should be valid is not: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l.stop = stop
	l.monitor, l.network = control.NewMonitor(c.Name, c.Logdir, os.Getpid()), newMemoryListener()
	var asking sync.WaitGroup
	asking.Go(func() { l.note(l.ask(ctx)) })
	asking.Go(func() { l.note(l.lookOn()) })
	asking.Go(func() { l.note(l.lookAtData(ctx, l.plan.during(l.plan.source("data server"), 30), l.ended)) })
	hangs := time.AfterFunc(10*24*time.Hour, func() { l.note(broke("the run makes no progress after step %d", l.newestStep())) })
	defer hangs.Stop()
	err = daemon.Run(ctx, c, daemon.RunOptions{
		Stdout: &l.out, Stderr: &l.err, Again: "again", Log: slog.New(listener(l.noteAnnounced)), Monitor: l.monitor, Serve: l.serve, FS: l.disk, Wrap: l.wrap,
	})
	if l.story != nil {
		slog.New(l.story).Info("the life ends", "err", err, "disk", l.fs.Failed())
	}
	close(l.ended)
	asking.Wait()
	l.network.Close()
	return l.defect.overResult(err)
}

// note keeps the first rule that was broken, and ends the run for it.
func (l *daemonLife) note(err error) {
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

// wrap watches a session of the run: each step takes its time, and has the bits of
// the undisturbed training.
func (l *daemonLife) wrap(s session.Session) session.Session {
	first := true
	w := &watched{Session: s.(*runtime.Session), loose: l.plan.kind.ownInput}
	w.before = func(step int64) error {
		if announced := l.promise(); first && step < announced {
			return broke("a session begins at step %d; %d was announced as saved", step, announced)
		}
		first = false
		time.Sleep(l.plan.stepTime)
		if l.fs.Failed() != "" {
			if l.fault.Kill {
				return faultfs.ErrKilled
			}
			l.heal()
		}
		return nil
	}
	w.after = func(ctx context.Context, w *watched, step int64) error {
		got, err := w.digest(ctx)
		if err == nil && got != l.trace.digests[step] {
			err = broke("at step %d the weights differ from those of the undisturbed training", step)
		}
		l.stepDone(step)
		l.note(err)
		return err
	}
	return l.defect.overWatched(w)
}

// heal has a disk that fails work again after a while.
func (l *daemonLife) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.event.heal > 0 && l.fault.Lasting {
		l.fault.Lasting = false
		time.AfterFunc(l.event.heal, l.fs.Heal)
	}
}

func (l *daemonLife) stepDone(step int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step = step
	l.trained.Add(int64(l.plan.stepTime))
	if l.frozen && l.broken == nil {
		l.broken = broke("step %d was made in a pause", step)
	}
	if step >= l.when {
		select {
		case <-l.reached:
		default:
			close(l.reached)
		}
	}
}

func (l *daemonLife) promise() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.announced
}

func (l *daemonLife) isHomeless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.homeless
}

// noteAnnounced reads the log of a run for the saves that it announces.
func (l *daemonLife) noteAnnounced(ctx context.Context, r slog.Record) error {
	switch {
	case strings.HasPrefix(r.Message, "logdir was deleted"):
		l.settleDown()
	case r.Message == "saved" && !l.isHomeless():
		l.fs.Mark(attrsOf(r)["step"].Int64() + 1) // 0 is for none
	}
	if l.story != nil {
		return l.story.Handle(ctx, r)
	}
	return nil
}
