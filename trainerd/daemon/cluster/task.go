package cluster

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Task is this process among those that train one model together. Only the goroutine that trains
// uses it, except for what a watch does during a call.
type Task struct {
	config  *config.Config
	program *program.Program
	log     *slog.Logger
	waiting func(reason string) // called with what the job waits for, "" when it no longer does; may be nil
	marked  []markedOp          // in the graph of the session
	layout  string              // of the variables of that graph, see layoutOf
	writers []writerNodes       // of the summary writers, in the graph of the session
	signed  time.Time           // when GiveSign last did
	awaited bool                // another run, which was alive
	id      atomic.Value        // the run's ID, a string; none before the model has it

	// FS is the file system to which the run's ID is written; nil for the operating
	// system's.
	FS ckptfmt.FS
	// Dial opens connections to the servers, after pauses that are the same each
	// time; nil for the operating system's.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// NewTask returns the part of this process in the training of a program.
func NewTask(c *config.Config, p *program.Program, log *slog.Logger, waiting func(reason string)) *Task {
	return &Task{config: c, program: p, log: log, waiting: waiting}
}

// ReportWait reports for whom or what the job waits.
func (t *Task) ReportWait(reason string) {
	if t.waiting != nil {
		t.waiting(reason)
	}
}

// LocalInit returns the ops that every process runs before it trains.
func (t *Task) LocalInit() []string {
	switch sync := t.program.Sync; {
	case sync == nil:
		return t.program.LocalInit
	case t.config.Supervisor.IsChief:
		return []string{sync.ChiefInit}
	default:
		return []string{sync.LocalInit}
	}
}

// Publish begins the chief's session: once it has returned, workers train.
func (t *Task) Publish(ctx context.Context, sess session.Session, r *Replicas, step int64, adopted bool) error {
	if !adopted {
		if err := watchOf(sess).checkClaim(ctx); err != nil {
			return err
		}
	}
	if err := r.reset(ctx, sess, adopted); err != nil {
		return err
	}
	if err := t.initProgress(ctx, sess, step, adopted); err != nil {
		return err
	}
	if !adopted {
		if err := t.restartWriters(ctx, sess, step); err != nil {
			return err
		}
	}
	return t.tagModel(ctx, sess, adopted)
}
