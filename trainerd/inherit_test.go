package trainerd

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A graph's saver preserves a checkpoint every so many hours, as TensorFlow's
// does on the same graph.
func TestPeriodOfTheGraphsSaver(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 1)
		sv.MetaGraph = &tfpb.MetaGraphDef{SaverDef: &tfpb.SaverDef{MaxToKeep: 1, KeepCheckpointEveryNHours: 0.5}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			for range 8 {
				time.Sleep(20 * time.Minute)
				if err := sv.StepDone(ctx, m.Step()); err != nil {
					return err
				}
			}
			return nil
		}))
	})
	if got := sessiontest.Files(t, dir, "*.index"); len(got) < 3 {
		t.Errorf("checkpoints %v; want one of each half hour", got)
	}
}

// A Saver of the program's own has what it does not set from the Supervisor, and
// the formats of its own.
func TestOwnSaverInherits(t *testing.T) {
	graph := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}, SaverDef: &tfpb.SaverDef{Version: tfpb.SaverDef_V1, MaxToKeep: 9}}
	own := slog.New(slog.DiscardHandler)
	for name, give := range map[string]func(sv *Supervisor, s *checkpoint.Saver){
		"Supervisor": func(sv *Supervisor, s *checkpoint.Saver) { sv.Saver = s },
		"SessionManager": func(sv *Supervisor, s *checkpoint.Saver) {
			sv.SessionManager = &SessionManager{NewSession: sv.NewSession, InitOp: sv.InitOp, Saver: s, CheckpointDir: sv.Logdir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, dir := sessiontest.Counter(), t.TempDir()
			log, lines := sessiontest.NewLog()
			sv := newSupervisor(m, dir, 1)
			sv.MetaGraph, sv.Logger = graph, log
			saver := &checkpoint.Saver{MaxToKeep: 1}
			give(sv, saver)
			sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 3)))
			if got := sessiontest.Files(t, dir, "model.ckpt-*.meta"); len(got) != 1 {
				t.Errorf("meta graphs %v; want that of the checkpoint that stays", got)
			}
			if got := sessiontest.Files(t, dir, "model.ckpt-*.index"); len(got) != 1 {
				t.Errorf("indexes %v; want one, in the Saver's own format", got)
			}
			sessiontest.WantLog(t, lines, "deleted old checkpoint")
			if saver.Def != graph.SaverDef || saver.MaxToKeep != 1 {
				t.Errorf("Def %v, MaxToKeep %d; want the graph's, and 1", saver.Def, saver.MaxToKeep)
			}
			// The next Supervisor has another graph, and a Saver keeps what it has set.
			next := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}}
			sv = newSupervisor(m, dir, 1)
			sv.MetaGraph, sv.Logger = next, log
			give(sv, saver)
			sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 4)))
			if saver.MetaGraph != next || saver.Def != nil {
				t.Error("the Saver keeps the graph of another Supervisor")
			}
			given := &checkpoint.Saver{MetaGraph: graph, Logger: own}
			give(sv, given)
			sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 5)))
			if given.MetaGraph != graph || given.Logger != own {
				t.Error("what the program has set is replaced")
			}
		})
	}
}
