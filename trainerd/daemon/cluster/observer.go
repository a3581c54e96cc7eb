package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// blueprint is what a session on servers was made from.
type blueprint struct {
	def    *tfpb.GraphDef // not changed after the session was made
	config *tfpb.ConfigProto
	copies string // the container of the variables that an evaluation may change
}

// copiesOf returns the container for a logdir. Its name stays the same, so that
// the servers keep one copy however often a job is started.
func copiesOf(logdir string) string {
	sum := sha256.Sum256([]byte(config.Absolute(logdir)))
	return "trainerd-evaluation-" + hex.EncodeToString(sum[:8])
}

// observer is a session that evaluates the model of another one and leaves no
// trace in it. Servers keep the streams of random ops for each session by
// itself, so a new session draws from new streams.
type observer struct {
	remoteSession
	copy []string // ops that give the copies of variables the values of the model
}

// Run evaluates on copies that are made again before each run, so that each sees
// the model, as an observer of the embedded runtime does.
func (o observer) Run(ctx context.Context, feeds program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if len(o.copy) > 0 {
		if _, err := o.remoteSession.Run(ctx, nil, nil, o.copy); err != nil {
			return nil, fmt.Errorf("copying the variables that the evaluation assigns: %w", err)
		}
	}
	return o.remoteSession.Run(ctx, feeds, fetches, targets)
}

// Close closes the session and leaves the connection to the one it was made from.
func (o observer) Close() error { return o.Session.Session.Close() }

// Observe returns a session in which to evaluate tensors of the model at a step
// so that this changes nothing in s: its random numbers are a function of the
// graph's seeds and the step, and the variables that an evaluation assigns are
// copies. It is nil if evaluating them in s changes nothing either.
func (s remoteSession) Observe(ctx context.Context, fetches []string, step int64) (session.Session, error) {
	return s.made.observe(ctx, s.watch, fetches, step)
}

// Observe is as [remoteSession.Observe].
func (s remoteStore) Observe(ctx context.Context, fetches []string, step int64) (session.Session, error) {
	return s.made.observe(ctx, s.watch, fetches, step)
}

func (b *blueprint) observe(ctx context.Context, of *watch, fetches []string, step int64) (session.Session, error) {
	traces := findTraces(b.def, fetches)
	if len(traces.random) == 0 && len(traces.written) == 0 {
		return nil, nil
	}
	def, copying := traces.withoutTrace(b.def, b.copies, step)
	var sess *remote.Session
	err := of.guard(ctx, "making a session for the evaluation", func(ctx context.Context) (err error) {
		sess, err = of.client.NewSession(ctx, def, b.config)
		return err
	})
	if err != nil {
		return nil, err
	}
	own := *of
	own.sess, own.tag = sess, ""
	return observer{remoteSession{&target.Session{Session: sess, Client: of.client}, &own, b}, copying}, nil
}
