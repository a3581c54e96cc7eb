package eventlog

import (
	"context"
	"sync"

	"github.com/trainerd/trainerd/tfevents"
)

// later is events that are not written yet, as making them takes long.
type later struct {
	once  sync.Once
	write func(w *tfevents.FileWriter) error
	err   error
}

// Later has events written before all that are added from now on, but not at once: they
// come with the first of those, with Flush, Sync or Finish, or with Settle.
func (l *Log) Later(write func(w *tfevents.FileWriter) error) {
	l.later.Store(&later{write: write})
}

// Settle writes the events of Later, unless that has happened.
func (l *Log) Settle(ctx context.Context) error {
	e := l.later.Load()
	if e == nil {
		return nil
	}
	e.once.Do(func() {
		e.err = l.put(ctx, e.write, nil)
		l.later.Store(nil)
	})
	return e.err
}
