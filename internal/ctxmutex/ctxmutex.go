// Package ctxmutex has a lock whose waiters give up when their context ends.
package ctxmutex

import (
	"context"
	"sync"
)

// Mutex lets one caller at a time do what may take long, as a disk may. Its zero value is unlocked.
type Mutex struct {
	once   sync.Once
	locked chan struct{}
}

// Lock waits until nobody else has the lock, or ctx ends. A free one is taken in any case.
func (m *Mutex) Lock(ctx context.Context) error {
	m.once.Do(func() { m.locked = make(chan struct{}, 1) })
	select {
	case m.locked <- struct{}{}:
		return nil
	default:
	}
	select {
	case m.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock gives up the lock.
func (m *Mutex) Unlock() { <-m.locked }
