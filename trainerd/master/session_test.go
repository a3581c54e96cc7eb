package master

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnswersBeforeTheDeadline covers callers with and without a deadline of
// their own: the server's answer must come before gRPC resets the call.
func TestAnswersBeforeTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		deadline     time.Duration // of the caller; 0 is none
		milliseconds int64         // RunOptions.timeout_in_ms
		want         time.Duration
	}{
		"none":         {0, 0, time.Hour},
		"options":      {0, 100, 100 * time.Millisecond},
		"both":         {100 * time.Millisecond, 100, 90 * time.Millisecond},
		"options less": {time.Minute, 100, 100 * time.Millisecond},
		"deadline":     {time.Minute, 0, time.Minute - 100*time.Millisecond},
		"past":         {-time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				if c.deadline != 0 {
					deadline, cancel := context.WithTimeout(ctx, c.deadline)
					defer cancel()
					ctx = deadline
				}
				began := time.Now()
				ctx, cancel := New(nil).within(ctx, c.milliseconds)
				defer cancel()
				<-ctx.Done()
				if got := time.Since(began); got != c.want {
					t.Errorf("ended after %v, want %v", got, c.want)
				}
			})
		})
	}
}
