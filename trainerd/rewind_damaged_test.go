package trainerd

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A rewind to a checkpoint that turns out to be damaged moves it aside, takes the one
// before it, and says so.
func TestRewindToDamaged(t *testing.T) {
	m, dir := sessiontest.Counter(), t.TempDir()
	sv := newSupervisor(m, dir, 2)
	sv.MaxRewinds = 2
	loss := 1.0
	sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
	saved := make(chan int64, 20)
	sv.OnSave = func(c SavedCheckpoint) { saved <- c.Step }
	var told []string
	sv.OnRewind = func(_ context.Context, _ session.Session, r Rewind) error {
		at, _ := session.ScalarInt(m.Get("global_step"))
		if at != r.Step {
			t.Errorf("the model is at step %d, OnRewind is told %d", at, r.Step)
		}
		told = append(told, filepath.Base(r.Checkpoint))
		return nil
	}
	err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		for {
			n, _ := session.ScalarInt(m.Get("global_step"))
			if n >= 12 {
				return nil
			}
			n = m.Step()
			loss = 1
			if n == 9 && len(told) == 0 {
				loss = math.NaN()
				for <-saved < 8 {
				}
				if err := os.Truncate(filepath.Join(dir, "model.ckpt-8.data-00000-of-00001"), 1); err != nil {
					t.Error(err)
				}
			}
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
		}
	})
	if diff := cmp.Diff([]string{"model.ckpt-6"}, told); err != nil || diff != "" {
		t.Errorf("Run = %v; told (-want +got):\n%s", err, diff)
	}
	if w := m.Get("w"); err == nil && !cmp.Equal(w.Data, sessiontest.Vector[float32](6).Data) {
		t.Errorf("w = %v after 12 steps; want 6", w)
	}
}
