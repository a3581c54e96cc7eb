package daemon

import (
	"context"
	"fmt"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// tester runs a program on the test part of its data. It belongs to one
// goroutine.
type tester struct {
	config   *config.Config
	program  *program.Program
	input    program.Input
	task     *cluster.Task
	observer *observer // of the newest evaluation, nil before the first
}

// evaluate runs the model on the test part of the data. A metric is the mean of
// all rows. It changes nothing in sess, and a stop does not interrupt it.
func (t *tester) evaluate(ctx context.Context, sess session.Session) (evaluation, error) {
	ctx, cancel := trainerd.StepContext(ctx)
	defer cancel()
	e := evaluation{values: make([]float64, len(t.program.Metrics))}
	fetches := make([]string, len(t.program.Metrics))
	for i, m := range t.program.Metrics {
		e.names, fetches[i] = append(e.names, m.Name), m.Tensor
	}
	trained := sess
	sess, done, err := t.observe(ctx, sess, fetches)
	if err != nil {
		return e, err
	}
	defer done()
	_, tests := t.input.Rows()
	feeds := make(program.Feed)
	for e.rows < tests {
		t.task.GiveSign(ctx, trained)
		clear(feeds)
		n, err := t.input.Test(e.rows, t.config.Eval.BatchSize, feeds)
		if err != nil {
			return e, err
		}
		out, err := sess.Run(ctx, feeds, fetches, nil)
		if err != nil {
			return e, fmt.Errorf("evaluating on the test rows: %w", err)
		}
		share := float64(n) / float64(e.rows+n)
		for i, value := range out {
			v, err := program.Scalar(value)
			if err != nil {
				return e, fmt.Errorf("evaluating %s: %w", e.names[i], err)
			}
			e.values[i] += (v - e.values[i]) * share
		}
		e.rows += n
	}
	return e, nil
}

// evaluates reports whether there is a test part, and what to look at.
func (t *tester) evaluates() bool {
	_, tests := t.input.Rows()
	return tests > 0 && len(t.program.Metrics) > 0
}

// observer is a session that looks at the model of another one.
type observer struct {
	of   session.Session
	sess *runtime.Session
}

// observe returns the session in which to evaluate the model of sess: one that
// changes nothing there, and whose random numbers are a function of the graph's
// seeds and the step. The caller calls done after the evaluation.
func (t *tester) observe(ctx context.Context, sess session.Session, fetches []string) (_ session.Session, done func(), err error) {
	step, err := t.program.ReadStep(ctx, sess)
	if err != nil {
		return nil, nil, err
	}
	inner := sess
	if managed, ok := sess.(interface{ Unwrap() session.Session }); ok {
		inner = managed.Unwrap()
	}
	switch s := inner.(type) {
	case embedded:
		return t.embeddedObserver(s, inner, step), func() {}, nil
	case onServers:
		own, err := s.Observe(ctx, fetches, step)
		if err != nil {
			return nil, nil, fmt.Errorf("evaluating: %w", err)
		}
		if own != nil {
			return own, func() { own.Close() }, nil // what is left is the servers' to end
		}
	}
	return sess, func() {}, nil
}

// embedded is a session of this process.
type embedded interface{ Observer() *runtime.Session }

// onServers is a session on servers. Its observer is nil if an evaluation would change nothing.
type onServers interface {
	Observe(ctx context.Context, fetches []string, step int64) (session.Session, error)
}

func (t *tester) embeddedObserver(s embedded, of session.Session, step int64) session.Session {
	if t.observer == nil || t.observer.of != of {
		t.close()
		t.observer = &observer{of, s.Observer()}
	}
	t.observer.sess.SeedObserver(step)
	return t.observer.sess
}

// close ends the session of the newest evaluation.
func (t *tester) close() {
	if t.observer != nil {
		t.observer.sess.Close()
		t.observer = nil
	}
}
