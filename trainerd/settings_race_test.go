package trainerd_test

import (
	"context"
	"testing"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// Settings may be read during a run that saves with a Saver of the program's own,
// and leaves it as the run uses it; the race detector sees to it.
func TestSettingsBesideOwnSaver(t *testing.T) {
	saver := &trainerd.Saver{MaxToKeep: 2}
	sv := &trainerd.Supervisor{MetaGraph: mustPlainGraph(t), Open: target.Open, Logdir: t.TempDir(), Saver: saver}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		used, read := saver.MetaGraph, make(chan error, 1)
		go func() {
			settings, err := sv.Settings()
			if err == nil && settings.Saver != saver {
				t.Error("Settings has another Saver")
			}
			read <- err
		}()
		sessiontest.MustNoErr(t, trainerd.RunOps(ctx, s, "train"))
		_, err := sv.Save(ctx)
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, <-read)
		if saver.MetaGraph != used {
			t.Error("Settings has given the Saver another graph")
		}
		return nil
	}))
}
