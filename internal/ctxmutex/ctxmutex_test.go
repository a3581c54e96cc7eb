package ctxmutex

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestMutex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		var mu Mutex
		if err := mu.Lock(ctx); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() { waited <- mu.Lock(ctx) }()
		synctest.Wait()
		cancel(over)
		if err := <-waited; err != over {
			t.Errorf("a wait whose context has ended: %v, want %v", err, over)
		}
		go func() { waited <- mu.Lock(t.Context()) }()
		synctest.Wait()
		mu.Unlock()
		if err := <-waited; err != nil {
			t.Errorf("after the first has unlocked it: %v", err)
		}
		mu.Unlock()
		if err := mu.Lock(ctx); err != nil {
			t.Errorf("a free lock: %v", err)
		}
	})
}
