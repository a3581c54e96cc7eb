package checkpoint

import (
	"context"
	"sync"
)

// turn lets one caller at a time do what may take long, as a disk may. Its zero value is free.
type turn struct {
	once  sync.Once
	taken chan struct{}
}

// take waits until nobody else has the turn, or ctx ends. A free one is taken in any case.
func (t *turn) take(ctx context.Context) error {
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
		return ctx.Err()
	}
}

func (t *turn) leave() { <-t.taken }
