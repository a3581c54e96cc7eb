package trainerd_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// makeNewer has a checkpoint be one that a newer TensorFlow has written.
func makeNewer(t *testing.T, prefix string) {
	t.Helper()
	index, err := os.ReadFile(filepath.Join("..", "fixtures", "ckpt_v2", "damaged", "min_consumer_2", "model.ckpt.index"))
	sessiontest.MustNoErr(t, errors.Join(err, os.WriteFile(prefix+".index", index, 0o666)))
}

// savesAll trains so many steps, saves each, and calls do after it.
func savesAll(t *testing.T, k *kind, dir string, sv func(sv *trainerd.Supervisor), steps int64, do func(sv *trainerd.Supervisor, step int64) error) (*trainerd.Supervisor, error) {
	t.Helper()
	p := k.process(t)
	s := p.supervisor(dir)
	sv(s)
	return s, s.Run(t.Context(), func(ctx context.Context, sess session.Session) error {
		for {
			step := p.at(ctx, sess)
			if step >= steps {
				return nil
			}
			p.train(ctx, sess, 1)
			if _, err := s.Save(ctx); err != nil {
				return err
			}
			if err := do(s, step+1); err != nil {
				return err
			}
		}
	})
}

// at returns the global step.
func (p *process) at(ctx context.Context, s session.Session) int64 {
	p.t.Helper()
	name := "global_step"
	if p.vars != nil {
		name = "my_step"
	}
	step, err := session.ReadStep(ctx, s, name)
	sessiontest.MustNoErr(p.t, err)
	return step
}

// A newest checkpoint that a newer TensorFlow has written is moved aside, not deleted nor
// overwritten, by a start and by a rewind; a warm start from it says what is wrong.
func TestKindsNewerCheckpoint(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		dir := t.TempDir()
		newest := filepath.Join(dir, "model.ckpt-6")
		nan, rewinds := &hook.NaNError{Step: 7, Loss: math.NaN()}, []int64(nil)
		_, err := savesAll(t, k, dir, func(sv *trainerd.Supervisor) {
			sv.MaxRewinds = 1
			sv.OnRewind = func(_ context.Context, _ session.Session, r trainerd.Rewind) error {
				rewinds = append(rewinds, r.Step)
				return nil
			}
		}, 8, func(_ *trainerd.Supervisor, step int64) error {
			if step != 6 || len(rewinds) > 0 {
				return nil
			}
			makeNewer(t, newest)
			return nan
		})
		if sessiontest.MustNoErr(t, err); !slices.Equal(rewinds, []int64{5}) {
			t.Errorf("it went back to %v", rewinds)
		}
		wantSaved(t, newest, 3)
		makeNewer(t, filepath.Join(dir, "model.ckpt-8"))
		sv, err := savesAll(t, k, dir, func(*trainerd.Supervisor) {}, 9, func(*trainerd.Supervisor, int64) error { return nil })
		if sessiontest.MustNoErr(t, err); filepath.Base(sv.Prepared().Restored) != "model.ckpt-7" {
			t.Errorf("it continues from %s", sv.Prepared().Restored)
		}
		wantSaved(t, filepath.Join(dir, "model.ckpt-9"), 4.5)
		aside, err := filepath.Glob(filepath.Join(dir, checkpoint.DamagedDir, "*", "*.index"))
		if err != nil || len(aside) != 2 {
			t.Errorf("moved aside %v, %v", aside, err)
		}
	})
}

// A pinned checkpoint stays where one is kept, is gone back to where it is the one before,
// and is moved aside where it is damaged.
func TestKindsPinned(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		dir := t.TempDir()
		in := func(step string) string { return filepath.Join(dir, "model.ckpt-"+step) }
		keepOne := func(sv *trainerd.Supervisor) { sv.Saver, sv.MaxRewinds = &checkpoint.Saver{MaxToKeep: 1}, 2 }
		var rewinds []int64
		sv, err := savesAll(t, k, dir, func(sv *trainerd.Supervisor) {
			keepOne(sv)
			sv.OnRewind = func(_ context.Context, _ session.Session, r trainerd.Rewind) error {
				rewinds = append(rewinds, r.Step)
				return nil
			}
		}, 6, func(sv *trainerd.Supervisor, step int64) error {
			if step == 3 && len(rewinds) == 0 {
				sessiontest.MustNoErr(t, sv.Saver.Pin(in("3")))
			}
			if step == 5 && len(rewinds) < 2 {
				return &hook.NaNError{Step: 5, Loss: math.NaN()}
			}
			return nil
		})
		if sessiontest.MustNoErr(t, err); !slices.Equal(rewinds, []int64{3, 3}) {
			t.Errorf("it went back to %v", rewinds)
		}
		wantSaved(t, in("3"), 1.5)
		wantSaved(t, in("6"), 3)
		if _, err := ckptdir.Find(in("4")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("more than one is kept: %v", err)
		}

		sessiontest.MustNoErr(t, sv.Saver.Pin(in("6")))
		sessiontest.MustNoErr(t, os.Truncate(in("6")+".data-00000-of-00001", 3))
		sv, err = savesAll(t, k, dir, keepOne, 8, func(*trainerd.Supervisor, int64) error { return nil })
		if sessiontest.MustNoErr(t, err); sv.Prepared().Restored != in("3") {
			t.Errorf("it continues from %s", sv.Prepared().Restored)
		}
		wantSaved(t, in("8"), 4)
		aside, err := filepath.Glob(filepath.Join(dir, checkpoint.DamagedDir, "*", "*"))
		if err != nil || len(aside) < 2 {
			t.Errorf("moved aside %v, %v", aside, err)
		}
		wantSaved(t, in("6"), 3) // another one of that step, which the pin keeps
	})
}
