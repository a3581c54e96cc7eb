package summary

import (
	"context"
	"log/slog"
	"sync"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

	tfpb "github.com/trainerd/trainerd/proto"
)

// journal is the events that the writers of a graph leave in one folder. They share a
// file, because TensorBoard follows only one in each folder. The file begins with the
// first event: an evaluation, which makes the same writers, must leave none.
type journal struct {
	dir, suffix string
	logger      *slog.Logger

	turn chan struct{} // of capacity 1, for the one that writes
	log  *eventlog.Log // nil before the first event; guarded by turn

	mu      sync.Mutex // guards what follows
	next    int64      // see exec.Journal
	from    int64      // what follows replaces the events from this step on
	restart bool       // and nothing has followed yet
}

func newJournal(dir, suffix string, next int64, logger *slog.Logger) *journal {
	j := &journal{dir: dir, suffix: suffix, logger: logger, turn: make(chan struct{}, 1)}
	j.Continue(next)
	return j
}

// Next implements [exec.Journal].
func (j *journal) Next() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// Continue implements [exec.Journal].
func (j *journal) Continue(next int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.next, j.from, j.restart = next, next, true
}

// Sync implements [exec.Journal].
func (j *journal) Sync(ctx context.Context) error {
	return j.ifOpen(ctx, func(l *eventlog.Log) error { return l.Sync(ctx) })
}

// Flush hands what was written to the operating system, where TensorBoard finds it.
func (j *journal) Flush(ctx context.Context) error {
	return j.ifOpen(ctx, func(l *eventlog.Log) error { return l.Flush(ctx) })
}

// Close implements [exec.Journal].
func (j *journal) Close() error {
	return j.ifOpen(context.Background(), func(l *eventlog.Log) error {
		j.log = nil
		return l.Close()
	})
}

func (j *journal) ifOpen(ctx context.Context, do func(*eventlog.Log) error) error {
	if err := j.acquire(ctx); err != nil {
		return err
	}
	defer j.release()
	if j.log == nil {
		return nil
	}
	return do(j.log)
}

func (j *journal) acquire(ctx context.Context) error {
	select {
	case j.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (j *journal) release() { <-j.turn }

// write adds an event of a step.
func (j *journal) write(ctx context.Context, step int64, add func(*eventlog.Log) error) error {
	if err := j.acquire(ctx); err != nil {
		return err
	}
	defer j.release()
	if err := j.begin(ctx); err != nil {
		return err
	}
	j.mu.Lock()
	j.next = max(j.next, step+1)
	j.mu.Unlock()
	return add(j.log)
}

// begin opens the file and says from which step on its events replace earlier ones. A
// run has such a mark even if there are none: TensorBoard ignores the first one.
func (j *journal) begin(ctx context.Context) error {
	if j.log == nil {
		w, err := tfevents.NewFileWriter(j.dir, &tfevents.FileWriterOptions{Form: tfevents.TF2, Suffix: j.suffix})
		if err != nil {
			return err
		}
		j.log = eventlog.New(w, j.logger)
	}
	j.mu.Lock()
	from, restart := j.from, j.restart
	j.restart = false
	j.mu.Unlock()
	if !restart || from == exec.NoStep {
		return nil
	}
	j.log.Supersede(from)
	return j.log.AddSession(ctx, tfpb.SessionLog_START, "", from)
}
