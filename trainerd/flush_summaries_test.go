package trainerd

import (
	"context"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestFlushSummaries has a step made during a save: the points of all steps that the checkpoint
// has are flushed, before there is a checkpoint that has them.
func TestFlushSummaries(t *testing.T) {
	m := sessiontest.Counter()
	countsSteps(t, m)
	sv := newSupervisor(m, t.TempDir(), 0)
	sv.Listeners = []CheckpointListener{ListenerFuncs{BeforeSaveFunc: func(ctx context.Context, s session.Session) error {
		_, err := s.Run(ctx, nil, nil, []string{"train"})
		return err
	}}}
	var flushed []int64
	sv.FlushSummaries = func(ctx context.Context, s session.Session) {
		step, err := session.ReadStep(ctx, s, "global_step")
		sessiontest.MustNoErr(t, err)
		flushed = append(flushed, step)
		if files, err := layout.Files(sv.SavePath() + "-" + string('0'+rune(step))); err != nil || len(files) > 0 {
			t.Errorf("there are %q (%v) before the points of step %d", files, err, step)
		}
	}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		saved, err := sv.Save(ctx)
		if err != nil || len(flushed) != 1 || flushed[0] != saved.Step {
			t.Errorf("flushed at steps %d; saved %+v, %v", flushed, saved, err)
		}
		return nil
	}))
}
