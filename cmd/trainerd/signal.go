package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon"
)

// stopOnSignal returns a context that is done after the first SIGINT or
// SIGTERM. The second one ends the process at once. release ends the watch; it
// must be called. message says what the first one does.
func stopOnSignal(parent context.Context, stderr io.Writer, message string) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	line := ""
	if isTerminal(stderr) {
		line = "\n" // behind the bar, and the ^C that the terminal shows
	}
	released, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for count := 1; ; count++ {
			select {
			case <-released:
				return
			case s := <-signals:
				if count > 1 {
					fmt.Fprintf(stderr, "%s%v again: ending at once; what came after the last checkpoint is lost\n", line, s)
					os.Exit(daemon.ExitInterrupted)
				}
				fmt.Fprintf(stderr, "%s%v: %s; once more ends at once\n", line, s, message)
				cancel(stopRequest(s))
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

// stopRequest is the cause of a stop by a signal, as reports of runs have it.
func stopRequest(s os.Signal) trainerd.StopRequest {
	switch s {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return trainerd.StopRequest(s.String())
}
