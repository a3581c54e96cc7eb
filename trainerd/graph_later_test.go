package trainerd_test

import (
	"context"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// The session is lost within its first step, before the graph was encoded: the events have
// it all the same, after the START of its session, and before the START of the next.
func TestGraphOfLostFirstStep(t *testing.T) {
	t.Parallel()
	logdir, sessions := t.TempDir(), 0
	sv := &trainerd.Supervisor{MetaGraph: mustPlainGraph(t), Open: target.Open, Logdir: logdir, MaxRestarts: 1}
	err := sv.Run(t.Context(), func(ctx context.Context, sess session.Session) error {
		if sessions++; sessions == 1 {
			return session.ErrAborted
		}
		_, err := sess.Run(ctx, nil, nil, []string{"train"})
		return err
	})
	if err != nil || sessions != 2 {
		t.Fatalf("%v after %d sessions", err, sessions)
	}
	var got []string
	for _, e := range sessiontest.Events(t, logdir) {
		switch {
		case len(e.GetGraphDef()) > 0:
			got = append(got, "graph")
		case e.GetSessionLog().GetStatus() == tfpb.SessionLog_START:
			got = append(got, "START")
		}
	}
	if want := []string{"START", "graph", "START", "graph"}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}
