package child

import (
	"context"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
)

// awaitParts waits for the other nodes, which may still be writing their parts of the last
// checkpoint of a start that has ended here. The next start comes once they have ended this one. A
// stop meanwhile applies to them, too.
func (r *run) awaitParts(ctx context.Context) {
	if ctx.Err() == nil {
		r.awaitNodes(ctx, r.start(), r.endTime(), false, r.takeForwarded)
	}
	if ctx.Err() != nil {
		limit := r.endTime()
		if e := r.attempt.ending; e != nil {
			limit = max(r.grace()*9/10-time.Since(e.begun), newsTime) // the rest is for what follows
		}
		r.awaitNodes(r.ectx, r.start(), limit, true, r.takeForwarded)
	}
	if r.lost == nil {
		r.nodes.dropReports()
	}
}

// awaitEarlier waits for the nodes on which an earlier chief's program runs, and takes over what it
// has reported and saved there, for which that chief may have had no time. After a stop, the rest
// is left to the next chief.
func (r *run) awaitEarlier(ctx context.Context) {
	if r.nodes == nil {
		return
	}
	job := *r.earlier
	r.awaitNodes(ctx, job.start, r.endTime(), false, func(bool) {})
	if r.lost != nil {
		return // the reports are another chief's
	}
	r.takeOver(job)
	if ctx.Err() == nil || r.busyNode(job.start) < 0 {
		r.earlier = nil
		r.events.sync(r.ectx) // the marks of what was taken end the points that were there before
		r.nodes.dropReports()
	}
	r.refresh(true)
	if r.paused { // meanwhile
		r.wait(ctx, 0)
	}
}

// endTime is how long it may take until all nodes have ended a start: they learn of the end, give
// the program its grace period, and kill what is left of it.
func (r *run) endTime() time.Duration { return r.grace() + newsTime + leftoverGrace }

// othersEnd is what a chief waits for between two starts.
const othersEnd = "the program to end on the other nodes"

// awaitNodes waits until the program of a start has ended on the nodes that had begun it. The limit
// counts from when they can know of the end, which may not be on the disk yet. take handles what
// the program reports there meanwhile.
func (r *run) awaitNodes(ctx context.Context, s start, limit time.Duration, know bool, take func(last bool)) {
	if r.nodes == nil {
		return
	}
	defer logging.Waiting(r.log.Warn, othersEnd)()
	defer r.saysWaiting(othersEnd)()
	over := time.NewTimer(limit)
	defer over.Stop()
	poll := time.NewTicker(nodesPoll)
	defer poll.Stop()
	for {
		if r.isLost(); r.lost != nil { // else it is there, or made again, where nodes tell their states again
			return
		}
		node := r.busyNode(s)
		if take(node < 0); node < 0 && time.Since(r.remade) > newsTime {
			return
		}
		select {
		case <-ctx.Done():
			return
		case q := <-r.inbox.requests:
			q.answer <- q.do(r)
		case <-over.C:
			take(true)
			r.log.Warn("a node has not ended the program in time; continuing without it", "node", node, "waited", limit)
			return
		case <-poll.C:
			if sent := r.nodes.resend(); !sent && !know {
				over.Reset(limit)
			}
		}
	}
}

// endedWellOnNodes reports whether the end of the program has interrupted nothing on any other
// node.
func (r *run) endedWellOnNodes() bool {
	if r.nodes == nil {
		return true
	}
	for _, state := range r.nodes.others() {
		if state.start == r.start() && (state.Phase != nodeEnded || !endsWell(&Exit{Code: state.Code})) {
			return false
		}
	}
	return true
}

// busyNode returns a node on which the program of a start is alive, -1 for none.
func (r *run) busyNode(s start) int {
	for node, state := range r.nodes.others() {
		if state.start == s && state.Phase != nodeEnded {
			return node
		}
	}
	return -1
}

// lookAtNodes ends the program if it has ended on another node, or is about to: its ranks cannot
// continue without each other.
func (r *run) lookAtNodes() {
	if r.nodes == nil || r.lost != nil {
		return
	}
	if r.nodes.resend(); r.attempt.ending != nil {
		return
	}
	for node, state := range r.nodes.others() {
		if state.start != r.start() || state.Phase == nodeRunning || state.Phase == nodeEnded && state.Cause == Completed {
			continue
		}
		r.attempt.broken = &state
		if state.Phase == nodeEnding {
			r.log.Warn("a node was asked to stop; the program is started again on all nodes", "node", node, "host", state.Host)
			r.terminate()
			return
		}
		r.log.Warn("the program has ended on a node; it is started again on all nodes", "node", node, "host", state.Host, "exit", state.Exit)
		r.attempt.ending = r.newEnding() // a save would wait for the node
		r.enter(toldProgram)
		return
	}
}

// causeOnNodes returns why a start has ended on all nodes, given the cause on this one, which may
// be another node's end.
func (r *run) causeOnNodes(e *Exit, here Cause) Cause {
	b := r.attempt.broken
	switch {
	case b == nil || here == Stopped:
		return here // else it was asked to end, and exit code 0 says no more than that
	case b.Phase == nodeEnding || b.Cause == Stopped:
		return Preempted
	}
	e.Code, e.Signal = b.Code, 0
	return b.Cause
}
