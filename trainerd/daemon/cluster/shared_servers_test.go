package cluster

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/session"
)

// said is what a task has in its log, and what it says that it waits for.
type said struct {
	mu    sync.Mutex
	log   strings.Builder
	waits []string
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

// hear has a task say what it says here.
func hear(task *Task) *said {
	s := new(said)
	task.log = slog.New(slog.NewTextHandler(s, nil))
	task.waiting = func(reason string) { s.waits = append(s.waits, reason) }
	return s
}

// A chief that waits for another run says so as long as it does, and its log has it once.
func TestSaysThatItAwaits(t *testing.T) {
	for name, tt := range map[string]struct {
		start func(t *testing.T, chief *Task, sess session.Session)
		step  int64
	}{
		"step 7": {func(t *testing.T, chief *Task, sess session.Session) {
			begin(t, chief, sess)
			step := ckptfmt.NamedTensor{Name: chief.program.StepKey, Tensor: ckptfmt.Scalar(int64(7))}
			if err := sess.(remoteStore).Restore(t.Context(), []ckptfmt.NamedTensor{step}); err != nil {
				t.Fatal(err)
			}
		}, 7},
		"step 0": {func(t *testing.T, chief *Task, sess session.Session) { // its model is not complete
			if err := chief.UntagModel(t.Context(), sess); err != nil {
				t.Fatal(err)
			}
		}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			connect := chiefs(t)
			first, sess := connect(t.TempDir(), func(c *config.Config) { c.Cluster.CheckpointVia = "client" })
			tt.start(t, first, sess)
			time.AfterFunc(time.Minute, func() { sess.Close() })
			second, other := connect(t.TempDir(), nil)
			heard := hear(second)
			adopt(t, second, other)
			last := len(heard.waits) - 1
			if last < 2 || heard.waits[last] != "" || slices.ContainsFunc(heard.waits[:last], func(s string) bool { return !strings.HasSuffix(s, " and is at "+name) }) {
				t.Errorf("it has said that it waits for %q", heard.waits)
			}
			if n := strings.Count(heard.log.String(), "waiting for another run"); n != 1 {
				t.Errorf("the log has it %d times:\n%s", n, heard.log.String())
			}
		})
	}
}

// A chief that has an ID of its own waits for another's model as well, and for no longer than the other gives
// signs of life; after that it waits for nobody.
func TestAwaitsWithAnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		first, sess := connect(t.TempDir(), nil)
		begin(t, first, sess)
		time.AfterFunc(30*time.Second, func() { sess.Close() })
		second, other := connect(t.TempDir(), nil)
		if _, err := second.runID(); err != nil {
			t.Fatal(err)
		}
		if took := adopt(t, second, other); took < 30*time.Second {
			t.Errorf("it has waited for %v for a run that was alive for 30 s", took)
		}
		if took := adopt(t, second, other); took != otherIdle {
			t.Errorf("it has waited for %v for a run that has ended", took)
		}
		if err := setTag(t.Context(), other, ""); err != nil {
			t.Fatal(err)
		}
		if took := adopt(t, second, other); took != 0 {
			t.Errorf("it has waited for %v for nobody", took)
		}
	})
}

// The model of an older release has no signs of life.
func TestAwaitsOlderRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chief, sess := chiefs(t)(t.TempDir(), nil)
		if err := setTag(t.Context(), sess, "another run\nits model"); err != nil {
			t.Fatal(err)
		}
		if took := adopt(t, chief, sess); took != otherIdle {
			t.Errorf("it has waited for %v", took)
		}
	})
}

// failing is a session that fails where one of the names is fetched.
type failing struct {
	session.Session
	name string
}

var errBroken = &session.OpError{Code: tfpb.Code_INTERNAL, Message: "broken"}

func (f failing) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if slices.Contains(fetches, f.name) {
		return nil, errBroken
	}
	return f.Session.Run(ctx, feeds, fetches, targets)
}

// Servers that do not say whose model they have are not taken for free ones.
func TestServersThatDoNotSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		first, sess := connect(t.TempDir(), nil)
		begin(t, first, sess)
		second, other := connect(t.TempDir(), nil)
		for _, name := range []string{tagHas, tagRead, lifeHas, lifeRead} {
			if seen, err := second.checkOther(t.Context(), failing{other, name}); !errors.Is(err, errBroken) {
				t.Errorf("without %s: %+v, %v", name, seen, err)
			}
			if err := second.awaitOther(t.Context(), failing{other, name}); !errors.Is(err, errBroken) {
				t.Errorf("without %s: %v", name, err)
			}
		}
		if err := os.Mkdir(filepath.Join(second.config.Logdir, runIDFile), 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := second.checkOther(t.Context(), other); err == nil {
			t.Error("an ID that cannot be read is none")
		}
		if err := second.UntagModel(t.Context(), other); err == nil {
			t.Error("a model is claimed for a run whose ID cannot be read")
		}
	})
}

// A claim that cannot be made, or that is not settled, is none.
func TestClaimFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		chief, sess := connect(t.TempDir(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), settleTime/2)
		defer cancel()
		if err := chief.UntagModel(ctx, sess); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stop while the claim settles: %v", err)
		}
		begin(t, chief, sess)
		w := watchOf(sess)
		sess.Close()
		if err := chief.UntagModel(t.Context(), sess); err == nil {
			t.Error("a closed session claims the servers")
		}
		if err := w.checkClaim(t.Context()); err == nil || errors.Is(err, errClaimed) {
			t.Errorf("a claim that cannot be read: %v", err)
		}
		w.own("an ID")
		if err := w.checkModel(t.Context()); err == nil || errors.Is(err, ErrReplaced) {
			t.Errorf("a model that cannot be looked at: %v", err)
		}
	})
	var none *watch // of a session in this process
	none.own("an ID")
	none.beginLife()
	if err := errors.Join(none.checkModel(t.Context()), none.checkClaim(t.Context())); err != nil {
		t.Error(err)
	}
}

