// Package eventlog writes the events of a run whose disk may fail.
//
// A full disk must not end a training. A [Log] drops events that it cannot
// write, with one line in the program's log for each failure, and begins a new
// file after a pause. The pause doubles with each failure up to a limit.
//
// A Log may be used by several goroutines.
package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// Pauses between attempts to write events after a failure.
const (
	firstRetry = 10 * time.Second
	maxRetry   = 5 * time.Minute
)

// Log writes events through a FileWriter. Its Add methods fail if ctx ends, if
// the event is invalid, and after Close, but not because of the disk.
type Log struct {
	writer *tfevents.FileWriter
	log    *slog.Logger

	reopening chan struct{} // has room for the one that begins a new file, for which others wait

	mu           sync.Mutex
	broken       bool
	dropped      int   // since the file broke
	totalDropped int64 // since New
	retryAt      time.Time
	pause        time.Duration

	overtaking overtaking
	start      *start // nil once a file holds it
}

// start is a SessionLog START. It shows readers which points are superseded, so it is
// never dropped: what cannot be written now comes first once the disk has room.
type start struct {
	event *tfpb.SessionLog
	step  int64
}

// New returns a Log that writes through w and reports failures to log.
func New(w *tfevents.FileWriter, log *slog.Logger) *Log {
	return &Log{writer: w, log: log, reopening: make(chan struct{}, 1)}
}

// Dir returns the folder of the events.
func (l *Log) Dir() string { return l.writer.Dir() }

// AddSummary writes a summary.
func (l *Log) AddSummary(ctx context.Context, s *tfpb.Summary, step int64) error {
	if err := l.overtakeSummary(ctx, s, step); err != nil {
		return err
	}
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.AddSummary(ctx, s, step) })
}

// AddScalar writes a point of a curve.
func (l *Log) AddScalar(ctx context.Context, tag string, value float64, step int64) error {
	if err := l.overtakeScalar(ctx, tag, step, scalarMetadata); err != nil {
		return err
	}
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.AddScalar(ctx, tag, value, step) })
}

// AddScalarAt writes a point of a curve with the given time.
func (l *Log) AddScalarAt(ctx context.Context, at time.Time, tag string, value float64, step int64) error {
	if err := l.overtakeScalar(ctx, tag, step, scalarMetadata); err != nil {
		return err
	}
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.AddScalarAt(ctx, at, tag, value, step) })
}

// AddSession writes a change of the session's state, with its checkpoint, if
// any.
func (l *Log) AddSession(ctx context.Context, status tfpb.SessionLog_SessionStatus, checkpoint string, step int64) error {
	event := &tfpb.SessionLog{Status: status, CheckpointPath: checkpoint}
	if status == tfpb.SessionLog_START {
		l.putStart(&start{event, step})
		return l.Add(ctx, func(*tfevents.FileWriter) error { return nil })
	}
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.AddSessionLog(ctx, event, step) })
}

func (l *Log) putStart(s *start) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = s
}

func (l *Log) takeStart() *start {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.start
	l.start = nil
	return s
}

// Flush returns when all events added so far are in the file.
func (l *Log) Flush(ctx context.Context) error {
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.Flush(ctx) })
}

// Sync is Flush, and makes the file durable.
func (l *Log) Sync(ctx context.Context) error {
	return l.Add(ctx, func(w *tfevents.FileWriter) error { return w.Sync(ctx) })
}

// Close closes the file. A failure that was already reported is not returned
// again.
func (l *Log) Close() error {
	err := l.FinishOvertaking(context.Background())
	if closeErr := l.writer.Close(); err == nil {
		err = closeErr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return nil
	}
	return err
}

// Add writes events that have no method of their own. It counts as one event.
func (l *Log) Add(ctx context.Context, write func(w *tfevents.FileWriter) error) error {
	if !l.usable() {
		return nil
	}
	if s := l.takeStart(); s != nil {
		if err := l.writer.AddSessionLog(ctx, s.event, s.step); err != nil {
			l.putStart(s)
			return l.tolerate(ctx, err)
		}
	}
	return l.tolerate(ctx, write(l.writer))
}

// tolerate notes a failure of the disk, and returns other errors.
func (l *Log) tolerate(ctx context.Context, err error) error {
	var failure *fs.PathError
	if ctx.Err() == nil && errors.As(err, &failure) {
		l.failed(err)
		return nil
	}
	return err
}

// usable reports whether events can be written, and counts one as dropped if
// not.
func (l *Log) usable() bool {
	if !l.isBroken() {
		return true
	}
	l.reopening <- struct{}{}
	defer func() { <-l.reopening }()
	if !l.isBroken() || l.reopen() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	return false
}

func (l *Log) isBroken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// drop counts an event that is not written. The caller holds l.mu.
func (l *Log) drop() {
	l.dropped++
	l.totalDropped++
}

// Dropped returns how many events could not be written.
func (l *Log) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totalDropped
}

func (l *Log) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	if l.broken {
		return // another goroutine was first
	}
	l.broken = true
	l.pause = min(max(2*l.pause, firstRetry), maxRetry)
	l.retryAt = time.Now().Add(l.pause)
	l.log.Error("events file cannot be written; events are dropped until it can", "err", err, "retry_in", l.pause)
}

func (l *Log) isTime() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !time.Now().Before(l.retryAt)
}

// Renew has a new file begun with the next event: the current one was deleted.
func (l *Log) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken, l.retryAt = true, time.Time{}
}

// Restart is Renew for a folder that was deleted and made again. The new file begins
// with START, at a step that has no points yet: TensorBoard's Python loader ignores the
// first of a run, which must not be that of a later resume.
func (l *Log) Restart(step int64) {
	l.Renew()
	l.putStart(&start{&tfpb.SessionLog{Status: tfpb.SessionLog_START}, step})
}

// reopen begins a new file when it is time to try again. The caller has the room in
// l.reopening, and not l.mu: the disk may take long.
func (l *Log) reopen() bool {
	if !l.isTime() {
		return false
	}
	l.writer.Close() // fails with what was logged already
	err := l.writer.Reopen()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.retryAt = time.Now().Add(l.pause)
		return false
	}
	l.log.Info("began a new events file", "dropped", l.dropped)
	l.broken, l.dropped = false, 0
	return true
}
