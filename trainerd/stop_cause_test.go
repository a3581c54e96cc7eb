package trainerd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

var errQueue = errors.New("the time in the queue is over")

// A stop that the caller's context asks for is clean, whatever the training or a
// service says of it; the end of another context is a failure.
func TestEndOfTheCallersContext(t *testing.T) {
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}
	withCause := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, time.Second, errQueue)
	}
	never := func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	for _, tt := range []struct {
		name   string
		caller func(context.Context) (context.Context, context.CancelFunc)
		train  func(caller, ctx context.Context) error
		clean  bool
	}{
		{"its deadline", deadline, func(caller, _ context.Context) error { <-caller.Done(); return caller.Err() }, true},
		{"its deadline, wrapped", deadline, func(caller, _ context.Context) error {
			<-caller.Done()
			return fmt.Errorf("reading a batch: %w", caller.Err())
		}, true},
		{"its deadline, as the session says it", deadline, func(caller, _ context.Context) error {
			<-caller.Done()
			return &session.OpError{Code: session.ErrDeadlineExceeded.(*session.OpError).Code, Node: "train"}
		}, true},
		{"the training's own context", deadline, func(_, ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, true},
		{"cancelled", cancelled, func(caller, _ context.Context) error { <-caller.Done(); return caller.Err() }, true},
		{"the cause of its deadline", withCause, func(caller, _ context.Context) error {
			<-caller.Done()
			return fmt.Errorf("reading a batch: %w", context.Cause(caller))
		}, true},
		{"its deadline, which has a cause", withCause, func(caller, _ context.Context) error { <-caller.Done(); return caller.Err() }, true},
		{"what is the cause of nothing", never, func(context.Context, context.Context) error { return errQueue }, false},
		{"another deadline", never, func(_, ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			<-ctx.Done()
			return ctx.Err()
		}, false},
		{"another deadline, after a cancellation", cancelled, func(caller, _ context.Context) error {
			<-caller.Done()
			return context.DeadlineExceeded
		}, false},
		{"a failure after the deadline", deadline, func(caller, _ context.Context) error { <-caller.Done(); return errors.New("broken") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				m := sessiontest.Counter()
				sv := newSupervisor(m, dir, 1000)
				caller, cancel := tt.caller(t.Context())
				defer cancel()
				err := sv.Run(caller, func(ctx context.Context, _ session.Session) error {
					m.Step()
					return tt.train(caller, ctx)
				})
				if (err == nil) != tt.clean {
					t.Errorf("Run = %v; want a clean end: %v", err, tt.clean)
				}
			})
			if saved := len(sessiontest.Files(t, dir, "model.ckpt-1.index")) == 1; saved != tt.clean {
				t.Errorf("final checkpoint: %v; want %v", saved, tt.clean)
			}
		})
	}
}

// A service that reports the deadline first does not make it a failure.
func TestServiceReportsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sv := newSupervisor(sessiontest.Counter(), "", 0)
		sv.Services = []coord.Service{coord.ServiceFunc(func(context.Context) error { <-ctx.Done(); return ctx.Err() })}
		sessiontest.MustNoErr(t, sv.Run(ctx, func(ctx context.Context, _ session.Session) error { <-ctx.Done(); return nil }))
	})
}

// A worker that waits for the chief ends well, too, when its caller gives it a cause to
// stop.
func TestCauseEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errQueue)
		defer cancel()
		sv := newSupervisor(sessiontest.Counter(), "", 0)
		sv.NonChief = true
		sv.ReadyOp = Func(func(context.Context, session.Session) error { return &NotReadyError{Missing: []string{"w"}} })
		sessiontest.MustNoErr(t, sv.Run(ctx, func(context.Context, session.Session) error { return nil }))
	})
}
