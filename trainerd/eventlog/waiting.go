package eventlog

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// late is an event that waits for a file: a START, or a summary that none of those drops.
type late struct{ *tfpb.Event }

// isStart reports whether the event is a START. It shows readers which points are
// superseded, so it is never dropped.
func (e late) isStart() bool { return e.GetSessionLog().GetStatus() == tfpb.SessionLog_START }

// size returns how much memory it takes, about.
func (e late) size() int {
	const overhead = 64
	return proto.Size(e.Event) + overhead
}

func lateSummary(at time.Time, s *tfpb.Summary, step int64) late {
	return late{&tfpb.Event{WallTime: tfevents.WallTime(at), Step: step, What: &tfpb.Event_Summary{Summary: s}}}
}

func lateStart(step int64) late {
	start := &tfpb.SessionLog{Status: tfpb.SessionLog_START}
	return late{&tfpb.Event{WallTime: tfevents.WallTime(time.Now()), Step: step, What: &tfpb.Event_SessionLog{SessionLog: start}}}
}

// take returns what still waits after Finish.
func (l *Log) take() []late {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.waiting
	l.countDropped(-len(taken))
	l.waiting, l.waitingSize = nil, 0
	return taken
}

func scalar(at time.Time, tag string, value float64, step int64) late {
	return lateSummary(at, summary.New(summary.Scalar(tag, value)), step)
}

// wait has an event wait for a file, unless there is one.
func (l *Log) wait(event func() late) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		l.queue(event())
	}
	return l.broken
}

// queue adds to what waits. The caller holds l.mu.
func (l *Log) queue(e late) {
	size := e.size()
	switch {
	case e.isStart():
		l.supersede(e.GetStep())
	case l.waitingSize+size > maxWaiting:
		l.countDropped(1)
		return
	}
	l.waiting, l.waitingSize = append(l.waiting, e), l.waitingSize+size
}

// supersede forgets what waits and a START at that step drops. The caller holds l.mu.
func (l *Log) supersede(step int64) {
	l.waiting = slices.DeleteFunc(l.waiting, func(e late) bool {
		if e.GetStep() < step {
			return false
		}
		l.waitingSize -= e.size()
		return true
	})
}

// drop counts an event that is not written.
func (l *Log) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.countDropped(1)
}

// countDropped is drop for n events. The caller holds l.mu.
func (l *Log) countDropped(n int) {
	l.dropped += n
	l.totalDropped += int64(n)
}

// takeBack puts the events that the writer was given, and has not written, before all others that
// wait. The caller holds l.mu.
func (l *Log) takeBack() {
	later := l.waiting
	l.waiting = nil
	for _, e := range l.writer.TakeUnwritten() {
		l.waiting = append(l.waiting, late{e})
		l.waitingSize += late{e}.size()
	}
	for _, e := range later {
		if e.isStart() {
			l.supersede(e.GetStep())
		}
	}
	l.waiting = append(l.waiting, later...)
}

// handBack gives the writer all that waits, for the front of its next file, and returns how many events those
// are. One by one, a START could be written that hides points of the file before, and not those that replace them.
func (l *Log) handBack() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.takeBack()
	for _, e := range l.waiting {
		if err := l.writer.PutUnwritten(e.Event); err != nil {
			l.logDropped(e, err)
			continue
		}
		n++
	}
	l.waiting, l.waitingSize = nil, 0
	return n
}

// next returns the first event that waits, if one does.
func (l *Log) next() (e late, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return late{}, false
	}
	return l.waiting[0], true
}

// mend has later events written at once, unless one waits by now. It reports whether it did.
func (l *Log) mend(written int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 {
		return false
	}
	l.log.Info("began a new events file", "late", written, "dropped", l.dropped)
	l.broken, l.dropped, l.waiting = false, 0, nil
	return true
}

// writeLate writes an event that has waited.
func (l *Log) writeLate(ctx context.Context, e late) error {
	err := l.writer.AddEvent(ctx, e.Event)
	if err == nil || e.isStart() || isFailure(ctx, err) || ctx.Err() != nil {
		return err
	}
	l.logDropped(e, err)
	return nil
}

func (l *Log) logDropped(e late, err error) {
	l.log.Error("event is dropped", "step", e.GetStep(), "err", err)
}

// forget drops the first event that waits, if it is still e, because the file has it.
func (l *Log) forget(e late) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) > 0 && l.waiting[0] == e {
		l.waiting, l.waitingSize = l.waiting[1:], l.waitingSize-e.size()
	}
}
