package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// adopt has a chief look whose model is on the servers, and returns how long that has taken. It
// does not adopt one.
func adopt(t *testing.T, chief *Task, sess session.Session) time.Duration {
	t.Helper()
	began := time.Now()
	if adopted, err := chief.Adopt(t.Context(), sess); adopted || err != nil {
		t.Errorf("Adopt = %v, %v", adopted, err)
	}
	return time.Since(began)
}

// A chief waits for another run that is alive and makes no step: it evaluates, saves, is paused or waits for
// its workers, or it has only begun to put its model there.
func TestAwaitsALiveRun(t *testing.T) {
	const alive = 5 * time.Minute
	for name, start := range map[string]func(t *testing.T, chief *Task, sess session.Session){
		"it trains": begin,
		"it saves": func(t *testing.T, chief *Task, sess session.Session) {
			begin(t, chief, sess)
			release, err := sess.(remoteSession).HoldSteps(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(release)
		},
		"it initialises": func(t *testing.T, chief *Task, sess session.Session) {
			if err := chief.UntagModel(t.Context(), sess); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connect := chiefs(t)
				first, sess := connect(t.TempDir(), nil)
				start(t, first, sess)
				time.AfterFunc(alive, func() { sess.Close() })
				second, other := connect(t.TempDir(), nil)
				if took := adopt(t, second, other); took < alive || took > alive+2*otherIdle {
					t.Errorf("it has waited for %v; the other run was alive for %v", took, alive)
				}
			})
		})
	}
}

// Of two chiefs that find the servers free at the same time, one puts its model there, and the other
// makes another session.
func TestOneOfTwoClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		ends := make(chan error, 2)
		first, sess := connect(t.TempDir(), nil)
		second, other := connect(t.TempDir(), nil)
		adopt(t, first, sess)
		adopt(t, second, other)
		go func() { ends <- first.UntagModel(t.Context(), sess) }()
		go func() { ends <- second.UntagModel(t.Context(), other) }()
		one, two := <-ends, <-ends
		if won := one == nil; won == (two == nil) || !errors.Is(errors.Join(one, two), errClaimed) || !IsLost(errClaimed) {
			t.Errorf("the claims end with %v and %v", one, two)
		}
	})
}

// A chief that was frozen since its claim finds that of another in its place, and publishes nothing.
func TestPublishesNoOtherModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		first, sess := connect(t.TempDir(), nil)
		second, other := connect(t.TempDir(), nil)
		for _, c := range []struct {
			chief *Task
			sess  session.Session
		}{{first, sess}, {second, other}} {
			if err := c.chief.UntagModel(t.Context(), c.sess); err != nil {
				t.Fatal(err)
			}
			if _, err := c.sess.Run(t.Context(), nil, nil, c.chief.program.Init); err != nil {
				t.Fatal(err)
			}
		}
		if err := first.Publish(t.Context(), sess, nil, 0, false); !errors.Is(err, errClaimed) {
			t.Errorf("the first: %v, want %v", err, errClaimed)
		}
		if err := second.Publish(t.Context(), other, nil, 0, false); err != nil {
			t.Errorf("the second: %v", err)
		}
	})
}

// A chief that was killed after its claim does not wait for itself, and a patience that is shorter than the
// look at another run ends only the wait for one that is alive.
func TestAwaitsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect, logdir := chiefs(t), t.TempDir()
		first, sess := connect(logdir, nil)
		if err := first.UntagModel(t.Context(), sess); err != nil {
			t.Fatal(err)
		}
		sess.Close()
		again, its := connect(logdir, nil)
		if took := adopt(t, again, its); took > otherPoll {
			t.Errorf("it has waited for itself for %v", took)
		}
		begin(t, again, its)
		impatient := func(c *config.Config) { c.Cluster.PatienceSecs = config.Seconds(otherIdle.Seconds() / 2) }
		second, other := connect(t.TempDir(), impatient)
		if _, err := second.Adopt(t.Context(), other); !errors.Is(err, session.ErrDeadlineExceeded) {
			t.Errorf("the other run is alive: %v", err)
		}
		its.Close()
		if took := adopt(t, second, other); took > 2*otherIdle {
			t.Errorf("it has waited for %v for a run that has ended", took)
		}
	})
}

// A run that has lost its servers gets time to come back before the one that waits for it takes them.
func TestAwaitsARunThatLostItsServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		first, sess := connect(t.TempDir(), nil)
		begin(t, first, sess)
		second, other := connect(t.TempDir(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if adopted, err := second.Adopt(ctx, other); adopted || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Adopt = %v, %v", adopted, err)
		}
		sess.Close()
		if err := setTag(t.Context(), other, ""); err != nil { // as servers that were started again have none
			t.Fatal(err)
		}
		heard := hear(second)
		if took := adopt(t, second, other); took < otherIdle {
			t.Errorf("it has waited for %v, want %v", took, otherIdle)
		}
		if text := heard.log.String(); strings.Contains(text, "is replaced") {
			t.Errorf("the log has of servers without a model:\n%s", text)
		}
		if took := adopt(t, second, other); took > otherPoll {
			t.Errorf("after that it has waited for %v", took)
		}
	})
}
