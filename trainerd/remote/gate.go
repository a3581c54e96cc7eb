package remote

import (
	"context"
	"sync"
)

// gate lets steps through side by side, and a copy of the variables only when
// no step is inside. A copy that waits holds new steps back.
type gate struct {
	mu      sync.Mutex
	inside  int  // steps
	copying bool // or waiting to
	changed chan struct{}
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

// enter lets a step in.
func (g *gate) enter(ctx context.Context) error {
	return g.wait(ctx, func() bool {
		if g.copying {
			return false
		}
		g.inside++
		return true
	})
}

// leave is called after the step.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.signal()
}

// exclude returns when no step is inside, and keeps new ones out until open.
func (g *gate) exclude(ctx context.Context) error {
	err := g.wait(ctx, func() bool {
		if g.copying {
			return false
		}
		g.copying = true
		return true
	})
	if err != nil {
		return err
	}
	if err := g.wait(ctx, func() bool { return g.inside == 0 }); err != nil {
		g.open()
		return err
	}
	return nil
}

// open ends what exclude began.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.copying = false
	g.signal()
}

// wait returns when try, which is called with g.mu held, gives true.
func (g *gate) wait(ctx context.Context, try func() bool) error {
	for {
		g.mu.Lock()
		done, changed := try(), g.changed
		g.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// signal wakes all who wait. The caller holds g.mu.
func (g *gate) signal() {
	close(g.changed)
	g.changed = make(chan struct{})
}
