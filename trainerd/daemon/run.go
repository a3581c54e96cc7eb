package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// RunOptions says where a run reports what.
type RunOptions struct {
	Stdout io.Writer // results
	Stderr io.Writer // of its progress
	// Terminal draws a progress bar on Stderr instead of writing a log.
	Terminal bool
	// Again is the command that starts this job, for the message after a stop.
	Again string
	// Stopped, if not nil, is called when the job was stopped before its end.
	Stopped func()
	// Command returns how a command of ours is called, for what to type next; nil
	// for its name.
	Command func(name string) string
	// Log, if not nil, is used instead of a log on Stderr.
	Log *slog.Logger
	// Also is given the log too. May be nil.
	Also slog.Handler
	// Monitor receives the run's progress and its control handlers. May be
	// nil.
	Monitor *control.Monitor
	// Serve, if not nil, is called once it is known that the job has something left to do; the
	// function that it returns is called when the run has ended.
	Serve func(log *slog.Logger) (end func())
	// FS is the file system through which the run writes its logdir; nil for the operating
	// system's.
	FS ckptfmt.FS
	// System is what the program of a job runs on; nil for the operating system.
	System system.System
	// Dial opens connections to TensorFlow's servers; nil for the operating system's.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// Wrap, if not nil, is put around each session in which the run trains.
	Wrap func(session.Session) session.Session

	beat *heartbeat // of the training, nil before
}

// Run trains the job that c describes, from the state of its logdir. When ctx
// is done it stops after the current step, saves, and returns nil. A job that
// is complete already is evaluated, and its logdir left as it is.
func Run(ctx context.Context, c *config.Config, o RunOptions) error {
	missing := o.missing(c)
	err := run(ctx, c, o)
	if err != nil { // it may have been refused before it had anything to write
		_ = logdir.RemoveUnused(c.Logdir, missing) // what stays is empty, and in nobody's way
	}
	return err
}

// missing returns which folder of a chief's logdir is not there yet, "" for none.
func (o RunOptions) missing(c *config.Config) string {
	if !c.Supervisor.IsChief {
		return ""
	}
	defer logging.Waiting(o.firstLog().Warn, "the logdir")()
	return logdir.Missing(c.Logdir)
}

func run(ctx context.Context, c *config.Config, o RunOptions) error {
	if c.IsChild() {
		return runChild(ctx, c, o)
	}
	j, err := o.readJob(ctx, c)
	if j == nil {
		return err
	}
	defer j.close()
	j.fsys = o.FS
	if done := o.lookForEnd(ctx, j); done != nil {
		defer done.sess.Close()
		return j.reportComplete(ctx, done, o)
	}
	o.beat = &heartbeat{remote: c.IsRemote()}
	log, show := o.reporting()
	defer o.beat.start(log)()
	if err := checkHolder(c, log); err != nil {
		return err
	}
	c.LogIdleKeys(log)
	warnElsewhere(c, log)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	o.Monitor.OnStop(func() { stop(stopRequest) })
	defer o.serve(log)()
	j.attach(log, func(master string) {
		fmt.Fprintf(o.Stderr, "the model is served at %s\n", master)
	}, func(reason string) {
		o.Monitor.Wait(reason)
		o.beat.setReason(reason)
	})
	j.sessions.stdout, j.sessions.stderr = o.screens(show)
	j.sessions.wrap, j.task.FS, j.task.Dial = o.Wrap, o.FS, o.Dial
	t := o.newTraining(j, show)
	t.sv.OnSave = func(s trainerd.SavedCheckpoint) {
		show.saved(s.Step)
		o.Monitor.Saved(s)
	}
	t.sv.OnRelock = j.keepAgain
	t.sv.FlushSummaries = j.task.FlushWriters
	t.sv.Listeners = t.eval.listeners()
	o.Monitor.Count(t.stats)
	err = t.sv.Run(ctx, t.run)
	if closeErr := t.eval.close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return explainServer(c, err)
	}
	t.reportEnd(o)
	return nil
}

// lookForEnd returns the resume point of a job that has nothing left to do, or nil for any other.
func (o RunOptions) lookForEnd(ctx context.Context, j *job) *resumePoint {
	defer logging.Waiting(o.firstLog().Warn, "the checkpoints in the logdir")()
	return j.completed(ctx)
}

// checkHolder returns an error if another process has the logdir that a chief is to write,
// before anything is said about the control socket, which that process has, too.
func checkHolder(c *config.Config, log *slog.Logger) error {
	if !c.Supervisor.IsChief {
		return nil
	}
	defer logging.Waiting(log.Warn, "the logdir")()
	err := logdir.Check(c.Logdir)
	if c.Child.Nodes > 1 || !is[*logdir.LockedError](err) {
		return nil // another node may be the chief; and the run will say what else is wrong
	}
	return err
}

// serve calls Serve, whose socket is in the logdir.
func (o RunOptions) serve(log *slog.Logger) (end func()) {
	if o.Serve == nil {
		return func() {}
	}
	const what = "the control socket"
	defer logging.Waiting(log.Warn, what)()
	stop := o.Serve(log)
	return func() {
		defer logging.Waiting(log.Warn, what)()
		stop()
	}
}

// newTraining returns the training of a job.
func (o RunOptions) newTraining(j *job, show progress) *training {
	t := &training{
		job: j, sv: j.supervisor(), show: show, eval: newEvaluator(j), replicas: cluster.NewReplicas(j.task),
		watch: o.Monitor, beat: o.beat, step: j.saved, summaryStep: j.saved,
	}
	j.sessions.first = t.firstStep
	return t
}

// stopRequest is the cause of a stop that was requested by "trainerd stop", or
// over HTTP.
const stopRequest = trainerd.StopRequest("a request")

// reporting returns the log and the progress display of a run.
func (o RunOptions) reporting() (*slog.Logger, progress) {
	if o.Log != nil {
		log := o.log(o.Log.Handler())
		return log, &logProgress{log: log, longest: o.beat.between()}
	}
	if !o.Terminal {
		log := o.log(slog.NewTextHandler(o.Stderr, nil))
		return log, &logProgress{log: log, longest: o.beat.between()}
	}
	bar := newBarProgress(o.Stderr)
	// The bar shows the normal progress; only the rest needs a line.
	return o.log(slog.NewTextHandler(bar, &slog.HandlerOptions{Level: slog.LevelWarn})), bar
}

// log returns a log for h, and for Also.
func (o RunOptions) log(h slog.Handler) *slog.Logger {
	if o.Also != nil {
		h = slog.NewMultiHandler(h, o.Also)
	}
	return slog.New(o.beat.wrap(h))
}
