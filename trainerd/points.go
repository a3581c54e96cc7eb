package trainerd

import (
	"context"
	"sync/atomic"
	"time"
)

// pointsGrace is how long a save waits for the points of its step: longer than it takes to write
// them, because the training may have another request to serve first.
const pointsGrace = 10 * time.Second

// points says for which steps the training has written the summaries. The summaries of a step come
// after it, and a run that resumes from a checkpoint of that step does not make them again.
type points struct {
	silent  atomic.Bool  // nobody says so by StepDone, as far as is known
	upTo    atomic.Int64 // the step of its last call, with its hooks
	begun   atomic.Int64 // calls of the training's session, and requested saves
	waiting atomic.Pointer[chan struct{}]
}

// written records that the hooks of a step have returned.
func (p *points) written(step int64) {
	p.upTo.Store(step)
	p.silent.Store(false)
	p.over()
}

// begin records that the training begins something else after writing. A nil points records
// nothing.
func (p *points) begin() {
	if p != nil {
		p.begun.Add(1)
		p.over()
	}
}

// end records that the training writes nothing any more.
func (p *points) end() {
	p.silent.Store(true)
	p.over()
}

// over ends the waiting.
func (p *points) over() {
	if p.waiting.Load() == nil {
		return // the common case costs next to nothing
	}
	if ch := p.waiting.Swap(nil); ch != nil {
		close(*ch)
	}
}

// await returns when the summaries of a step are written, as far as that is known. It also returns
// when the training begins something else, which may wait for the caller. since is the value of
// begun before.
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
