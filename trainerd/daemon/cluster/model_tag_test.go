package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/session"
)

// serve starts a server.
func serve(t *testing.T) (target string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := master.New(nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "grpc://" + ln.Addr().String()
}

// TestCallOfAnEarlierGeneration ends a call within which an exported graph waits
// for a token, once the chief has restored the model.
func TestCallOfAnEarlierGeneration(t *testing.T) {
	t.Parallel()
	built, err := model.Build(model.Config{Family: "softmax", Inputs: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	target, logdir, p := serve(t), t.TempDir(), program.OfFamily(built)
	connect := func(number int) (*Task, session.Session) {
		c := config.Default()
		c.Master, c.Logdir = target, logdir
		c.Cluster.Workers, c.Cluster.Task, c.Supervisor.IsChief = 2, number, number == 0
		member := NewTask(c, p, slog.New(slog.DiscardHandler), nil)
		sess, err := member.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sess.Close() })
		return member, sess
	}
	chief, sess := connect(0)
	restore := func() {
		t.Helper()
		err := chief.UntagModel(t.Context(), sess)
		if err == nil {
			_, err = sess.Run(t.Context(), nil, nil, p.Init)
		}
		if err == nil {
			err = chief.Publish(t.Context(), sess, nil, 0, false)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	restore()
	_, worker := connect(1)
	calls := make(chan error, 1)
	go func() {
		calls <- watchOf(worker).guard(t.Context(), "a step", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	restore()
	if err := <-calls; !errors.Is(err, ErrReplaced) {
		t.Errorf("got %v; want %v", err, ErrReplaced)
	}
}

// TestAdoptsNoOtherLayout has a chief come back with its variables on other servers, where a run
// before may have left some of the same names: the model is adopted only where it is complete.
func TestAdoptsNoOtherLayout(t *testing.T) {
	t.Parallel()
	built, err := model.Build(model.Config{Family: "softmax", Inputs: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	c, p := config.Default(), program.OfFamily(built)
	c.Master, c.Logdir = serve(t), t.TempDir()
	connect := func(servers int) (*Task, session.Session) {
		c.Cluster.PSTasks = servers
		chief := NewTask(c, p, slog.New(slog.DiscardHandler), nil)
		sess, err := chief.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sess.Close() })
		return chief, sess
	}
	chief, sess := connect(2)
	_, err = sess.Run(t.Context(), nil, nil, p.Init)
	if err := errors.Join(err, chief.Publish(t.Context(), sess, nil, 0, false)); err != nil {
		t.Fatal(err)
	}
	for servers := 1; servers <= 3; servers++ {
		chief, sess := connect(servers)
		if adopted, err := chief.Adopt(t.Context(), sess); err != nil || adopted != (servers == 2) {
			t.Errorf("with %d servers: Adopt = %v, %v", servers, adopted, err)
		}
	}
}

// TestRunIDKept removes the logdir of a run whose model is on the servers: a new session
// of the chief adopts it all the same.
func TestRunIDKept(t *testing.T) {
	t.Parallel()
	built, err := model.Build(model.Config{Family: "softmax", Inputs: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	c, p := config.Default(), program.OfFamily(built)
	c.Master, c.Logdir = serve(t), filepath.Join(t.TempDir(), "logs")
	connect := func() (*Task, session.Session) {
		chief := NewTask(c, p, slog.New(slog.DiscardHandler), nil)
		sess, err := chief.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sess.Close() })
		return chief, sess
	}
	chief, sess := connect()
	_, err = sess.Run(t.Context(), nil, nil, p.Init)
	if err := errors.Join(err, os.Mkdir(c.Logdir, 0o777), chief.Publish(t.Context(), sess, nil, 0, false)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // by the chief that tagged the model, then by one that adopted it
		if err := errors.Join(os.RemoveAll(c.Logdir), os.Mkdir(c.Logdir, 0o777), chief.KeepRunID()); err != nil {
			t.Fatal(err)
		}
		chief, sess = connect()
		if adopted, err := chief.Adopt(t.Context(), sess); !adopted || err != nil {
			t.Fatalf("adopted %v, %v", adopted, err)
		}
	}
}

// TestModelOlderThanIntactCheckpoint leaves a model on the servers that is older than the
// newest checkpoint, the first file of a still newer one having been cut by a kill.
func TestModelOlderThanIntactCheckpoint(t *testing.T) {
	t.Parallel()
	built, err := model.Build(model.Config{Family: "softmax", Inputs: 2, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	c, p := config.Default(), program.OfFamily(built)
	c.Master, c.Logdir = serve(t), t.TempDir()
	chief := NewTask(c, p, slog.New(slog.DiscardHandler), nil)
	sess, err := chief.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sess.Close() })
	_, err = sess.Run(t.Context(), nil, nil, p.Init)
	if err := errors.Join(err, chief.Publish(t.Context(), sess, nil, 0, false)); err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(c.Logdir, "model.ckpt-")
	saveStep(t, prefix+"0", p.StepKey, 0)
	cut := os.WriteFile(prefix+"9.index", []byte("cut"), 0o666)
	adopted, err := chief.Adopt(t.Context(), sess)
	if err := errors.Join(cut, err); err != nil || !adopted {
		t.Errorf("model of the newest intact checkpoint: adopted %v, %v", adopted, err)
	}
	saveStep(t, prefix+"8", p.StepKey, 8)
	if adopted, err := chief.Adopt(t.Context(), sess); err != nil || adopted {
		t.Errorf("model older than an intact checkpoint: adopted %v, %v", adopted, err)
	}
}

// saveStep writes a checkpoint that has a step and nothing else.
func saveStep(t *testing.T, prefix, key string, step uint64) {
	t.Helper()
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	value := binary.LittleEndian.AppendUint64(nil, step)
	if err := errors.Join(w.Add(key, &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Data: value}), w.Finish()); err != nil {
		t.Fatal(err)
	}
}
