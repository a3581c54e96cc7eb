//go:build unix

package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A history is a plan that is carried out.
type history struct {
	*place
	plan   *plan
	defect *defect // planted; nil for none
	story  *slog.Logger
}

// run carries out a plan in a fresh folder, and returns the first rule that was broken.
func (p *plan) run(t *testing.T, planted *defect, story *slog.Logger) (o outcome, err error) {
	h := &history{place: newPlace(t), plan: p, defect: planted, story: story}
	defer h.leave()
	synctest.Test(t, func(t *testing.T) { err = h.live(t.Context()) })
	if err == nil {
		err = h.judgeEnd(t.Context())
	}
	return h.outcome(), err
}

// live goes through all lives.
func (h *history) live(ctx context.Context) error {
	for _, l := range h.plan.lives {
		if err := h.liveOnce(ctx, l); err != nil {
			return fmt.Errorf("life %d (%s): %w", l.number, l.event.name, err)
		}
		time.Sleep(time.Second) // a host that starts again
	}
	if err := h.liveOnce(ctx, life{number: -1, event: &event{name: "undisturbed"}}); err != nil {
		return fmt.Errorf("last life: %w", err)
	}
	return nil
}

// living is one life.
type living struct {
	*history
	life
	ctx   context.Context
	rnd   *rand.Rand
	fault faultfs.Fault
	fs    *faultfs.FS
	sv    *trainerd.Supervisor
	job   job
	when  int64 // the step at which the event happens
	step  int64 // the newest
	nan   int64 // the step whose loss was NaN; 0 for none
	lost  bool  // the session is
	done  bool  // the last step was made

	healing bool // the disk is to work again

	current atomic.Pointer[session.Session]
}

func (h *history) liveOnce(ctx context.Context, of life) error {
	rnd := h.plan.source(fmt.Sprint("life ", of.number))
	l := &living{history: h, life: of, rnd: rnd, when: 1 + rnd.Int64N(h.plan.steps)}
	if of.event.disk != nil {
		l.fault = of.event.disk(rnd)
		h.lossy = h.lossy || !l.fault.Kill
	}
	l.fs = faultfs.NewFault(l.fault)
	j, err := h.plan.job.make()
	if err != nil {
		return err
	}
	l.job = h.defect.overJob(j)
	if err := l.supervise(ctx); err != nil {
		return err
	}
	h.suffered(l.fs.Failed() != "" || l.when < 0)
	if err := h.settle(ctx, l.fs, l.event.power, l.rnd); err != nil {
		return err
	}
	if of.event.after != nil {
		return of.event.after(h.place, rnd)
	}
	return nil
}

// supervise lets a Supervisor with the options of the plan keep the training
// alive, and judges how the life ended.
func (l *living) supervise(ctx context.Context) error {
	fsys := l.defect.overDisk(slowDisk{l.fs, l.plan.source("slow disk").IntN(3)})
	o := &tfevents.FileWriterOptions{FS: fsys}
	l.defect.overEvents(o)
	events, err := tfevents.NewFileWriter(l.dir, o)
	if err != nil {
		return l.expected(err)
	}
	sv := l.plan.supervisor()
	l.sv = sv
	sv.Logdir, sv.SummaryWriter, sv.Saver.FS, sv.Logger = l.dir, events, fsys, slog.New(listener(l.noteRewind))
	sv.MetaGraph, sv.MaxRestarts = l.job.meta(), 3
	sv.MaxRewinds, sv.OnRewind = l.event.rewinds, l.rewound
	sv.NewSession = func(ctx context.Context) (session.Session, error) {
		s, err := l.job.open(ctx)
		if store, ok := s.(session.VariableStore); ok && l.plan.job.wrap != nil {
			s = l.plan.job.wrap(store)
		}
		return l.defect.overSession(s), err
	}
	sv.SummaryOp = trainerd.None()
	sv.OnSave = func(s trainerd.SavedCheckpoint) { l.fs.Mark(s.Step + 1) } // 0 is for none
	sv.Services = []coord.Service{onlooker{l}}
	l.defect.overSupervisor(sv, l)
	err = sv.Run(ctx, l.train)
	var broken *rule
	switch {
	case errors.As(err, &broken):
		return err
	case l.done && !l.dead():
		if err != nil && !errors.Is(err, session.ErrCompleted) {
			return l.expected(err)
		}
		return nil
	default:
		return l.expected(err)
	}
}

