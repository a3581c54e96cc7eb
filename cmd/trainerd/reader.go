package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// outliveReaders makes writing to a pipe that nobody reads an error, also on the
// standard outputs, where it ends a Go program by default: a training does not
// end because somebody has read enough of its log. Programs that are started
// have the default again.
func outliveReaders() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// logWriter writes to a log whose reader may go away: from then on it discards.
type logWriter struct {
	out   io.Writer
	other slog.Handler // gets one line when the reader has gone
	gone  atomic.Bool
}

// Write never fails for the lack of a reader.
func (w *logWriter) Write(b []byte) (int, error) {
	if w.gone.Load() {
		return len(b), nil
	}
	n, err := w.out.Write(b)
	if !errors.Is(err, syscall.EPIPE) {
		return n, err
	}
	if w.gone.CompareAndSwap(false, true) {
		slog.New(w.other).Warn("nobody reads standard error any more, so nothing more is written there; the run continues", "err", err)
	}
	return len(b), nil
}
