package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
)

// heartbeat sees to it that the log of a job is never silent for long: whatever
// the job waits for, a reader can tell it from one that hangs. While a job in
// this process makes steps, its log has a line each minute.
// A nil heartbeat does nothing.
type heartbeat struct {
	remote bool // the job is on servers

	mu     sync.Mutex
	last   time.Time // when the log got a line
	reason string    // what the job waits for, "" for nothing that is known
	since  time.Time // of reason
	step   int64     // the last one made
	begun  bool      // there was a step
	seen   int64     // the last one made at the beat before
}

// beatEvery is the time between two looks at the log: a heartbeat comes after a
// silence of ReportEvery, and at most this much later.
const beatEvery = time.Second

// between is the longest pause between two log lines of a training that makes steps such that it
// needs no heartbeat; 0 for no limit.
func (b *heartbeat) between() time.Duration {
	if b == nil || !b.remote {
		return 0
	}
	return cluster.ReportEvery - cluster.ReportAfter
}

// wrap returns a handler that records the time of each line that h gets.
func (b *heartbeat) wrap(h slog.Handler) slog.Handler {
	if b == nil {
		return h
	}
	return monitoredHandler{h, b}
}

// monitoredHandler is a handler that a heartbeat monitors.
type monitoredHandler struct {
	slog.Handler
	beat *heartbeat
}

func (h monitoredHandler) Handle(ctx context.Context, r slog.Record) error {
	h.beat.mu.Lock()
	h.beat.last = time.Now()
	h.beat.mu.Unlock()
	return h.Handler.Handle(ctx, r)
}

func (h monitoredHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return monitoredHandler{h.Handler.WithAttrs(attrs), h.beat}
}

func (h monitoredHandler) WithGroup(name string) slog.Handler {
	return monitoredHandler{h.Handler.WithGroup(name), h.beat}
}

// start writes to log after each silence, until end is called.
func (b *heartbeat) start(log *slog.Logger) (end func()) {
	if b == nil {
		return func() {}
	}
	b.last = time.Now()
	return parallel.AtEach(beatEvery, func() { b.beat(log) })
}

func (b *heartbeat) beat(log *slog.Logger) {
	b.mu.Lock()
	now := time.Now()
	if !b.remote && b.step != b.seen {
		b.seen, b.last = b.step, now
	}
	silent, reason, since, step, begun := now.Sub(b.last) >= cluster.ReportEvery, b.reason, b.since, b.step, b.begun
	b.mu.Unlock()
	switch {
	case !silent:
	case reason != "":
		log.Warn("still waiting", "for", reason, "since", now.Sub(since).Round(time.Second))
	case begun:
		log.Info("still at work", "last_step", step)
	default:
		log.Info("still preparing")
	}
}

// setReason records what the job waits for; "" ends the wait.
func (b *heartbeat) setReason(reason string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reason == "" {
		b.since = time.Now()
	}
	b.reason = reason
}

// setStep records a step, which ends any wait.
func (b *heartbeat) setStep(step int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.step, b.begun, b.reason = step, true, ""
}
