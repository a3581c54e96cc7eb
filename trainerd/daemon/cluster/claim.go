package cluster

import (
	"context"
	"crypto/rand"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Two chiefs may find the servers free at the same time, for example if one script starts two jobs.
// So a chief writes a claim into the tag before it puts its model there. The last claim counts: the
// chief that has written it finds it there a moment later, and again when its model is complete.
const (
	claimMark = "claimed by " // begins the tag meanwhile, before the run's ID
	// settleTime is much longer than from a look that finds the servers free to the claim that follows.
	settleTime = 250 * time.Millisecond
)

// errClaimed ends the session of a chief that another was faster than.
var errClaimed = &session.OpError{Code: tfpb.Code_ABORTED, Message: "another run is about to put its model on the servers"}

// UntagModel ends the generation: the model is about to be replaced.
func (t *Task) UntagModel(ctx context.Context, sess session.Session) error {
	id, err := t.runID()
	if err != nil {
		return err
	}
	w, claim := watchOf(sess), claimMark+id+rand.Text()
	w.own("")
	if err := setTag(ctx, sess, claim); err != nil || w == nil {
		return err
	}
	w.owner.claim = claim
	w.beginLife()
	if !coord.Sleep(ctx, settleTime) {
		return context.Cause(ctx)
	}
	return w.checkClaim(ctx)
}

// checkClaim returns errClaimed if another chief has claimed the servers since this one has.
func (w *watch) checkClaim(ctx context.Context) error {
	if w == nil || w.owner.claim == "" {
		return nil
	}
	tag, err := readTag(ctx, w.sess)
	if err == nil && tag != w.owner.claim {
		err = errClaimed
	}
	return err
}
