package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		var turn Turn
		if err := turn.Take(ctx); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		go func() { waited <- turn.Take(ctx) }()
		synctest.Wait()
		cancel(over)
		if err := <-waited; err != over {
			t.Errorf("a wait whose context has ended: %v, want %v", err, over)
		}
		go func() { waited <- turn.Take(t.Context()) }()
		synctest.Wait()
		turn.Leave()
		if err := <-waited; err != nil {
			t.Errorf("after the first has left: %v", err)
		}
		turn.Leave()
		if err := turn.Take(ctx); err != nil {
			t.Errorf("a free turn: %v", err)
		}
	})
}
