package trainerd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// What killed runs left goes when the next one begins: data without an index,
// and what was kept while a checkpoint was overwritten. What is in use, pinned
// or of another name stays.
func TestLeftoversAreSwept(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 10)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 20)))
	for _, name := range []string{
		"model.ckpt-5.data-00000-of-00001", "model.ckpt-10.previous.data-00000-of-00001", "model.ckpt-10.previous.index",
		"model.ckpt-7.data-00000-of-00001", "model.ckpt-7.pin", "other-5.data-00000-of-00001",
	} {
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), nil, 0o666))
	}
	sv = newSupervisor(sessiontest.Counter(), dir, 10)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(sessiontest.Counter(), sv, 0)))
	want := []string{
		"model.ckpt-10.data-00000-of-00001", "model.ckpt-20.data-00000-of-00001",
		"model.ckpt-7.data-00000-of-00001", "other-5.data-00000-of-00001",
	}
	if diff := cmp.Diff(sessiontest.Files(t, dir, "*.data-*"), want); diff != "" {
		t.Errorf("data files (-got +want):\n%s", diff)
	}
}

// A checkpoint that a crash left only under its second name is restored, and has
// its own name again for everybody who reads the logdir.
func TestPreviousCheckpointIsNoLeftover(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.ckpt")
	m := sessiontest.Counter()
	m.Set("global_step", ckptfmt.Scalar(int64(4)))
	m.Set("w", ckptfmt.Scalar(float32(2)))
	saveWith(t, new(checkpoint.Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"global_step": m.Get("global_step"), "w": m.Get("w")}), path, 4)
	names, err := layout.Files(path + "-4")
	sessiontest.MustNoErr(t, err)
	for _, name := range names {
		sessiontest.MustNoErr(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "model.ckpt-4.previous"+name[len("model.ckpt-4"):])))
	}
	sv := newSupervisor(sessiontest.Counter(), dir, 10)
	for range 2 {
		m = sessiontest.Counter()
		sv.NewSession = m.NewSession
		sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 0)))
		if step, _ := session.ScalarInt(m.Get("global_step")); step != 4 {
			t.Fatalf("resumed at step %d; want 4", step)
		}
		if left := sessiontest.Files(t, dir, "*previous*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if got, err := ckptdir.LatestCheckpoint(dir, nil); err != nil || got != path+"-4" {
			t.Errorf("the latest checkpoint is %s, %v", got, err)
		}
	}
}
