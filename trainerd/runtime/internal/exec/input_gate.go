package exec

import (
	"context"
	"sync"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
)

// inputGate finds a moment between steps at which the input of the graph -
// queues, readers, iterators - can be saved: no run has taken an element that
// it has not finished with. Runs that move the input are in the gate from their
// first step to their end; a cut lets no further ones in, and waits for those
// that are in it.
//
// A run that waits for other runs would hold up a cut without end. It does not
// count while it waits if the cut can do without its end: it waits to put
// elements into a queue as the last thing that it does, so they are saved as if
// they were in the queue; or it waits for elements and has taken none and
// changed nothing yet, so it will begin again after a restore. Where a run waits
// that has already taken something, runs are let in, for one of them will let
// it continue.
type inputGate struct {
	mu      sync.Mutex
	busy    int // runs in the gate that a cut must wait for
	stuck   int // those of them that wait for other runs
	cuts    int // cuts that wait or are under way
	cutting bool
	changed chan struct{} // closed at every change while there are cuts
}

// stuckTimeout is how long a cut waits when every run in the gate waits for
// others with elements in hand. Nothing may come to let them continue, for a
// program may save between two steps of its own.
const stuckTimeout = 2 * time.Second

// notify lets those look again who wait. The caller holds g.mu.
func (g *inputGate) notify() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// next returns a channel that is closed at the next change. The caller holds
// g.mu.
func (g *inputGate) next() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// enter lets a run in. It fails only when ctx is done.
func (g *inputGate) enter(ctx context.Context) error {
	g.mu.Lock()
	for g.cutting || g.cuts > 0 && g.stuck == 0 {
		changed := g.next()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		g.mu.Lock()
	}
	g.busy++
	g.mu.Unlock()
	return nil
}

// join lets in what a run in the gate leaves behind.
func (g *inputGate) join() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy++
}

func (g *inputGate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.notify()
}

// park notes that a run waits for others; a cut can do without the end of one
// that is clear.
func (g *inputGate) park(clear bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if clear {
		g.busy--
	} else {
		g.stuck++
	}
	g.notify()
}

// unpark ends the wait, after any cut that is under way.
func (g *inputGate) unpark(clear bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.cutting {
		changed := g.next()
		g.mu.Unlock()
		<-changed // a cut only copies
		g.mu.Lock()
	}
	if clear {
		g.busy++
	} else {
		g.stuck--
	}
	g.notify()
}

// cut waits until the input can be saved, and keeps runs from moving it until
// end is called. It reports false if no such moment came: then the input is
// being moved meanwhile.
func (g *inputGate) cut(ctx context.Context) (end func(), ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cuts++
	for g.busy > 0 || g.cutting {
		if err, ok := g.await(ctx); err != nil || !ok {
			g.cuts--
			g.notify()
			return func() {}, false, err
		}
	}
	g.cutting = true
	return g.endCut, true, nil
}

// await waits for a change. It reports false when there was none for long, and
// all runs wait for others. The caller holds g.mu, which is released meanwhile.
func (g *inputGate) await(ctx context.Context) (error, bool) {
	changed, stuck := g.next(), g.busy == g.stuck && !g.cutting
	g.mu.Unlock()
	defer g.mu.Lock()
	var late <-chan time.Time
	if stuck {
		timer := time.NewTimer(stuckTimeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-changed:
		return nil, true
	case <-ctx.Done():
		return ctx.Err(), false
	case <-late:
		return nil, false
	}
}

func (g *inputGate) endCut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cutting = false
	g.cuts--
	g.notify()
}

// gatePassage is a run's way through the gate.
type gatePassage struct {
	in     bool
	nested bool // part of another run, which is in the gate
	wrote  bool // the run has changed what cannot be undone
	taken  []TakenInput
	late   time.Time // when the end of the run's context was first seen
}

// TakenInput is what a run has taken from one object.
type TakenInput interface {
	// GiveBack returns it to the object, of a run that was cancelled.
	GiveBack()
}

// take notes what a run has taken, in case it is cancelled.
func (r *run) take(t TakenInput) {
	if r.pass.nested || !r.pass.in {
		r.pass.wrote = true
		return
	}
	r.pass.taken = append(r.pass.taken, t)
}

// moved reports whether the run has done anything to the input.
func (p *gatePassage) moved() bool { return p.nested || p.in && (p.wrote || len(p.taken) > 0) }

// finishGrace is how long a run that has moved the input may continue when its
// context has ended: to break it off would lose elements.
const finishGrace = 5 * time.Second

// mayFinish reports whether a run whose context has ended is to continue.
func (r *run) mayFinish() bool {
	if !r.pass.moved() {
		return false
	}
	if r.pass.late.IsZero() {
		r.pass.late = time.Now()
	}
	return time.Since(r.pass.late) < finishGrace
}

// enterGate lets a run of a plan that moves the input into the gate.
func (r *run) enterGate(p *Plan) error {
	if p.access&TakesInput == 0 {
		return nil
	}
	if err := r.sess.res.gate.enter(r.ctx); err != nil {
		return r.cancelled(&step{})
	}
	r.pass.in = true
	return nil
}

// leaveGate ends the run's way through the gate. A run that was cancelled gives
// back what it took, if it has changed nothing.
func (r *run) leaveGate(err error) {
	if !r.pass.in {
		return
	}
	if err != nil && !r.pass.wrote && isCancelled(err) {
		for i := len(r.pass.taken) - 1; i >= 0; i-- {
			r.pass.taken[i].GiveBack()
		}
	}
	clear(r.pass.taken)
	r.pass.taken = r.pass.taken[:0]
	r.pass.in = false
	r.sess.res.gate.leave()
}

func isCancelled(err error) bool {
	code := AsOpError(err).Code
	return code == tfpb.Code_CANCELLED || code == tfpb.Code_DEADLINE_EXCEEDED
}

// Take notes what the call has taken.
func (c *KernelContext) Take(t TakenInput) { c.run.take(t) }

// parked calls wait while the run counts as one that waits for others.
func (c *KernelContext) parked(wait func() error) error {
	p := &c.run.pass
	if !p.in && !p.nested {
		return wait()
	}
	last := c.putsLast()
	free := last || !p.nested && !p.wrote && len(p.taken) == 0
	if last && len(c.run.drawn) > 0 {
		// A cut takes the run as one that has ended.
		c.run.sess.state.Lock()
		c.run.settleStreams()
		c.run.sess.state.Unlock()
	}
	c.run.sess.res.gate.park(free)
	defer c.run.sess.res.gate.unpark(free)
	return wait()
}

// putsLast reports whether the call puts elements into a queue, after which
// nothing else of its run has an effect.
func (c *KernelContext) putsLast() bool {
	if !puts[firstName(c.step.op)] || c.run != &c.f.run {
		return false
	}
	steps := c.f.plan.steps
	for i := len(steps) - 1; i >= 0; i-- {
		if &steps[i] == c.step {
			return true
		}
		if steps[i].flags&(WritesState|TakesInput|Blocking) != 0 {
			return false
		}
	}
	return false
}

// puts are the ops that put elements into queues and staging areas.
var puts = map[string]bool{"QueueEnqueue": true, "QueueEnqueueMany": true, "Stage": true}
