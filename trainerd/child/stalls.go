package child

import (
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/internal/parallel"
)

// await calls f, and the log says what it waits for while that takes long.
func (r *run) await(what string, f func()) {
	defer logging.Waiting(r.log.Warn, what)()
	defer r.saysWaiting(what)()
	f()
}

// saysWaiting tells the observer, and those whose requests are not taken, what is waited for, until end is
// called.
func (r *run) saysWaiting(what string) (end func()) {
	before := r.inbox.waits.Swap(&what)
	r.observer.Waits(what)
	return func() {
		r.inbox.waits.Store(before)
		if before == nil {
			before = new(string)
		}
		r.observer.Waits(*before)
	}
}

// stallEvery is how often it is seen whether the loop still turns, which it does with each
// look for checkpoints.
const stallEvery = 10 * time.Second

// sayStalls has the log say that the loop stands still, until end is called: a disk that
// hangs holds it up. Neither reports nor signals are handled then.
func (r *run) sayStalls() (end func()) {
	seen, since := int64(-1), time.Now()
	return parallel.AtEach(max(stallEvery, 2*r.lookEvery()), func() {
		if now := r.turns.Load(); now != seen {
			seen, since = now, time.Now()
			return
		}
		r.log.Warn("still waiting", "for", "the disk of the logdir", "since", time.Since(since).Round(time.Second))
	})
}
