package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// evalDir is the folder of the logdir with the events of evaluations, which
// TensorBoard shows as a run of its own next to the training.
const evalDir = "eval"

// evaluation is how a model does on the test part.
type evaluation struct {
	rows   int
	names  []string
	values []float64
}

// value returns a metric as TensorBoard shows it, a float32: equal evaluations may differ in
// further bits, because of the order of the rows.
func (e *evaluation) value(name string) (float64, bool) {
	for i, n := range e.names {
		if n == name {
			return float64(float32(e.values[i])), true
		}
	}
	return 0, false
}

// byName returns the metrics by their names.
func (e *evaluation) byName() map[string]float64 {
	values := make(map[string]float64, len(e.names))
	for i, name := range e.names {
		values[name] = e.values[i]
	}
	return values
}

// evaluator evaluates a training when that is due, writes the results, and
// keeps the best checkpoints. A nil evaluator does nothing.
type evaluator struct {
	job    *job
	best   *bestCheckpoints // nil when none are kept
	early  *earlyStop       // nil when the training does not end early
	events *eventlog.Log    // nil before the first session
	next   time.Time        // when one is due by the clock
	result *evaluation      // the newest
	at     int64            // its step
	seen   int64            // the step of the training that due saw last
	curve  curveBudget

	dropped atomic.Int64 // events of the current session that could not be written
}

func newEvaluator(j *job) *evaluator {
	if !j.tester.evaluates() || !j.config.Supervisor.IsChief {
		return nil
	}
	return &evaluator{job: j, best: newBestCheckpoints(j), early: newEarlyStop(j)}
}

// listeners returns the listeners of saves.
func (e *evaluator) listeners() []trainerd.CheckpointListener {
	if e == nil || e.early == nil {
		return nil
	}
	return []trainerd.CheckpointListener{e.early.listener()}
}

// open begins an events file, in a logdir that is made again if it was deleted.
func (e *evaluator) open(sv *trainerd.Supervisor) error {
	return logdir.Try(sv.LogdirHeld, e.openFile)
}

// openFile begins an events file. Its folder is one of the logdir: a link in its
// place would have a run write elsewhere.
func (e *evaluator) openFile() error {
	dir := filepath.Join(e.job.config.Logdir, evalDir)
	if err := notALink(dir); err != nil {
		return err
	}
	w, err := tfevents.NewFileWriter(dir, &tfevents.FileWriterOptions{FS: e.disk()})
	if err != nil {
		return err
	}
	e.events = eventlog.New(w, e.job.log)
	return nil
}

// disk makes folders in the logdir, but not the logdir: a deleted one is made again with its lock,
// and any other folder of that name belongs to somebody else.
func (e *evaluator) disk() atomicfile.FS {
	return atomicfile.WithoutMaking(e.job.fsys, e.job.config.Logdir)
}

// notALink returns an error if a folder that a run makes in its logdir is a link
// to another one.
func notALink(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil // what else is wrong will show
	}
	target, _ := os.Readlink(dir)
	return &fs.PathError{Op: "write", Path: dir, Err: &linkError{target}}
}

// linkError says that a folder of the logdir is a link.
type linkError struct{ target string }

func (e *linkError) Error() string {
	return fmt.Sprintf("is a link to %s, and a run writes to its own logdir only; remove the link", e.target)
}

// check returns the error with which a run could not begin to evaluate.
func (e *evaluator) check() error {
	if e == nil {
		return nil
	}
	_, err := e.best.read()
	return errors.Join(err, e.early.begin(0))
}

// begin opens the events file. It lets TensorBoard drop the points of steps
// that will be made again.
func (e *evaluator) begin(ctx context.Context, sv *trainerd.Supervisor, step int64, restored bool) error {
	if e == nil {
		return nil
	}
	e.next, e.seen = time.Now().Add(e.job.config.Eval.Secs.Duration()), step
	e.curve = curveBudget{points: evalPoints, begun: time.Now()}
	before := e.events // of a session that was lost
	if err := e.close(); err != nil {
		return err
	}
	if err := e.open(sv); err != nil {
		return err
	}
	if restored {
		step++ // the first that comes
	}
	e.events.Continue(before, step)
	e.events.Supersede(step)
	if err := e.events.AddSession(ctx, tfpb.SessionLog_START, "", step); err != nil {
		return err
	}
	if err := e.early.begin(step - 1); err != nil {
		return err
	}
	return e.best.begin(step)
}

// due evaluates if that is due after the training's last step: after every
// eval.steps, at the latest eval.secs after the last time, and at the end.
func (e *evaluator) due(ctx context.Context, t *training, sess session.Session) error {
	if e == nil {
		return nil
	}
	due := e.isDue(t.step)
	e.seen = t.step
	if !due {
		return nil
	}
	return e.evaluate(ctx, t, sess)
}

