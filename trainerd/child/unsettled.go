package child

import "context"

// A program that was killed is started again at once, also where it has saved a moment ago. To make a large
// checkpoint durable takes seconds, in which nothing would be trained. What the program needs to continue from
// one is that it is intact, which a look shows before the start; that it is durable, and recorded, so that it
// counts and others may go, is found out while the program runs, as of all that it saves.

// leaveUnsettled looks at what a program that has failed has saved and what is not verified yet, and reports
// whether the next start may come before that is. Where the run may end, or something is to be mended, it is not.
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

// settle waits until all that the program has saved is verified.
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
