package tfevents

import (
	"io"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
)

// EventsWriter writes events to an [io.Writer]. It is not safe for concurrent
// use and does not buffer: each event is one Write.
type EventsWriter struct {
	w       io.Writer
	o       EventsWriterOptions
	buf     []byte
	started bool
	err     error
}

// EventsWriterOptions holds the choices of [NewEventsWriter].
type EventsWriterOptions struct {
	Form Form             // decides the first event
	Now  func() time.Time // time of the first event; nil means time.Now
	// Continue omits the first event, for a stream that already has one.
	Continue bool
}

// NewEventsWriter returns an EventsWriter that writes to w. The event that
// names the version goes first, together with the first event written.
func NewEventsWriter(w io.Writer, o *EventsWriterOptions) *EventsWriter {
	ew := &EventsWriter{w: w}
	if o != nil {
		ew.o = *o
	}
	if ew.o.Now == nil {
		ew.o.Now = time.Now
	}
	ew.started = ew.o.Continue
	return ew
}

// WriteEvent writes e as it is. After a failed write the stream may end within
// a record, so the same error is returned from then on.
func (w *EventsWriter) WriteEvent(e *tfpb.Event) error {
	if w.err != nil {
		return w.err
	}
	if err := checkEvent(e); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	if !w.started {
		w.buf = appendEventRecord(w.buf, w.o.Form.firstEvent(w.o.Now()))
		w.started = true
	}
	w.buf = appendEventRecord(w.buf, e)
	_, w.err = w.w.Write(w.buf)
	return w.err
}
