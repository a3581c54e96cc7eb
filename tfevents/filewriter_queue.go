package tfevents

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// batch is a run of encoded records on its way to the file.
type batch struct {
	buf   []byte        // as tfrecord.Sum takes them
	again int           // the bytes at its front that a file before could not keep
	files []fileStart   // where in buf a new file begins
	recs  []queued      // the records, for the policies that drop some
	flush bool          // to be written as soon as the goroutine is free
	sync  bool          // to be synced as well
	done  chan struct{} // closed once it is written; nil when nobody waits
}

// fileStart is a position in a batch at which a new file begins.
type fileStart struct {
	pos int
	at  time.Time
}

// queued describes one record of a batch.
type queued struct {
	start     int
	droppable bool
}

// urgent reports whether the batch must not wait for more events.
func (b *batch) urgent() bool { return b.flush || b.sync || b.done != nil }

// admit waits until an event can be added and returns its time: t, or now if
// that is zero. w.mu is held, but not while it waits.
func (w *FileWriter) admit(ctx context.Context, t time.Time) (time.Time, error) {
	if err := w.waitForRoom(ctx); err != nil {
		return t, err
	}
	return w.eventTime(t), nil
}

// hasRoom reports whether an event can be added at once.
func (w *FileWriter) hasRoom() bool { return !w.closed && w.err == nil && !w.full() }

// waitForRoom waits until the queue has room for another event.
func (w *FileWriter) waitForRoom(ctx context.Context) error {
	for !w.hasRoom() {
		if w.closed || w.err != nil {
			return w.closedError()
		}
		if w.o.Overflow != Block && w.drop() {
			continue
		}
		if w.room == nil {
			w.room = make(chan struct{})
		}
		if err := w.waitFor(ctx, w.room); err != nil {
			return err
		}
	}
	return nil
}

// keepsTime reports whether an event at time t needs no clock, which costs as much to read as all
// the rest. A file is always dated by the clock, whatever the times of its events.
func (w *FileWriter) keepsTime(t time.Time) bool {
	return w.file.open && !w.rotates() && !t.IsZero()
}

// rotates reports whether the file may become full.
func (w *FileWriter) rotates() bool { return w.o.MaxFileAge > 0 || w.o.MaxFileSize > 0 }

// eventTime returns the time of the event that is about to be added: t, or now
// if that is zero. It begins the file that the event belongs in.
func (w *FileWriter) eventTime(t time.Time) time.Time {
	if w.keepsTime(t) {
		return t
	}
	now := w.o.Now()
	if t.IsZero() {
		t = now
	}
	if !w.file.open || w.rotates() && w.fileIsFull(now) {
		w.startFile(now)
		w.active.flush = true // the file appears with its first event
	}
	return t
}

