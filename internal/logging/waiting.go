package logging

import (
	"time"

	"github.com/trainerd/trainerd/internal/parallel"
)

// When a wait is logged for the first time, and how often from then on.
const (
	firstWait = 10 * time.Second
	nextWait  = 20 * time.Second
)

// Waiting logs what is waited for, with a method such as [slog.Logger.Warn], once that
// takes long, and again and again until end is called: a program whose disk hangs must
// not look like one that does.
func Waiting(log func(msg string, args ...any), what string) (end func()) {
	begun, next := time.Now(), firstWait
	return parallel.AtEach(firstWait, func() {
		waited := time.Since(begun).Round(time.Second)
		if waited < next {
			return
		}
		log("still waiting", "for", what, "since", waited)
		next = waited + nextWait
	})
}

// Await calls f, and logs what it waits for as Waiting does.
func Await(log func(msg string, args ...any), what string, f func() error) error {
	defer Waiting(log, what)()
	return f()
}