// takenOver returns the watch of a chief whose model another run has replaced, and what the chief logs.
func takenOver(t *testing.T) (w *watch, heard *said) {
	t.Helper()
	connect := chiefs(t)
	chief, sess := connect(t.TempDir(), nil)
	begin(t, chief, sess)
	w = watchOf(sess)
	w.endLife() // else it looks all the time
	heard = hear(chief)
	w.log = chief.log
	other, its := connect(t.TempDir(), nil)
	begin(t, other, its)
	return w, heard
}

// A chief looks whose model is there before a call after a long rest, or where the clock was set back, and not
// before each.
func TestLooksAfterARest(t *testing.T) {
	for rest, looks := range map[time.Duration]bool{-1: true, 0: false, longRest - 1: false, longRest: true} {
		synctest.Test(t, func(t *testing.T) {
			w, heard := takenOver(t)
			w.owner.called.Store(time.Now().Add(-rest).UnixNano())
			if err := w.checkRested(t.Context()); errors.Is(err, ErrReplaced) != looks || !looks && err != nil {
				t.Errorf("after %v: %v", rest, err)
			}
			w.owner.called.Store(0)
			for range 2 {
				if err := w.checkRested(t.Context()); !errors.Is(err, ErrReplaced) {
					t.Errorf("after a long rest: %v", err)
				}
			}
			if n := strings.Count(heard.log.String(), "another run has put its model"); n != 1 {
				t.Errorf("the log has it %d times:\n%s", n, heard.log.String())
			}
		})
	}
}

// While nobody knows yet whose model is there after a rest, no call begins: the next looks, too.
func TestLooksUntilItIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := takenOver(t)
		w.owner.called.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.checkRested(ctx); err == nil || errors.Is(err, ErrReplaced) {
			t.Errorf("a look that does not come to an end: %v", err)
		}
		if err := w.checkRested(t.Context()); !errors.Is(err, ErrReplaced) {
			t.Errorf("the call after that: %v", err)
		}
	})
}

// The ID is in the logdir, by itself in one of an older release. One that cannot be written is none.
func TestRunIDFile(t *testing.T) {
	t.Parallel()
	of := func(dir string) *Task {
		c := config.Default()
		c.Logdir = dir
		return &Task{config: c}
	}
	none := filepath.Join(t.TempDir(), "none")
	if id, err := of(none).runID(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a logdir: %q, %v", id, err)
	}
	dir := t.TempDir()
	name, task := filepath.Join(dir, runIDFile), of(dir)
	if err := task.KeepRunID(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("a run without an ID has one")
	}
	if err := os.WriteFile(name, []byte("ab12\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if id, err := task.runID(); id != "ab12\n" || err != nil {
		t.Errorf("the ID of an older release: %q, %v", id, err)
	}
	task.id.Store("cd34\n")
	if err := task.KeepRunID(); err != nil {
		t.Error(err)
	}
	if id, err := task.readID(); id != "ab12\n" || err != nil {
		t.Errorf("kept is %q, %v; it was there", id, err)
	}
	if err := errors.Join(os.Remove(name), task.KeepRunID()); err != nil {
		t.Error(err)
	}
	if id, err := task.readID(); id != "cd34\n" || err != nil {
		t.Errorf("kept is %q, %v", id, err)
	}
	if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o777)); err != nil {
		t.Fatal(err)
	}
	if id, err := task.runID(); id != "" || err == nil {
		t.Errorf("an ID that cannot be read: %q, %v", id, err)
	}
	gone := of(none)
	gone.id.Store("cd34\n")
	if err := gone.KeepRunID(); err == nil {
		t.Error("an ID is kept in a logdir that is not there")
	}
}

// A chief whose model takes longer to make than it gives signs of life is not taken for replaced by its own claim.
func TestClaimsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chief, sess := chiefs(t)(t.TempDir(), nil)
		begin(t, chief, sess)
		if err := chief.UntagModel(t.Context(), sess); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * lifeEvery)
		if _, err := sess.Run(t.Context(), nil, nil, chief.program.Init); err != nil {
			t.Errorf("a call while the model is made: %v", err)
		}
		if err := chief.Publish(t.Context(), sess, nil, 0, false); err != nil {
			t.Error(err)
		}
		if err := chief.UntagModel(t.Context(), failing{sess, ""}); err != nil {
			t.Errorf("with a session that nothing watches: %v", err)
		}
	})
}

// A chief that makes no steps, as in a pause, notices all the same that another run has replaced its model.
func TestNoticesAnotherModelAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		chief, sess := connect(t.TempDir(), nil)
		begin(t, chief, sess)
		time.Sleep(3 * lifeEvery)
		if watchOf(sess).owner.taken.Load() {
			t.Error("its own model is taken for another's")
		}
		other, its := connect(t.TempDir(), nil)
		begin(t, other, its)
		time.Sleep(2 * lifeEvery)
		if !watchOf(sess).owner.taken.Load() {
			t.Error("nothing is noticed")
		}
	})
}
