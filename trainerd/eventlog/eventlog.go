// Package eventlog writes the events of a run whose disk may fail.
//
// A full disk must not end a training. Summaries and STARTs that a [Log] cannot write
// wait in memory, up to a limit, with one line in the program's log for each failure,
// until a new file can be created: after a pause that doubles with each failure, or by
// Close. Other events are dropped.
//
// A Log may be used by several goroutines.
package eventlog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// Pauses between attempts to write events after a failure.
const (
	firstRetry = 10 * time.Second
	maxRetry   = 5 * time.Minute
)

// maxWaiting limits the memory of summaries that wait for a file: some 200,000 scalars.
const maxWaiting = 16 << 20

// Log writes events through a FileWriter. Its Add methods fail if ctx ends, if
// the event is invalid, and after Close, but not because of the disk.
type Log struct {
	writer *tfevents.FileWriter
	log    *slog.Logger

	reopening chan struct{} // has room for the one that begins a new file
	later     atomic.Pointer[later]

	mu           sync.Mutex
	broken       bool
	waiting      []late // for a file, the first added first
	waitingSize  int
	dropped      int   // since the file broke
	totalDropped int64 // since New
	retryAt      time.Time
	pause        time.Duration

	superseding superseding
}

// New returns a Log that writes through w and reports failures to log.
func New(w *tfevents.FileWriter, log *slog.Logger) *Log {
	return &Log{writer: w, log: log, reopening: make(chan struct{}, 1)}
}

// Continue takes over the events that wait in the previous session's Log, except the points from a
// step on, which this session makes again. It must be called first.
func (l *Log) Continue(before *Log, from int64) {
	if before == nil || before.Dir() != l.Dir() {
		return
	}
	for _, e := range before.take() {
		l.queue(e)
	}
	l.supersede(from)
	l.broken = len(l.waiting) > 0
}

// Dir returns the folder of the events.
func (l *Log) Dir() string { return l.writer.Dir() }

// HasFile reports whether a file with events is in the folder: see
// [tfevents.FileWriter.HasFile].
func (l *Log) HasFile() bool { return l.writer.HasFile() }

// AddSummary writes a summary.
func (l *Log) AddSummary(ctx context.Context, s *tfpb.Summary, step int64) error {
	if err := l.supersedeSummary(ctx, s, step); err != nil {
		return err
	}
	return l.addSummary(ctx, s, step)
}

func (l *Log) addSummary(ctx context.Context, s *tfpb.Summary, step int64) error {
	write := func(w *tfevents.FileWriter) error { return w.AddSummary(ctx, s, step) }
	return l.add(ctx, write, func() late { return lateSummary(time.Now(), proto.CloneOf(s), step) })
}

// AddScalar writes a point of a curve.
func (l *Log) AddScalar(ctx context.Context, tag string, value float64, step int64) error {
	if err := l.supersedeScalar(ctx, tag, step, scalarMetadata); err != nil {
		return err
	}
	write := func(w *tfevents.FileWriter) error { return w.AddScalar(ctx, tag, value, step) }
	return l.add(ctx, write, func() late { return scalar(time.Now(), tag, value, step) })
}

// AddScalarAt writes a point of a curve with the given time.
func (l *Log) AddScalarAt(ctx context.Context, at time.Time, tag string, value float64, step int64) error {
	if err := l.supersedeScalar(ctx, tag, step, scalarMetadata); err != nil {
		return err
	}
	write := func(w *tfevents.FileWriter) error { return w.AddScalarAt(ctx, at, tag, value, step) }
	return l.add(ctx, write, func() late { return scalar(at, tag, value, step) })
}

