package trainerd

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// nanAt trains a model, saving every two steps, whose loss is not a number at a
// step as long as bad says so. It returns what OnRewind was told.
func nanAt(t *testing.T, step int64, maxRewinds int, bad func(rewinds int) bool, saver ...*checkpoint.Saver) (told []int64, sv *Supervisor, err error) {
	t.Helper()
	m := sessiontest.Counter()
	sv = newSupervisor(m, t.TempDir(), 2)
	sv.MaxRewinds = maxRewinds
	if len(saver) > 0 {
		sv.Saver = saver[0]
	}
	loss := 1.0
	sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
	sv.OnRewind = func(_ context.Context, _ session.Session, r Rewind) error {
		told = append(told, r.Step)
		if r.Count != len(told) || r.Cause.Step != step {
			t.Errorf("told of %+v", r)
		}
		return nil
	}
	err = sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		for {
			n, _ := session.ScalarInt(m.Get("global_step"))
			if n >= 12 {
				return nil
			}
			n = m.Step()
			loss = 1
			if n == step && bad(len(told)) {
				loss = math.NaN()
			}
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
		}
	})
	if err == nil {
		if w := m.Get("w"); !cmp.Equal(w.Data, sessiontest.Vector[float32](6).Data) {
			t.Errorf("w = %v after 12 steps; want 6", w)
		}
	}
	return told, sv, err
}

// A training whose loss becomes NaN goes back to a checkpoint, each time in a
// row one further, and in the end fails with the error if that does not help.
func TestNaNRewind(t *testing.T) {
	for name, tt := range map[string]struct {
		max  int
		bad  func(int) bool
		want []int64
		ok   bool
	}{
		"off":         {0, func(int) bool { return true }, nil, false},
		"once":        {3, func(n int) bool { return n < 1 }, []int64{8}, true},
		"twice":       {3, func(n int) bool { return n < 2 }, []int64{8, 6}, true},
		"never helps": {3, func(int) bool { return true }, []int64{8, 6, 4}, false},
	} {
		t.Run(name, func(t *testing.T) {
			told, sv, err := nanAt(t, 9, tt.max, tt.bad)
			var nan *NaNError
			if tt.ok != (err == nil) || !tt.ok && !errors.As(err, &nan) {
				t.Errorf("Run = %v", err)
			}
			if diff := cmp.Diff(told, tt.want); diff != "" {
				t.Errorf("went back to (-got +want):\n%s", diff)
			}
			if got := sv.Report().Restarts.Rewinds; got != len(tt.want) {
				t.Errorf("report has %d rewinds", got)
			}
		})
	}
}

// A training that keeps all checkpoints, which then do not rotate, goes back like any other.
func TestNaNRewindKeepsAll(t *testing.T) {
	told, _, err := nanAt(t, 9, 3, func(n int) bool { return n < 2 }, &checkpoint.Saver{MaxToKeep: -1})
	if err != nil || !slices.Equal(told, []int64{8, 6}) {
		t.Errorf("Run = %v, went back to %v", err, told)
	}
}

// Without a checkpoint there is nothing to go back to.
func TestNaNRewindWithoutCheckpoint(t *testing.T) {
	told, sv, err := nanAt(t, 1, 3, func(int) bool { return true })
	var nan *NaNError
	if !errors.As(err, &nan) || len(told) > 0 {
		t.Errorf("Run = %v, went back to %v", err, told)
	}
	if !sv.ShouldStop() {
		t.Error("the Supervisor has forgotten that its run has stopped")
	}
}
