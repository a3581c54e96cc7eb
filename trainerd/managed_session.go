package trainerd

import (
	"context"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// managedSession is the session as the training sees it: a stop does not
// interrupt its steps, and hooks take part in them.
type managedSession struct {
	session.Session
	steps  *stepTracker // nil for none
	points *points      // nil for none
}

// managedStore is a managedSession over a VariableStore.
type managedStore struct {
	managedSession
	session.VariableStore
}

func manage(s session.Session, steps *stepTracker, points *points) session.Session {
	m := managedSession{s, steps, points}
	if store, ok := s.(session.VariableStore); ok {
		return managedStore{m, store}
	}
	return m
}

// Unwrap returns the session that NewSession made. A type assertion on it gives access to what a
// particular runtime offers beyond [session.Session]; see [StepContext].
func (m managedSession) Unwrap() session.Session { return m.Session }

// Run runs a step that a stop does not interrupt.
func (m managedSession) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	m.points.begin()
	step, cancel := stepContext(ctx)
	defer cancel()
	if !m.steps.wants(ctx) {
		return m.Session.Run(step, feeds, fetches, targets)
	}
	out, _, err := m.steps.call(ctx, step, m.Session, hook.RunArgs{Feeds: feeds, Fetches: fetches, Targets: targets})
	return out, err
}

// RunWithOptions implements [session.OptionsRunner], as the function RunWithOptions does
// for the session that NewSession made.
func (m managedSession) RunWithOptions(ctx context.Context, o *tfpb.RunOptions, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	[]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	m.points.begin()
	step, cancel := stepContext(ctx)
	defer cancel()
	if !m.steps.wants(ctx) {
		return session.RunWithOptions(step, m.Session, o, feeds, fetches, targets)
	}
	return m.steps.call(ctx, step, m.Session, hook.RunArgs{Feeds: feeds, Fetches: fetches, Targets: targets, Options: o})
}

// Saved implements [session.Wrapper].
func (m managedStore) Saved() session.VariableStore { return m.VariableStore }

// Run runs a step that a stop does not interrupt.
func (m managedStore) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	return m.managedSession.Run(ctx, feeds, fetches, targets)
}

// Close closes the session.
func (m managedStore) Close() error { return m.managedSession.Close() }
