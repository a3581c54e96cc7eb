package trainerd

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
)

// TestAdoptLiveModel: a chief that comes back takes over a model that its
// servers have kept, ahead of the newest checkpoint; one that is not ready, or
// is another run's, is restored.
func TestAdoptLiveModel(t *testing.T) {
	for name, c := range map[string]struct {
		live, ours bool
		fails      error
		want       int64
	}{
		"alive and ours":      {live: true, ours: true, want: 9},
		"another run's":       {live: true, want: 7},
		"lost by the servers": {ours: true, want: 7},
		"cannot be asked":     {live: true, fails: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prefix := saveStep(t, dir, 7)
			m := counterModel()
			if c.live {
				m.set("global_step", ckptfmt.Scalar(int64(9)))
				m.set("w", ckptfmt.Scalar(float32(4.5)))
			}
			saver := new(Saver)
			mgr := &SessionManager{NewSession: m.newSession, InitOp: Nodes("init"), ReadyOp: Func(storeReady), Saver: saver, CheckpointDir: dir,
				Adopt: func(context.Context, Session) (bool, error) { return c.ours, c.fails }}
			sess, prepared, err := mgr.PrepareSession(t.Context())
			if c.fails != nil {
				if !errors.Is(err, c.fails) || m.open != 0 {
					t.Fatalf("got %v with %d sessions open; want %v with none", err, m.open, c.fails)
				}
				return
			}
			mustNoErr(t, err)
			defer sess.Close()
			if n, _ := scalarInt(m.get("global_step")); n != c.want {
				t.Errorf("step %d; want %d", n, c.want)
			}
			if adopted := c.want == 9; prepared.Adopted != adopted || (prepared.Restored == "") != adopted {
				t.Errorf("prepared %+v; want adopted %v", *prepared, adopted)
			}
			if diff := cmp.Diff(saver.LastCheckpoints(), []string{prefix}); diff != "" {
				t.Errorf("checkpoints looked after (-got +want):\n%s", diff)
			}
		})
	}
}
