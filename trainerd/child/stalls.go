package child

import (
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/internal/parallel"
)

// await calls f, and logs what it waits for if that takes long.
func (r *run) await(what string, f func()) {
	defer logging.Waiting(r.log.Warn, what)()
	defer r.saysWaiting(what)()
	f()
}

// saysWaiting tells the observer, and the senders of requests that cannot be taken, what the run
// waits for, until end is called.
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

// stallEvery is how often it is checked that the loop still turns, which it does at least with each
// scan for checkpoints.
const stallEvery = 10 * time.Second

// logStalls logs, until end is called, when the loop stands still, because a disk hangs: then
// neither reports nor signals are handled.
func (r *run) logStalls() (end func()) {
	seen, since := int64(-1), time.Now()
	return parallel.AtEach(max(stallEvery, 2*r.scanEvery()), func() {
		if now := r.turns.Load(); now != seen {
			seen, since = now, time.Now()
			return
		}
		r.log.Warn("still waiting", "for", "the disk of the logdir", "since", time.Since(since).Round(time.Second))
	})
}