// AddSession writes a change of the session's state, with its checkpoint, if
// any. The bytes of its path that are not UTF-8 become U+FFFD, as readers require.
func (l *Log) AddSession(ctx context.Context, status tfpb.SessionLog_SessionStatus, checkpoint string, step int64) error {
	event := &tfpb.SessionLog{Status: status, CheckpointPath: strings.ToValidUTF8(checkpoint, string(utf8.RuneError))}
	write := func(w *tfevents.FileWriter) error { return w.AddSessionLog(ctx, event, step) }
	if status == tfpb.SessionLog_START {
		return l.add(ctx, write, func() late { return lateStart(step) })
	}
	return l.add(ctx, write, nil)
}

// Flush returns when all events added so far are in the file.
func (l *Log) Flush(ctx context.Context) error {
	return l.try(ctx, func(w *tfevents.FileWriter) error { return w.Flush(ctx) })
}

// Sync is Flush, and makes the file durable.
func (l *Log) Sync(ctx context.Context) error {
	return l.try(ctx, func(w *tfevents.FileWriter) error { return w.Sync(ctx) })
}

// Close closes the file, after Finish. If the disk fails, it tries once more, with a new file; if
// that fails too, the program's log says so.
func (l *Log) Close() error {
	ctx := context.Background()
	err := l.end(ctx)
	if l.breaks(ctx, err) {
		if err = l.end(ctx); l.breaks(ctx, err) {
			l.giveUp()
		}
	}
	if l.isBroken() {
		return nil
	}
	return err
}

func (l *Log) end(ctx context.Context) error {
	err := l.Finish(ctx)
	if closeErr := l.writer.Close(); err == nil {
		err = closeErr
	}
	return err
}

// breaks records a failure of the disk, if err is a new one.
func (l *Log) breaks(ctx context.Context, err error) bool {
	if l.isBroken() || !isFailure(ctx, err) {
		return false
	}
	l.failed(err)
	return true
}

// Add writes events that have no method of their own. It counts as one event, and is
// dropped if there is no file.
func (l *Log) Add(ctx context.Context, write func(w *tfevents.FileWriter) error) error {
	l.noteUnknown()
	return l.add(ctx, write, nil)
}

// add writes an event after those of Later. If that fails, the event waits in the form that wait
// returns, or is dropped if wait is nil.
func (l *Log) add(ctx context.Context, write func(w *tfevents.FileWriter) error, wait func() late) error {
	if err := l.Settle(ctx); err != nil {
		return err
	}
	return l.put(ctx, write, wait)
}

// put is add without those.
func (l *Log) put(ctx context.Context, write func(w *tfevents.FileWriter) error, wait func() late) error {
	for {
		if wait != nil && l.wait(wait) {
			l.Ready(ctx) // a new file begins with it
			return nil
		}
		if l.Ready(ctx) {
			if written, err := l.write(ctx, write); written {
				return err
			}
		}
		if wait == nil {
			l.drop()
			return nil
		}
	}
}

// try calls write after those of Later, unless there is no file.
func (l *Log) try(ctx context.Context, write func(w *tfevents.FileWriter) error) error {
	if err := l.Settle(ctx); err != nil {
		return err
	}
	if !l.Ready(ctx) {
		return nil
	}
	_, err := l.write(ctx, write)
	return err
}

// write calls write, and records a failure of the disk.
func (l *Log) write(ctx context.Context, write func(w *tfevents.FileWriter) error) (written bool, err error) {
	if err = write(l.writer); isFailure(ctx, err) {
		l.failed(err)
		return false, nil
	}
	return true, err
}

// Dropped returns how many events could not be written.
func (l *Log) Dropped() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.totalDropped
}

// Finish is for the end of a session: it tries once more to write what waits, and drops
// the superseded points of tags that may never be written again.
func (l *Log) Finish(ctx context.Context) error {
	l.mu.Lock()
	l.retryAt = time.Time{}
	l.mu.Unlock()
	if !l.Ready(ctx) {
		l.giveUp()
		return nil
	}
	return l.finishSuperseding(ctx)
}

// giveUp counts what waits as dropped, unless Continue takes it.
func (l *Log) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack()
	l.countDropped(len(l.waiting))
}
