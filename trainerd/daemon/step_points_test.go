package daemon

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// lateSession is one whose steps are over for some time before the training continues.
type lateSession struct {
	*runtime.Session
	target string
}

func (s lateSession) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	out, err := s.Session.Run(ctx, feeds, fetches, targets)
	if slices.Contains(targets, s.target) {
		time.Sleep(time.Second)
	}
	return out, err
}

// savedHandler calls a function at each checkpoint that the log announces.
type savedHandler struct {
	slog.Handler
	saved func(step int64)
}

func (h savedHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h savedHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }

func (h savedHandler) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "saved" && a.Key == "step" {
			h.saved(a.Value.Int64())
		}
		return true
	})
	return nil
}

// TestPointsOfASavedStep has checkpoints fall due while a step is over and its summaries are not
// yet written: a run that continues from one has all points up to its step. A synchronous chief
// is not kept from saving meanwhile, as it may wait for others.
func TestPointsOfASavedStep(t *testing.T) {
	for name, overrides := range map[string][]string{
		"alone":             nil,
		"synchronous chief": {"cluster.sync=true"},
	} {
		c := clustersConfig(t, append(overrides, "supervisor.save_model_secs=0.3", "supervisor.save_model_steps=0", "supervisor.save_summaries_steps=1")...)
		j, err := newJob(t.Context(), c)
		sessiontest.MustNoErr(t, err)
		defer j.close()
		var saves []int64
		synctest.Test(t, func(t *testing.T) {
			log := savedHandler{slog.DiscardHandler, func(step int64) {
				saves = append(saves, step)
				if got := stepsOf(t, c.Logdir, "loss"); int64(len(got)) != step {
					t.Errorf("%s: the checkpoint of step %d is there, and points of the steps %v", name, step, got)
				}
			}}
			wrap := func(s session.Session) session.Session {
				return lateSession{s.(*runtime.Session), j.program.Train[0]}
			}
			sessiontest.MustNoErr(t, Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(log), Wrap: wrap}))
		})
		if len(saves) < 10 {
			t.Errorf("%s: there were checkpoints of the steps %v", name, saves)
		}
	}
}
