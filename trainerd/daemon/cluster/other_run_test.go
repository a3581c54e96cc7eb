package cluster

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/session"
)

// chiefs makes chiefs of runs on one server, for the time of a bubble.
func chiefs(t *testing.T) func(logdir string, change func(*config.Config)) (*Task, session.Session) {
	network := sessiontest.NewPipes()
	server := master.New(nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(network) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	built, err := model.Build(model.Config{Family: "softmax", Inputs: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	return func(logdir string, change func(*config.Config)) (*Task, session.Session) {
		t.Helper()
		c := config.Default()
		c.Master, c.Logdir = "grpc://server:1", logdir
		if change != nil {
			change(c)
		}
		chief := NewTask(c, program.OfFamily(built), slog.New(slog.DiscardHandler), nil)
		chief.Dial = network.Dial
		sess, err := chief.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sess.Close() })
		return chief, sess
	}
}

// begin puts a new model on the servers, as a session of a chief does.
func begin(t *testing.T, chief *Task, sess session.Session) {
	t.Helper()
	err := chief.UntagModel(t.Context(), sess)
	if err == nil {
		_, err = sess.Run(t.Context(), nil, nil, chief.program.Init)
	}
	if err == nil {
		err = chief.Publish(t.Context(), sess, nil, 0, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A chief waits for another run that trains its model on the same servers. One that has
// ended has left it there.
func TestAwaitsAnotherRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := chiefs(t)
		first, sess := connect(t.TempDir(), func(c *config.Config) { c.Cluster.CheckpointVia = "client" })
		begin(t, first, sess)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const steps, pause = 5, 8 * time.Second
		go func() {
			for range steps {
				time.Sleep(pause)
				step := ckptfmt.NamedTensor{Name: first.program.StepKey, Tensor: ckptfmt.Scalar(time.Now().Unix())}
				if err := sess.(remoteStore).Restore(ctx, []ckptfmt.NamedTensor{step}); err != nil {
					t.Error(err)
				}
			}
			sess.Close() // as its process ends
		}()
		second, other := connect(t.TempDir(), nil)
		began := time.Now()
		adopted, err := second.Adopt(t.Context(), other)
		if took := time.Since(began); adopted || err != nil || took < steps*pause+otherIdle || took > steps*pause+2*otherIdle {
			t.Errorf("Adopt = %v, %v after %v; the other run trained for %v", adopted, err, took, steps*pause)
		}
	})
}

// A chief saves no model of another run, nor one that another run is about to replace.
func TestSavesNoOtherModel(t *testing.T) {
	for _, via := range []string{"client", "server"} {
		for _, half := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				connect, logdir := chiefs(t), t.TempDir()
				chief, sess := connect(logdir, func(c *config.Config) { c.Cluster.CheckpointVia = via })
				saver := &checkpoint.Saver{MetaGraph: chief.program.Meta}
				save := func(step int64) error {
					cut, err := saver.Snapshot(t.Context(), sess, chief.program.StepKey)
					if err != nil {
						return err
					}
					defer cut.Close()
					_, err = saver.Write(t.Context(), cut, filepath.Join(logdir, "model.ckpt"), step)
					return err
				}
				begin(t, chief, sess)
				if err := save(1); err != nil {
					t.Fatalf("via %s: %v", via, err)
				}
				begin(t, chief, sess)
				if err := save(3); err != nil {
					t.Errorf("via %s: after that: %v", via, err)
				}
				other, its := connect(t.TempDir(), nil)
				if half {
					if err := other.UntagModel(t.Context(), its); err != nil {
						t.Fatal(err)
					}
				} else {
					begin(t, other, its)
				}
				if err := save(4); !errors.Is(err, ErrReplaced) {
					t.Errorf("via %s: another's model: %v", via, err)
				}
				if _, err := sess.Run(t.Context(), nil, []string{chief.program.GlobalStep}, nil); !errors.Is(err, ErrReplaced) {
					t.Errorf("via %s: the session continues: %v", via, err)
				}
				found, err := checkpoint.Find(logdir, checkpoint.DefaultLatestFilename, "model.ckpt")
				if want := filepath.Join(logdir, "model.ckpt-3"); err != nil || len(found.Prefixes) != 2 || found.Prefixes[0] != want {
					t.Errorf("via %s: there are %v, %v; want 3 and 1", via, found.Prefixes, err)
				}
			})
		}
	}
}

// A copy of a logdir is another run; one that was moved is the same.
func TestRunIDOfACopy(t *testing.T) {
	t.Parallel()
	of := func(dir string, isChief bool) string {
		c := config.Default()
		c.Logdir, c.Supervisor.IsChief = dir, isChief
		id, err := (&Task{config: c}).readID()
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	dir := filepath.Join(t.TempDir(), "logs")
	c := config.Default()
	c.Logdir = dir
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	id, err := (&Task{config: c}).runID()
	if err != nil || of(dir, true) != id || of(dir, false) != id {
		t.Fatalf("ID %q, %v; read as %q and %q", id, err, of(dir, true), of(dir, false))
	}
	if err := os.CopyFS(dir+"-copy", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	if got := of(dir+"-moved", true); got != id {
		t.Errorf("moved: %q, want %q", got, id)
	}
	if runtime.GOOS != "windows" && of(dir+"-copy", true) != "" {
		t.Error("a copy has the ID of its original")
	}
	if got := of(dir+"-copy", false); got != id {
		t.Errorf("a worker, which may see other numbers: %q, want %q", got, id)
	}
}

// A chief that was frozen makes no step of the model that another has put there meanwhile, but
// for that in which it was frozen.
func TestStepsNoOtherModel(t *testing.T) {
	for _, within := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			connect := chiefs(t)
			chief, sess := connect(t.TempDir(), nil)
			begin(t, chief, sess)
			w := watchOf(sess)
			step := func(frozen time.Duration) error {
				_, err := w.call(t.Context(), func(context.Context, program.Feed, []string, []string) ([]*ckptfmt.Tensor, error) {
					time.Sleep(frozen)
					return nil, nil
				}, nil, nil, nil)
				return err
			}
			for range 3 {
				time.Sleep(otherIdle + time.Second)
				if err := step(0); err != nil {
					t.Fatalf("after a rest: %v", err)
				}
			}
			other, its := connect(t.TempDir(), nil)
			if within {
				go func() {
					time.Sleep(otherIdle / 2)
					begin(t, other, its)
				}()
				if err := step(otherIdle); err != nil {
					t.Errorf("the step in which it was frozen: %v", err)
				}
			} else {
				begin(t, other, its)
				time.Sleep(otherIdle)
			}
			if err := step(0); !errors.Is(err, ErrReplaced) {
				t.Errorf("frozen in a step: %v; with another's model: %v, want %v", within, err, ErrReplaced)
			}
		})
	}
}
