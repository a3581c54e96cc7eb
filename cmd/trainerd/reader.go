package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/internal/logging"
)

// outliveReaders makes writing to a pipe that nobody reads an error, also on the
// standard outputs, where it ends a Go program by default: a training does not
// end because somebody has read enough of its log. Programs that are started
// have the default again.
func outliveReaders() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// readerPatience is how long a write waits for a reader.
const readerPatience = 10 * time.Second

// logWriter writes to a log whose reader may go away, or stop reading: a pager, a
// terminal after Ctrl-S, a pipe to a disk that hangs. Neither ends the training, nor
// holds it up. After a reader has gone, the writer discards; while one does not read, it
// waits once for [readerPatience], then discards until the reader has caught up. It is
// safe for concurrent use.
type logWriter struct {
	out  io.Writer
	name string       // of the output
	log  *slog.Logger // gets a line when nobody reads
	turn chan struct{}

	gone   atomic.Bool
	stuck  atomic.Bool  // the write under way has waited for too long
	missed atomic.Int64 // lines discarded since
}

func newLogWriter(out io.Writer, name string, other slog.Handler) *logWriter {
	return &logWriter{out: out, name: name, log: slog.New(other), turn: make(chan struct{}, 1)}
}

// Beneath returns the output itself.
func (w *logWriter) Beneath() io.Writer { return w.out }

// Fd returns the descriptor of the output, by which others see whether it is a terminal.
func (w *logWriter) Fd() uintptr {
	if f, ok := w.out.(*os.File); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Write never fails for the lack of a reader.
func (w *logWriter) Write(b []byte) (int, error) {
	if w.gone.Load() {
		return len(b), nil
	}
	patience := time.NewTimer(readerPatience)
	defer patience.Stop()
	if !w.begin(patience.C) {
		w.discard(b)
		return len(b), nil
	}
	done := make(chan error, 1)
	go w.write(w.withNotice(b), done)
	select {
	case err := <-done:
		return w.result(len(b), err)
	case <-patience.C:
		w.giveUp()
		return len(b), nil
	}
}

// begin takes the turn to write, and reports whether it has it.
func (w *logWriter) begin(patience <-chan time.Time) bool {
	select {
	case w.turn <- struct{}{}:
		return true
	default:
	}
	if w.stuck.Load() {
		return false
	}
	select {
	case w.turn <- struct{}{}:
		return true
	case <-patience:
		w.giveUp()
		return false
	}
}

// write gives the turn back when the reader has taken the text, however late.
func (w *logWriter) write(text []byte, done chan<- error) {
	_, err := w.out.Write(text)
	w.stuck.Store(false)
	<-w.turn
	done <- err
}

// result is what Write returns for a write that has ended.
func (w *logWriter) result(n int, err error) (int, error) {
	if !errors.Is(err, syscall.EPIPE) {
		return n, err
	}
	if w.gone.CompareAndSwap(false, true) {
		w.log.Warn("nobody reads "+w.name+" any more, so nothing more is written there; the run continues", "err", err)
	}
	return n, nil
}

func (w *logWriter) giveUp() {
	if w.stuck.CompareAndSwap(false, true) {
		w.log.Warn("nothing has read "+w.name+" for a while, so lines are left out there until something does; the run continues", "waited", readerPatience)
	}
}

func (w *logWriter) discard(b []byte) { w.missed.Add(int64(bytes.Count(b, []byte("\n")))) }

// withNotice returns a copy of a text, after how many lines are missing before it: the
// caller may use its own again while the reader does not read.
func (w *logWriter) withNotice(b []byte) []byte {
	n := w.missed.Swap(0)
	if n == 0 {
		return bytes.Clone(b)
	}
	return append(fmt.Appendf(nil, "\n(%d lines are missing here: nothing read this output in time)\n", n), b...)
}

// outputs are the standard outputs of a command that does not wait for their readers.
type outputs struct{ stdout, stderr io.Writer }

// unheld returns the outputs of a command that is to continue whatever their readers do. They are one if both
// are the same file, so that lines stay in their order.
func unheld(stdout, stderr io.Writer, other slog.Handler) outputs {
	stdout, stderr = terminal.Beneath(stdout), terminal.Beneath(stderr)
	for _, w := range []io.Writer{stdout, stderr} {
		if f, ok := w.(*os.File); ok {
			logging.Append(f)
		}
	}
	if sameFile(stdout, stderr) {
		w := newLogWriter(stderr, "the output", other)
		return outputs{stdout: w, stderr: w}
	}
	return outputs{stdout: newLogWriter(stdout, "standard output", other), stderr: newLogWriter(stderr, "standard error", other)}
}

func sameFile(a, b io.Writer) bool {
	return infoOf(a) != nil && infoOf(b) != nil && os.SameFile(infoOf(a), infoOf(b))
}

func infoOf(w io.Writer) os.FileInfo {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	return info
}
