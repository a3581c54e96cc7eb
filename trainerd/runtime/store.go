package runtime

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Variables implements [session.VariableStore].
func (s *Session) Variables(ctx context.Context) ([]session.VariableInfo, error) {
	return s.exec.Variables(ctx)
}

// Snapshot implements [session.VariableStore]. Runs that write wait while the
// values are copied.
func (s *Session) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	return s.exec.Snapshot(ctx, names)
}

// Freeze implements [session.LazyStore]. It copies only the positions of
// random streams: the snapshot takes the variables' memory, and a step that is
// about to change a variable moves it to other memory first. A variable is
// released when the next tensor of the snapshot is requested, or the snapshot
// is closed, and is changed in place from then on.
//
// During the next snapshot a variable moves to the memory that it has left. So
// a variable that changes during snapshots takes twice its size, any other
// only its size. There may be several snapshots at a time; values that change
// between them are kept once for each.
func (s *Session) Freeze(ctx context.Context, names []string) (session.LazySnapshot, error) {
	return s.exec.Freeze(ctx, names)
}

// Changes implements [session.ChangeTracker]. Steps that change other variables
// do not count, nor do draws from random streams.
func (s *Session) Changes(names []string) (uint64, error) { return s.exec.Changes(names) }

// Restore implements [session.VariableStore].
func (s *Session) Restore(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.exec.Restore(ctx, values)
}

// Adopt implements [session.Adopter].
func (s *Session) Adopt(ctx context.Context, values []ckptfmt.NamedTensor) error {
	return s.exec.Adopt(ctx, values)
}

// SavesTables implements [session.TableStore].
func (s *Session) SavesTables() {}

// InputRestored reports whether the last Restore restored the state of the
// graph's input. If not, or if the graph has none, the input starts from its
// beginning.
func (s *Session) InputRestored() bool { return s.exec.InputRestored() }

// Observer returns a session of the same graph that reads the model without
// side effects: an evaluation in the middle of a training must not change its
// result.
//
// An observer reads the variables of s, and sees the queues and tables of s.
// Its random ops draw from their own streams, see [Session.SeedObserver]. A
// variable that one of its runs assigns gets its old value back when the run
// ends. It does not prevent ops from taking elements of a queue, a reader or
// an iterator: an evaluation has to leave them out.
//
// The observer has the graph as it is now. The caller must close it; that does
// not close s.
func (s *Session) Observer() *Session { return &Session{s.exec.Observer()} }

// SeedObserver sets all random streams of an observer to the beginning of those
// for a step: the numbers that it then draws depend only on the graph's seeds
// and the step. Ops without a seed also draw the same numbers for the same
// step. It must not be called during a run of the observer.
func (s *Session) SeedObserver(step int64) { s.exec.SeedObserver(step) }
