package serve

import (
	"context"
	"testing"
	"testing/synctest"
)

// Bodies are in memory together up to a number of bytes, however many they are; who waits for a
// lot is not passed by those who want less, and nobody has room that he cannot use.
func TestBodyRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBodyRoom(64)
		half, ok := r.take(t.Context(), 32)
		if !ok {
			t.Fatal("half of the room is not to be had")
		}
		var order []int64
		ended := make(chan struct{})
		for _, n := range []int64{1000, 1, 9} {
			go func() {
				leave, ok := r.take(t.Context(), n)
				if order = append(order, n); ok {
					leave()
				}
				ended <- struct{}{}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := r.take(ctx, 64); ok || len(order) > 0 {
			t.Errorf("room for %v next to a half", order)
		}
		half()
		for range 3 {
			<-ended
		}
		if order[0] != 1000 || len(r.pieces) != 0 {
			t.Errorf("%v had room, %d pieces are taken", order, len(r.pieces))
		}
	})
}