// isDue reports whether an evaluation is due after a step. A step that takes more
// gradients is not made yet.
func (e *evaluator) isDue(step int64) bool {
	if e == nil || step <= e.seen {
		return false
	}
	every, clock := e.job.config.Eval.Steps, e.job.config.Eval.Secs.Duration()
	passed := every > 0 && step/every > e.seen/every // other workers may have made the very multiple
	passed = passed || every == 0 && clock > 0 && e.curve.passed(e.seen, step, e.job.steps) && e.curve.cheap(time.Now())
	return passed || e.job.steps > 0 && step >= e.job.steps || clock > 0 && !time.Now().Before(e.next)
}

// endsEarly reports whether the training is to end, as its evaluations no longer
// become better.
func (e *evaluator) endsEarly() bool { return e != nil && e.early.due() }

// hasEnded reports whether the training has ended at a step already, because of early
// stopping.
func (e *evaluator) hasEnded(step int64) bool { return e != nil && e.early.endedAt(step) }

// last evaluates at the end of the input, unless the last step was.
func (e *evaluator) last(ctx context.Context, t *training, sess session.Session) error {
	if e == nil || e.result != nil && e.at == t.step {
		return nil
	}
	return e.evaluate(ctx, t, sess)
}

// evaluate evaluates. A checkpoint of the step that comes meanwhile waits for the
// result, which goes with it.
func (e *evaluator) evaluate(ctx context.Context, t *training, sess session.Session) error {
	defer t.watch.Enter(t.watch.Enter(control.Evaluating))
	return t.sv.WithoutSaves(ctx, func(ctx context.Context) error { return e.measure(ctx, t, sess) })
}

func (e *evaluator) measure(ctx context.Context, t *training, sess session.Session) error {
	begun := time.Now()
	result, err := e.job.tester.evaluate(ctx, sess)
	e.curve.spend(begun, time.Now())
	if err != nil {
		return err
	}
	e.result, e.at = &result, t.step
	t.sv.ReportEvaluation(t.step, result.byName())
	e.next = time.Now().Add(e.job.config.Eval.Secs.Duration())
	writing := context.WithoutCancel(ctx)
	t.show.evaluated(t.step, &result)
	if t.sv.LogdirHeld() != nil {
		return nil // the run ends
	}
	e.early.add(t.step, &result)
	return errors.Join(
		e.record(ctx, t.sv, "its points", func() error { return e.write(writing, t.step) }),
		e.record(ctx, t.sv, "early stopping", e.early.write),
		e.record(ctx, t.sv, "the best checkpoint", func() error { return e.best.offer(writing, sess, t.step, &result) }),
	)
}

// How often the disk is asked to keep what an evaluation has found, and the first pause.
const (
	recordAttempts   = 3
	firstRecordRetry = time.Second
)

// record has the disk keep what an evaluation has found. A disk that does not costs
// that, not the training.
func (e *evaluator) record(ctx context.Context, sv *trainerd.Supervisor, what string, write func() error) error {
	pause := firstRecordRetry
	for attempt := 1; ; attempt++ {
		if sv.LogdirHeld() != nil {
			return nil // it was lost meanwhile, and what is written goes by its name
		}
		err := write()
		if !isDiskFailure(err) {
			return err
		}
		e.job.log.Error("an evaluation could not be recorded", "step", e.at, "what", what, "attempt", attempt, "err", err)
		if attempt == recordAttempts {
			return nil
		}
		coord.Sleep(ctx, pause)
		pause *= 2
	}
}

// isDiskFailure reports whether an error is of a file that cannot be written at the
// moment. A session that is lost meanwhile is another matter.
func isDiskFailure(err error) bool {
	if is[*linkError](err) || errors.Is(err, session.ErrAborted) || errors.Is(err, session.ErrUnavailable) {
		return false
	}
	return is[*unwrittenError](err) || is[*fs.PathError](err) || is[syscall.Errno](err) || errors.Is(err, io.ErrShortWrite)
}

// write enters the result of a step in the events file. A file that was deleted
// with its folder is started again.
func (e *evaluator) write(ctx context.Context, step int64) error {
	if _, err := os.Stat(e.events.Dir()); errors.Is(err, fs.ErrNotExist) {
		e.events.Restart(step) // what it had is gone, but what waits
		if err := atomicfile.MkdirAllSync(e.disk(), e.events.Dir()); err != nil {
			return err
		}
	}
	s := new(tfpb.Summary)
	for i, name := range e.result.names {
		s.Value = append(s.Value, summaryv1.Scalar(name, e.result.values[i]))
	}
	if err := e.events.AddSummary(ctx, s, step); err != nil {
		return err
	}
	err := e.events.Sync(ctx) // a checkpoint may outlive it; and what it says is wanted at once
	e.dropped.Store(e.events.Dropped())
	return err
}

// droppedEvents returns how many events could not be written. It may be called at
// any time.
func (e *evaluator) droppedEvents() int64 {
	if e == nil {
		return 0
	}
	return e.dropped.Load()
}

// newest returns the newest evaluation, nil for none.
func (e *evaluator) newest() *evaluation {
	if e == nil {
		return nil
	}
	return e.result
}

// close ends the events file. One that was deleted with its folder has nothing to
// lose any more.
func (e *evaluator) close() error {
	if e == nil || e.events == nil {
		return nil
	}
	err := e.events.Close()
	e.events = nil
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
