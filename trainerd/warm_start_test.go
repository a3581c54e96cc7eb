package trainerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestWarmStart(t *testing.T) {
	prefix := saveWith(t, new(checkpoint.Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
		"hidden/w": sessiontest.Vector[float32](1, 2), "out/w": sessiontest.Vector[float32](3), "old/b": sessiontest.Vector[float32](4), "global_step": ckptfmt.Scalar(int64(900)), "unused": sessiontest.Vector[float32](0),
	}), filepath.Join(t.TempDir(), "m"), 900)
	tests := []struct {
		name     string
		w        checkpoint.WarmStart
		restored []string
		report   string
		wantErr  string
	}{
		{"by name", checkpoint.WarmStart{}, []string{"hidden/w"}, `1 variables restored
  not restored: new/b: missing in the checkpoint; the model has float32 [1]
  not restored: out/w: the model has float32 [5], the checkpoint float32 [1]
  only in the checkpoint: global_step
  only in the checkpoint: old/b
  only in the checkpoint: unused`, ""},
		{"renamed", checkpoint.WarmStart{Names: map[string]string{"old/b": "new/b:0", "global_step": "global_step"}}, []string{"global_step", "hidden/w", "new/b"}, "", ""},
		{"only some", checkpoint.WarmStart{Names: map[string]string{"old/b": "new/b"}, Only: true}, []string{"new/b"}, "", ""},
		{"no such variable", checkpoint.WarmStart{Names: map[string]string{"old/b": "b"}}, nil, "", "no variable b"},
		{"nothing fits", checkpoint.WarmStart{Names: map[string]string{"out/w": "new/x"}, Only: true}, nil, "", "has no value for any variable"},
		{"no checkpoint", checkpoint.WarmStart{Checkpoint: "/none/m"}, nil, "", "does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
				"hidden/w": sessiontest.Vector[float32](0, 0), "out/w": sessiontest.Vector[float32](0, 0, 0, 0, 0), "new/b": sessiontest.Vector[float32](0), "global_step": ckptfmt.Scalar(int64(0)), "new/x": sessiontest.Vector[int64](0)})
			if tt.wantErr == "has no value for any variable" {
				delete(sess.Vars, "hidden/w")
			}
			if tt.w.Checkpoint == "" {
				tt.w.Checkpoint = prefix
			}
			if tt.name == "by name" || tt.name == "renamed" {
				delete(sess.Vars, "new/x")
			}
			report, err := tt.w.Apply(t.Context(), sess)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("Apply = %v; want an error with %q", err, tt.wantErr)
				}
				return
			}
			sessiontest.MustNoErr(t, err)
			if diff := cmp.Diff(report.Restored, tt.restored); diff != "" {
				t.Errorf("restored (-got +want):\n%s", diff)
			}
			var got []string
			for _, v := range sess.Restored {
				got = append(got, v.Name)
			}
			if diff := cmp.Diff(got, tt.restored); diff != "" {
				t.Errorf("assigned (-got +want):\n%s", diff)
			}
			if tt.report != "" {
				if diff := cmp.Diff(report.String(), tt.report); diff != "" {
					t.Errorf("report (-got +want):\n%s", diff)
				}
			}
		})
	}
}

// The init function runs after the init op, and not when the model's own
// checkpoint is restored.
func TestWarmStartAsInitFunc(t *testing.T) {
	prefix := saveStep(t, t.TempDir(), 8) // w is 8 there
	dir := t.TempDir()
	for run, want := range []float32{8.5, 9} {
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 100)
		sv.InitFunc = func(ctx context.Context, s session.Session) error {
			_, err := (&checkpoint.WarmStart{Checkpoint: prefix}).Apply(ctx, s)
			return err
		}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, int64(run+1))))
		if got, _ := ckptfmt.Values[float32](m.Get("w")); got[0] != want {
			t.Errorf("run %d: w %v; want %v", run, got, want)
		}
	}
}

func TestMaxRestarts(t *testing.T) {
	lost := &session.OpError{Code: session.ErrUnavailable.(*session.OpError).Code, Message: "connection refused"}
	tests := []struct {
		name     string
		max      int
		fail     func(attempt int) error
		saves    bool
		want     error
		attempts int
	}{
		{"off by default", 0, func(int) error { return lost }, false, session.ErrUnavailable, 1},
		{"as many as allowed", 2, func(int) error { return lost }, false, session.ErrUnavailable, 3},
		{"recovers", 2, func(n int) error {
			if n == 2 {
				return nil
			}
			return lost
		}, false, nil, 2},
		{"a save starts the count again", 1, func(n int) error {
			if n == 6 {
				return nil
			}
			return lost
		}, true, nil, 6},
		{"other errors are final", 5, func(int) error { return errFirst }, false, errFirst, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				m := sessiontest.Counter()
				sv := newSupervisor(m, dir, 1)
				sv.MaxRestarts = tt.max
				attempts := 0
				var begins []int64
				err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
					attempts++
					step, _ := session.ScalarInt(m.Get("global_step"))
					begins = append(begins, step)
					if tt.saves {
						if err := sv.StepDone(ctx, m.Step()); err != nil {
							return err
						}
					}
					return tt.fail(attempts)
				})
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil || attempts != tt.attempts {
					t.Errorf("Run = %v after %d attempts; want %v after %d", err, attempts, tt.want, tt.attempts)
				}
				if m.Open != 0 {
					t.Errorf("%d sessions left open", m.Open)
				}
				if tt.saves && !slices.Equal(begins, []int64{0, 1, 2, 3, 4, 5}) {
					t.Errorf("attempts begin at %v; want each at the last checkpoint", begins)
				}
				if _, err := os.Stat(filepath.Join(dir, logdir.LockFile)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
