package tfevents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

func (w *FileWriter) createFile(at time.Time) (atomicfile.File, int64, error) {
	return createFile(w.o.FS, w.dir, max(at.Unix(), w.notBefore), w.o.Form, w.tail)
}

// newWaiting returns the timer for waiting events, stopped, since there are none yet.
func newWaiting(most time.Duration) *time.Timer {
	if most <= 0 {
		return nil
	}
	t := time.NewTimer(most)
	t.Stop()
	return t
}

// run is the goroutine: it writes the batches that it is handed, and requests one when events have
// waited for long. It ends when handed is closed.
func (w *FileWriter) run(handed <-chan batch, stopped chan<- struct{}, waited *time.Timer) {
	defer close(stopped)
	out := output{w: w}
	var over <-chan time.Time
	if waited != nil {
		defer waited.Stop()
		over = waited.C
	}
	for {
		select {
		case b, ok := <-handed:
			if !ok {
				err := out.end()
				w.ended(out.unsynced.again(), err)
				return
			}
			written, err := out.write(b)
			w.finished(b, written, err)
		case <-over:
			w.flushWaiting()
		}
	}
}

// finished records how much of b the goroutine has written.
func (w *FileWriter) finished(b batch, written int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	if err != nil {
		w.keepRest(b, written)
		w.setError(err)
	}
	// One large image must not keep its memory for the rest of a long run.
	if cap(b.buf) <= 4*max(w.o.BufferSize, DefaultBufferSize) {
		w.spare = b.buf
	}
	if b.done != nil {
		close(b.done)
	}
	w.wake()
	if w.closed || w.err != nil || w.active.urgent() || len(w.active.buf) >= max(w.o.BufferSize, 1) {
		w.handOver()
	}
}

// keepRest keeps the rest of b for Reopen, after the bytes that are in files.
func (w *FileWriter) keepRest(b batch, written int) {
	whole := wholeRecords(b.buf, written)
	w.unwritten = append(w.unwritten, b.buf[min(whole, b.again):b.again]...) // with the STARTs that belong to it
	w.keep(b.buf[max(whole, b.again):])
}

// ended records the result of closing the file, and the records that may not be durable there.
func (w *FileWriter) ended(again []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.setError(err)
	}
	if w.err != nil {
		w.unwritten = append(again, w.unwritten...)
	}
}

func (w *FileWriter) setError(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("tfevents: %w (close and reopen the writer to continue in a new file)", err)
	}
}

// flushWaiting hands over the added events, however few.
func (w *FileWriter) flushWaiting() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.active.buf) > 0 {
		w.active.flush = true // once the batch that was handed over meanwhile is written
		w.handOver()
	}
}

// output is the goroutine's side of the current file.
type output struct {
	w         *FileWriter
	f         atomicfile.File
	seconds   int64 // in the name of f
	dirSynced bool
	torn      bool // a write to f has failed
	unsynced  unsynced
}

// write returns how many bytes of the batch are in files.
func (o *output) write(b batch) (written int, err error) {
	tfrecord.Sum(b.buf) // here, not in the call that adds an event: it is half of that work
	for _, start := range b.files {
		n, err := o.writeBytes(b.buf[written:start.pos])
		if written += n; err == nil {
			err = o.open(start.at, start.pos < b.again)
		}
		if err != nil {
			return written, err
		}
	}
	n, err := o.writeBytes(b.buf[written:])
	if err != nil && n < b.again && o.undo() == nil {
		return 0, err
	}
	written += n
	if err == nil && (b.sync || o.w.o.Sync == SyncAlways || len(o.unsynced.records) > maxUnsynced) {
		err = o.sync()
	}
	return written, err
}

// wholeRecords returns the end of the last record that lies wholly in buf[:n].
func wholeRecords(buf []byte, n int) int {
	end := 0
	for end < n && end+recordLen(buf[end:]) <= n {
		end += recordLen(buf[end:])
	}
	return end
}

// open ends the current file, if any, and begins the next. A file that repeats records which an
// earlier file could not keep is dated after them: that tells readers that they are not events of
// another writer.
func (o *output) open(at time.Time, repeats bool) error {
	if o.w.o.Sync != SyncNever {
		if err := o.sync(); err != nil {
			return err
		}
	}
	if err := o.close(); err != nil {
		return err
	}
	f, seconds, err := o.w.create(at)
	if err != nil {
		return err
	}
	o.f, o.seconds, o.dirSynced = f, seconds, false
	if at.Unix() != seconds {
		at = time.Unix(seconds, 0)
	}
	first := o.w.o.Form.firstEvent(at)
	if repeats {
		first.WallTime = WallTime(at) // not the second that TensorFlow writes
	}
	_, err = o.toFile(appendEventRecord(nil, first))
	return err
}

// writeBytes writes records of events.
func (o *output) writeBytes(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := o.toFile(b)
	if o.w.o.Sync != SyncNever {
		o.unsynced.add(b[:wholeRecords(b, n)])
	}
	return n, err
}

// undo removes the file, which could not take all the records that it must begin with: its START
// would hide points of the earlier files until another file repeats them.
func (o *output) undo() error {
	o.close() // there is nothing in it that is not in memory
	name := filepath.Join(o.w.dir, o.w.o.Form.fileName(o.seconds, o.w.tail))
	if err := o.w.o.FS.Remove(name); err != nil {
		return err
	}
	o.w.notBefore = o.seconds + 1 // a reader that has it open would not notice a new file of that name
	o.unsynced = unsynced{}
	if o.w.o.Sync != SyncNever {
		o.w.o.FS.SyncDir(o.w.dir) // otherwise the next file's sync does
	}
	return nil
}

func (o *output) toFile(b []byte) (int, error) {
	n, err := o.f.Write(b)
	if err == nil && n < len(b) {
		err = &fs.PathError{Op: "write", Path: o.w.dir, Err: io.ErrShortWrite}
	}
	o.torn = err != nil
	return n, err
}

// sync makes the file durable, and its name too.
func (o *output) sync() error {
	if o.f == nil {
		return nil
	}
	if err := o.f.Sync(); err != nil {
		return err
	}
	if !o.dirSynced {
		if err := o.w.o.FS.SyncDir(o.w.dir); err != nil {
			return err
		}
		o.dirSynced = true
	}
	o.unsynced.synced()
	return nil
}

// end closes the last file. If it could not be written to its end, it is made durable first: the
// rest goes to another file, whose syncs promise that this one is durable, too.
func (o *output) end() error {
	if o.torn && o.w.o.Sync != SyncNever {
		return errors.Join(o.sync(), o.close())
	}
	return o.close()
}

func (o *output) close() error {
	if o.f == nil {
		return nil
	}
	err := o.f.Close()
	o.f = nil
	return err
}