// noteRewind reads the log of a run for the checkpoints that it goes back to, which lowers
// the promise, also of a life that ends before OnRewind is called. Of a rewind that fails,
// the disk may hold a part, or all.
func (l *living) noteRewind(ctx context.Context, r slog.Record) error {
	switch attrs := attrsOf(r); r.Message {
	case "loss is NaN; rewinding":
		if err := l.goBack(ckptdir.StepOf(attrs["to"].String())); err != nil {
			return err
		}
	case "cannot rewind to an earlier checkpoint":
		if err := l.goBack(ckptdir.StepOf(attrs["checkpoint"].String())); err != nil {
			return err
		}
	case "saved":
		delete(l.abandoned, attrs["step"].Int64())
	}
	if l.story == nil {
		return nil
	}
	return l.story.Handler().Handle(ctx, r)
}

// goBack lowers the promise to a step.
func (l *living) goBack(to int64) error {
	l.announced = min(l.announced, to)
	l.fs.Mark(l.announced + 1)
	return l.abandon(to)
}

// dead reports whether the process is, or its machine.
func (l *living) dead() bool {
	return l.fs.Failed() != "" && l.event.disk(rand.New(rand.NewPCG(0, 0))).Kill
}

// expected returns an error that the event of this life does not explain.
func (l *living) expected(err error) error {
	switch {
	case l.fs.Failed() != "", errors.Is(err, errStop), errors.Is(err, errCrash), errors.Is(err, session.ErrCompleted):
		return nil
	case err == nil && l.event.during != nil:
		return nil
	}
	if _, is := errors.AsType[*hook.NaNError](err); is && l.nan > 0 {
		return nil // there is no checkpoint before it
	}
	return broke("a life ends without a reason: %w", err)
}

// train is the training's own loop.
func (l *living) train(ctx context.Context, s session.Session) error {
	l.ctx, l.lost = ctx, false
	l.current.Store(&s)
	step, err := l.judgeStart(ctx, s)
	if err != nil {
		return err
	}
	for step < l.plan.steps {
		if l.dead() {
			return faultfs.ErrKilled
		}
		if err := ctx.Err(); err != nil {
			return nil
		}
		time.Sleep(l.plan.stepTime)
		l.trained.Add(int64(l.plan.stepTime))
		if l.fs.Failed() != "" && l.event.heal > 0 && !l.healing {
			time.AfterFunc(l.event.heal, l.fs.Heal)
			l.healing = true
		}
		var loss float64
		if step, loss, err = l.job.step(ctx, s); err != nil {
			return err
		}
		err := l.sv.SummaryComputed(ctx, summary.New(summaryv1.Scalar("loss", loss)), step)
		if err == nil {
			err = l.sv.StepDone(ctx, step)
		}
		if err == nil && step == l.when && l.event.during != nil {
			l.when, l.step = -1, step
			err = l.event.during(l)
		}
		if errors.Is(err, errStop) {
			l.sv.RequestStop(nil)
			return nil
		}
		if err != nil {
			return err
		}
		if l.lost {
			return session.ErrAborted
		}
	}
	l.done = true
	return l.judgeWeights(ctx, s, step)
}

// onlooker reads the model now and then, as an evaluation does, or a client that asks
// for the state of a run. It must not change a bit.
type onlooker struct{ *living }

func (o onlooker) Serve(ctx context.Context) error {
	rnd := o.plan.source("onlooker")
	if rnd.IntN(2) == 0 {
		<-ctx.Done()
		return nil
	}
	every := o.plan.during(rnd, 100)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if s := o.current.Load(); s != nil {
			if err := o.job.look(ctx, *s); err != nil && ctx.Err() == nil {
				return err
			}
		}
		o.sv.Stats()
		o.sv.Report()
		if _, ok := o.sv.LastSave(); ok {
			o.sv.ReportEvaluation(rnd.Int64N(100), map[string]float64{"loss": rnd.Float64()})
		}
	}
}

// slowDisk is a disk whose changes of names take a while.
type slowDisk struct {
	*faultfs.FS
	slowness int
}

func (d slowDisk) wait() {
	if d.slowness > 0 {
		time.Sleep(time.Duration(d.slowness) * 700 * time.Millisecond)
	}
}

func (d slowDisk) Create(name string) (atomicfile.File, error) { d.wait(); return d.FS.Create(name) }
func (d slowDisk) Rename(from, to string) error                { d.wait(); return d.FS.Rename(from, to) }
func (d slowDisk) SyncDir(name string) error                   { d.wait(); return d.FS.SyncDir(name) }
