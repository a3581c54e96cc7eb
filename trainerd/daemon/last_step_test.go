package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// lastStepSession is asked for the step of its model.
type lastStepSession struct{ asked func() error }

func (s lastStepSession) Run(context.Context, map[string]*ckptfmt.Tensor, []string, []string) ([]*ckptfmt.Tensor, error) {
	return []*ckptfmt.Tensor{{DType: tfpb.DataType_DT_INT64, Data: binary.LittleEndian.AppendUint64(nil, 100)}}, s.asked()
}

func (lastStepSession) Close() error { return nil }

// setState makes a checkpoint of a step the newest one of a logdir.
func setState(t *testing.T, dir, prefix string) {
	t.Helper()
	for _, name := range []string{prefix + ".index", prefix + ".data-00000-of-00001"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), []byte(`model_checkpoint_path: "`+prefix+`"`), 0o666); err != nil {
		t.Fatal(err)
	}
}

// setStep puts a step into a checkpoint, whatever its name says.
func setStep(t *testing.T, prefix string, step int64) {
	t.Helper()
	w, err := ckptfmt.CreateBundle(prefix, nil)
	sessiontest.MustNoErr(t, err)
	defer w.Close()
	sessiontest.MustNoErr(t, w.Add("global_step", sessiontest.Vector(step)))
	sessiontest.MustNoErr(t, w.Finish())
}

// A synchronous worker that has made the last step leaves once it is saved.
func TestAwaitSaved(t *testing.T) {
	const patience = 10 * time.Minute
	for _, tt := range []struct {
		name   string
		before string // the newest checkpoint, "" for none
		holds  int64  // the step in that, 0 for none
		step   int64
		chief  bool
		alone  bool                        // the workers do not wait for each other
		asked  func(n int) (string, error) // what comes of being asked the n-th time, and the newest checkpoint then
		want   error
		asks   int
	}{
		{name: "it is saved", before: "model.ckpt-100", step: 100},
		{name: "it is saved under the name of an earlier step", before: "model.ckpt-99", holds: 100, step: 100},
		{name: "no checkpoints can be seen", step: 100},
		{name: "an earlier step", before: "model.ckpt-90", step: 99},
		{name: "the chief", before: "model.ckpt-90", step: 100, chief: true},
		{name: "workers by themselves", before: "model.ckpt-90", step: 100, alone: true},
		{name: "it is saved later", before: "model.ckpt-90", step: 100, asks: 3, asked: func(n int) (string, error) {
			if n == 3 {
				return "model.ckpt-100", nil
			}
			return "", nil
		}},
		{name: "the servers lose the model", before: "model.ckpt-90", step: 100, asks: 2, want: session.ErrUnavailable, asked: func(n int) (string, error) {
			if n == 2 {
				return "", session.ErrUnavailable
			}
			return "", nil
		}},
		{name: "the servers end after it was saved", before: "model.ckpt-90", step: 100, asks: 1, asked: func(int) (string, error) {
			return "model.ckpt-100", session.ErrUnavailable
		}},
		{name: "it is never saved", before: "model.ckpt-90", step: 100, asks: int(patience/savedPoll) + 1, asked: func(int) (string, error) { return "", nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &config.Config{Logdir: t.TempDir()}
				c.Supervisor.IsChief, c.Cluster.PatienceSecs = tt.chief, config.Seconds(patience.Seconds())
				if tt.before != "" {
					setState(t, c.Logdir, tt.before)
				}
				if tt.holds > 0 {
					setStep(t, filepath.Join(c.Logdir, tt.before), tt.holds)
				}
				p := &program.Program{GlobalStep: "global_step:0", StepKey: "global_step"}
				j := &job{config: c, program: p, steps: 100, task: cluster.NewTask(c, p, slog.New(slog.DiscardHandler), nil)}
				training := &training{job: j, step: tt.step, replicas: new(cluster.Replicas)}
				if tt.alone {
					training.replicas = nil
				}
				asks := 0
				sess := lastStepSession{func() error {
					if asks++; tt.asked == nil {
						return errors.New("it asks")
					}
					saved, err := tt.asked(asks)
					if saved != "" {
						setState(t, c.Logdir, saved)
					}
					return err
				}}
				if err := training.awaitSaved(t.Context(), sess); !errors.Is(err, tt.want) || asks != tt.asks {
					t.Errorf("%v after %d looks; want %v after %d", err, asks, tt.want, tt.asks)
				}
			})
		})
	}
}

// A stop ends the wait.
func TestAwaitSavedStops(t *testing.T) {
	c := &config.Config{Logdir: t.TempDir()}
	setState(t, c.Logdir, "model.ckpt-90")
	p := &program.Program{GlobalStep: "global_step:0"}
	j := &job{config: c, program: p, steps: 100, task: cluster.NewTask(c, p, slog.New(slog.DiscardHandler), nil)}
	ctx, stop := context.WithCancel(t.Context())
	training := &training{job: j, step: 100, replicas: new(cluster.Replicas)}
	if err := training.awaitSaved(ctx, lastStepSession{func() error { stop(); return nil }}); err != nil {
		t.Error(err)
	}
}
