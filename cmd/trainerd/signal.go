package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// secondSignal is how long after the first signal another one is meant to end
// the process at once. One that comes sooner is a copy: GNU timeout and several
// wrappers signal the process and then its group.
const secondSignal = time.Second

// stopOnSignal returns a context that is done after the first SIGINT, SIGTERM or
// SIGHUP. Another SIGINT or SIGTERM, a second or more after the first, ends the
// process at once. release ends the watch; it must be called. message says what
// the first one does.
func stopOnSignal(parent context.Context, stderr io.Writer, message string) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	w := &signalWatch{stderr: stderr, message: message, stop: cancel}
	released, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-released:
				return
			case s := <-signals:
				if w.take(s, time.Now()) {
					os.Exit(daemon.ExitInterrupted)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		<-ended
		cancel(nil)
	}
}

// stopping says what a stop does to a job.
func stopping(job *config.Config) string {
	if job.IsChild() {
		return fmt.Sprintf("stopping the program, which has %v to save and end", job.Supervisor.StopGraceSecs.Duration())
	}
	return "stopping after this step and saving"
}

// stopSignals are those that stop a run. A terminal that closes sends SIGHUP;
// nohup has it ignored, which stays so, and for a service manager it means to
// read the config again.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if os.Getenv("NOTIFY_SOCKET") == "" && !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// signalWatch decides what a signal means.
type signalWatch struct {
	stderr  io.Writer
	message string
	stop    func(cause error)

	stopped bool
	first   time.Time // of the SIGINTs and SIGTERMs
}

// take acts on a signal, and reports whether it ends the process at once. What a
// closing terminal sends never does, for shells and session managers add signals
// of their own.
func (w *signalWatch) take(s os.Signal, now time.Time) (atOnce bool) {
	line := ""
	if terminal.Is(w.stderr) {
		line = "\n" // after the bar, and the ^C that the terminal shows
	}
	meant := s != syscall.SIGHUP
	switch {
	case !w.stopped:
		fmt.Fprintf(w.stderr, "%s%v: %s; once more ends at once\n", line, s, w.message)
		w.stopped = true
		w.stop(stopRequest(s))
	case !meant:
	case w.first.IsZero(), now.Sub(w.first) < secondSignal:
		fmt.Fprintf(w.stderr, "%s%v again: still %s; once more, %v or longer after the first, ends at once\n", line, s, w.message, secondSignal)
	default:
		fmt.Fprintf(w.stderr, "%s%v again: ending at once; what came after the last checkpoint is lost\n", line, s)
		return true
	}
	if meant && w.first.IsZero() {
		w.first = now
	}
	return false
}

// stopRequest is the cause of a stop by a signal, as reports of runs have it.
func stopRequest(s os.Signal) trainerd.StopRequest {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGHUP:
		return "SIGHUP"
	}
	return trainerd.StopRequest(s.String())
}
