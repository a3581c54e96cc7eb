package tfevents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// FileWriter writes events to its own file in a log directory, from a
// background goroutine. It is safe for concurrent use.
//
// An event is encoded before the call that adds it returns, so the caller may
// reuse its arguments. Calls wait only while the queue is full, and then no
// longer than their context allows. If the file cannot be written, every later
// call returns the error; nothing is written after a record that may be
// incomplete. Close and Reopen continue with a new file, which begins with what
// was added but is not in the old one, or is not durable there because a sync failed.
//
// The file's name sorts after those of all events files in the directory.
// TensorBoard reads them in that order and follows only the last one, so one
// directory should have one writer at a time.
type FileWriter struct {
	dir    string
	tail   string // of file names
	o      FileWriterOptions
	create func(at time.Time) (f atomicfile.File, seconds int64, err error)

	mu        sync.Mutex
	active    batch               // what is added goes here
	spare     []byte              // the buffer that is not in use
	busy      bool                // a batch is with the goroutine
	over      int                 // events added since active reached BufferSize
	room      chan struct{}       // closed when busy ends; nil when nobody waits
	seen      map[string]struct{} // tags whose metadata the current file has
	tags      tagCache
	lastTime  time.Time // the last time of the clock, and what it is in an event
	lastWall  float64
	file      fileState
	dropped   int64
	closed    bool
	err       error
	unwritten []byte // records that were added and that the file lacks, since err

	handed  chan batch    // to the goroutine; nil when there is none
	stopped chan struct{} // closed when the goroutine has ended
	waited  *time.Timer   // runs out once an event has waited for FlushEvery; nil if that is forever

	notBefore int64 // the least second in the name of the next file; the goroutine's
}

// fileState is what the callers' side knows about the current file.
type fileState struct {
	open  bool
	at    time.Time
	bytes int64 // added to it so far
}

// writerNumber counts the writers of forms whose file names carry a number.
var writerNumber atomic.Int64

// NewFileWriter returns a FileWriter for logdir, which it creates if needed.
// The caller must Close it.
func NewFileWriter(logdir string, o *FileWriterOptions) (*FileWriter, error) {
	var opt FileWriterOptions
	if o != nil {
		opt = *o
	}
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	w := &FileWriter{dir: logdir, o: opt}
	number := int64(0)
	if opt.Form.numbered() {
		number = writerNumber.Add(1) - 1
	}
	w.tail = fileTail(opt.Form, opt.Host, opt.PID, number, opt.Suffix)
	if err := checkTail(w.tail); err != nil {
		return nil, err
	}
	fsys := opt.FS
	if opt.Sync == SyncNever {
		fsys = atomicfile.NoSync(fsys) // of the directory's name, too
	}
	if err := atomicfile.MkdirAllSync(fsys, logdir); err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	w.create = w.createFile
	if err := w.begin(); err != nil {
		w.Close() // the same error
		return nil, err
	}
	return w, nil
}

// begin does what a writer does before its first event.
func (w *FileWriter) begin() error {
	if w.o.PurgeStep != nil {
		return w.AddSessionLog(context.Background(), &tfpb.SessionLog{Status: tfpb.SessionLog_START}, *w.o.PurgeStep)
	}
	return w.beginFile(nil)
}

// beginFile begins a file with the records that an earlier file could not keep. In the form TF1 a
// file is not begun before its first event.
func (w *FileWriter) beginFile(again []byte) error {
	if w.o.Form == TF1 && len(again) == 0 {
		return nil
	}
	w.mu.Lock()
	w.startFile(w.o.Now())
	w.appendAgain(again)
	w.mu.Unlock()
	return w.Flush(context.Background())
}

// Dir returns the log directory.
func (w *FileWriter) Dir() string { return w.dir }

// HasFile reports whether the log directory has a file of this writer, or of an earlier one with
// the same form of names. If the directory cannot be read, it reports true.
func (w *FileWriter) HasFile() bool {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return IsEventsFile(e.Name()) && strings.HasSuffix(e.Name(), "."+w.tail)
	})
}

// Dropped returns how many summaries the Overflow policy has dropped.
func (w *FileWriter) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Queued returns how many bytes wait to be handed to the operating system, not
// counting those being written at the moment.
func (w *FileWriter) Queued() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.active.buf))
}

// TakeUnwritten returns the events that a failure has kept out of the file, which Reopen
// would write, and forgets them. PutUnwritten gives them back.
func (w *FileWriter) TakeUnwritten() []*tfpb.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []*tfpb.Event
	records := w.unwritten
	w.unwritten = nil
	for ; len(records) > 0; records = records[recordLen(records):] {
		e, err := decodeEvent("", 0, records[tfrecord.HeaderSize:recordLen(records)-tfrecord.FooterSize])
		if err == nil { // as it was encoded here
			events = append(events, e)
		}
	}
	return events
}

// PutUnwritten gives a closed writer an event for Reopen to write, after those that are there. The new file has
// all of them or is removed again, and readers see that it may repeat the one before. An error means
// that no file can have the event.
func (w *FileWriter) PutUnwritten(e *tfpb.Event) error {
	if err := checkEvent(e); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unwritten = appendEventRecord(w.unwritten, e)
	return nil
}

// Flush returns when all events added so far are in the file.
func (w *FileWriter) Flush(ctx context.Context) error {
	return w.flush(ctx, w.o.Sync == SyncAlways)
}

// Sync is Flush and, unless the options say SyncNever, returns when the events in
// the file are durable. Call it before making durable any state from which a run
// would continue after these events.
func (w *FileWriter) Sync(ctx context.Context) error {
	return w.flush(ctx, w.o.Sync != SyncNever)
}

// Close writes all added events, syncs and closes the file, and ends the
// goroutine. Closing again returns the same result.
func (w *FileWriter) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.active.sync = w.active.sync || w.o.Sync != SyncNever
		w.wake()
		w.handOver()
	}
	stopped := w.stopped
	w.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Reopen makes a closed writer usable again, with a new file. It does nothing to an open one. An
// error that ended the old file is forgotten, and the new file begins with what the old one lacks
// of all that was added by calls without an error. If Reopen fails, the writer stays closed.
func (w *FileWriter) Reopen() error {
	w.mu.Lock()
	if !w.closed {
		w.mu.Unlock()
		return nil
	}
	stopped := w.stopped
	w.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	w.mu.Lock()
	reopened := w.closed // another call may have been faster
	unwritten := w.unwritten
	if reopened {
		w.closed, w.err, w.stopped, w.unwritten = false, nil, nil, nil
		w.active, w.file, w.over = batch{}, fileState{}, 0
	}
	w.mu.Unlock()
	if !reopened {
		return nil
	}
	if err := w.beginFile(unwritten); err != nil {
		w.Close() // the same error
		return err
	}
	return nil
}

// closedError distinguishes a use after Close from one after a failure.
func (w *FileWriter) closedError() error {
	if w.err != nil {
		return w.err
	}
	return tfrecord.ErrClosed
}