// waitFor waits for ch to be closed. w.mu is held before and after.
func (w *FileWriter) waitFor(ctx context.Context, ch <-chan struct{}) error {
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// full reports whether the queue has no room for another event.
func (w *FileWriter) full() bool { return w.busy && w.over >= max(w.o.MaxQueue, 1) }

// added accounts for the record that begins at start.
func (w *FileWriter) added(start int, droppable bool) {
	w.file.bytes += int64(len(w.active.buf) - start)
	if start == 0 && w.waited != nil {
		w.waited.Reset(w.o.FlushEvery)
	}
	if w.o.Overflow != Block {
		w.active.recs = append(w.active.recs, queued{start: start, droppable: droppable})
	}
	filled := len(w.active.buf) >= w.o.BufferSize
	switch {
	case w.busy && filled:
		w.over++
	case filled || w.active.flush:
		w.handOver()
	}
}

// handOver gives the added events to the goroutine if it is idle, and starts it if there is none.
// Once the writer is closed and everything is written, it ends the goroutine.
func (w *FileWriter) handOver() {
	switch {
	case w.busy:
	case w.hasWork():
		if w.handed == nil {
			w.handed, w.stopped = make(chan batch, 1), make(chan struct{})
			w.waited = newWaiting(w.o.FlushEvery)
			go w.run(w.handed, w.stopped, w.waited)
		}
		b := w.active
		w.active = batch{buf: w.spare[:0]}
		w.spare, w.over, w.busy = nil, 0, true
		w.handed <- b // has room: the goroutine is idle
	default:
		w.discard()
		if w.closed && w.handed != nil {
			close(w.handed)
			w.handed = nil
		}
	}
}

// hasWork reports whether there is anything for the goroutine to do.
func (w *FileWriter) hasWork() bool {
	if w.err != nil {
		return false
	}
	return len(w.active.buf) > 0 || len(w.active.files) > 0 || w.active.urgent() && w.handed != nil
}

// discard drops the added events from the queue, but keeps them for Reopen.
func (w *FileWriter) discard() {
	if w.active.done != nil {
		close(w.active.done)
	}
	w.keep(w.active.buf)
	w.active = batch{buf: w.active.buf[:0]}
}

// flush waits until all added events have been written, and synced if requested.
func (w *FileWriter) flush(ctx context.Context, sync bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.err != nil {
		return w.closedError()
	}
	w.active.sync = w.active.sync || sync
	if w.active.done == nil {
		w.active.done = make(chan struct{})
	}
	done := w.active.done
	w.handOver()
	if err := w.waitFor(ctx, done); err != nil {
		return err
	}
	return w.err
}

// wake lets all callers that wait for room look again.
func (w *FileWriter) wake() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// drop makes room in a full queue, as the Overflow policy says, and reports
// whether it did. Events that are not summaries stay, and so do those that
// carry a tag's metadata: without it TensorBoard would not show the tag.
func (w *FileWriter) drop() bool {
	old := w.active
	w.active.buf, w.active.recs = old.buf[:0], old.recs[:0]
	seen, dropped := 0, 0
	files := old.files
	for _, r := range old.recs {
		for len(files) > 0 && files[0].pos == r.start { // none begins without a record
			files[0].pos, files = len(w.active.buf), files[1:]
		}
		if r.droppable {
			seen++
			if w.o.Overflow == DropOldest && seen == 1 || w.o.Overflow == Sample && seen%2 == 1 {
				dropped++
				continue
			}
		}
		record := old.buf[r.start : r.start+recordLen(old.buf[r.start:])]
		w.active.recs = append(w.active.recs, queued{start: len(w.active.buf), droppable: r.droppable})
		w.active.buf = append(w.active.buf, record...)
	}
	// A file is not begun if all of its events were dropped.
	w.active.files = slices.CompactFunc(w.active.files, func(a, b fileStart) bool { return a.pos == b.pos })
	w.dropped += int64(dropped)
	w.over = max(0, w.over-dropped)
	return dropped > 0
}

// keep remembers records for Reopen, except changes of the run's state: the calls that added those
// fail.
func (w *FileWriter) keep(records []byte) {
	var heads HeadScanner
	for len(records) > 0 {
		n := recordLen(records)
		if head, err := heads.Scan(records[tfrecord.HeaderSize : n-tfrecord.FooterSize]); err != nil || head.Kind != "session_log" {
			w.unwritten = append(w.unwritten, records[:n]...)
		}
		records = records[n:]
	}
}

// appendAgain adds the records that an earlier file could not keep. The new file must have all of
// them, so they are in one batch, and none is dropped.
func (w *FileWriter) appendAgain(again []byte) {
	w.active.again, w.file.bytes = len(again), int64(len(again))
	for len(again) > 0 {
		n := recordLen(again)
		w.active.recs = append(w.active.recs, queued{start: len(w.active.buf)})
		w.active.buf = append(w.active.buf, again[:n]...)
		again = again[n:]
	}
}

// recordLen returns the length of the record at the front of b.
func recordLen(b []byte) int { return tfrecord.FrameSize + int(binary.LittleEndian.Uint64(b)) }
