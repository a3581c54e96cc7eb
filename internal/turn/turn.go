// Package turn has a lock whose waiters give up when their context ends.
package turn

import (
	"context"
	"sync"
)

// Turn lets one caller at a time do what may take long, as a disk may. Its zero value is free.
type Turn struct {
	once  sync.Once
	taken chan struct{}
}

// Take waits until nobody else has the turn, or ctx ends. A free one is taken in any case.
func (t *Turn) Take(ctx context.Context) error {
	t.once.Do(func() { t.taken = make(chan struct{}, 1) })
	select {
	case t.taken <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave gives up the turn.
func (t *Turn) Leave() { <-t.taken }
