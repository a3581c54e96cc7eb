package child

import "context"

// A program that was killed is started again at once, even if it has saved a moment ago. Making a
// large checkpoint durable takes seconds, in which nothing would be trained. To continue from a
// checkpoint, the program only needs it to be intact, which is checked before the start. It is made
// durable and recorded, so that it counts and older ones may be deleted, while the program runs,
// like everything that it saves.

// leaveUnsettled examines what a failed program has saved and is not verified yet, and reports
// whether the next start may come before the verification. It may not if the run may end, or
// something has to be repaired first.
func (r *run) leaveUnsettled(ctx context.Context, e *Exit) bool {
	isEnd := e.Code == 0 || r.attempt.ending != nil
	if isEnd || r.attempt.nan != nil || len(r.savers) > 0 || r.nodes != nil {
		return false
	}
	intact, ok := r.store.Intact(ctx)
	if !ok {
		return false
	}
	r.intact, r.unsettled = intact, true
	for _, c := range intact {
		r.reach(c)
	}
	return true
}

// settle waits until everything that the program has saved is verified.
func (r *run) settle() {
	r.intact, r.unsettled = nil, false
	r.await("the last checkpoints to be verified", func() { r.refresh(true) })
}

// settleRest settles what a start has left, if it has left anything.
func (r *run) settleRest() {
	if r.unsettled {
		r.settle()
	}
}

// newest returns the newest checkpoint that a start may begin with.
func (r *run) newest(ctx context.Context) (c Checkpoint, ok bool) {
	if n := len(r.intact); n > 0 {
		known, any := r.usable()
		if c = r.intact[n-1]; !any || c.IsNewer(&known) {
			return c, true
		}
	}
	r.endRefresh() // which must not learn of a checkpoint at the same time
	c, ok, bad := r.store.BeforeRead(ctx, r.ceiling)
	r.skip(bad)
	return c, ok
}
