package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// frozenOnce is a session on servers that are frozen for a while, once, before they look or after that.
type frozenOnce struct {
	session.Session
	at    time.Time // from when on, zero once they were
	after bool
}

func (s *frozenOnce) Run(ctx context.Context, feeds program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	frozen := !s.at.IsZero() && !time.Now().Before(s.at)
	if frozen {
		s.at = time.Time{}
	}
	if frozen && !s.after {
		time.Sleep(2 * otherIdle)
	}
	out, err := s.Session.Run(ctx, feeds, fetches, targets)
	if frozen && s.after {
		time.Sleep(2 * otherIdle)
	}
	return out, err
}

// TestAwaitsAnotherRunOnFrozenServers has two runs on servers that are frozen for long: that the one which
// trains has given no sign meanwhile does not show that it has ended.
func TestAwaitsAnotherRunOnFrozenServers(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			connect := chiefs(t)
			first, sess := connect(t.TempDir(), nil)
			begin(t, first, sess)
			second, other := connect(t.TempDir(), nil)
			const alive = 4 * otherIdle
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				time.Sleep(alive)
				sess.Close() // as its process ends
			}()
			defer func() { <-ended }()
			began := time.Now()
			_, err := second.Adopt(t.Context(), &frozenOnce{other, began.Add(5 * time.Second), after})
			if took := time.Since(began); err != nil || took < alive+otherIdle/2 {
				t.Errorf("after %v: Adopt = %v after %v; the other run gave signs for %v", after, err, took, alive)
			}
		})
	}
}
