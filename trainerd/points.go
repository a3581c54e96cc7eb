package trainerd

import (
	"context"
	"sync/atomic"
	"time"
)

// pointsGrace is how long a save waits for the points of its step: longer than it takes to
// write them, but somebody may have asked the training for something else first.
const pointsGrace = 10 * time.Second

// points says for which steps the training has written the summaries. Those of a step come
// after it, and a run that continues from a checkpoint does not make them again.
type points struct {
	silent  atomic.Bool  // nobody says so by StepDone, as far as is known
	upTo    atomic.Int64 // the step of its last call, with its hooks
	begun   atomic.Int64 // calls of the training's session, and requested saves
	waiting atomic.Pointer[chan struct{}]
}

// written notes that the hooks of a step have returned.
func (p *points) written(step int64) {
	p.upTo.Store(step)
	p.silent.Store(false)
	p.over()
}

// begin notes that the training begins something after what it has written. A nil points
// notes nothing.
func (p *points) begin() {
	if p != nil {
		p.begun.Add(1)
		p.over()
	}
}

// end notes that the training writes nothing any more.
func (p *points) end() {
	p.silent.Store(true)
	p.over()
}

// over ends a waiting.
func (p *points) over() {
	if p.waiting.Load() == nil {
		return // the common case costs next to nothing
	}
	if ch := p.waiting.Swap(nil); ch != nil {
		close(*ch)
	}
}

// await returns when the summaries of a step are written, as far as that is known: where the
// training begins something else, which may wait for the caller, it has had its time. since
// is what begun was before.
func (p *points) await(ctx context.Context, step, since int64) {
	ch := make(chan struct{})
	p.waiting.Store(&ch)
	defer p.waiting.CompareAndSwap(&ch, nil)
	before := p.upTo.Load()
	if p.silent.Load() || step <= before || p.begun.Load() != since {
		return
	}
	timer := time.NewTimer(pointsGrace)
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
	case <-ctx.Done():
	}
	if p.upTo.Load() == before {
		p.silent.Store(true) // until it is heard
	}
}
