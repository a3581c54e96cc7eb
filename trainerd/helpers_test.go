package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// events describes all events of a logdir in short, file by file, with times
// left out: "START(3)", "w(5)", "CHECKPOINT(5)".
func events(t *testing.T, logdir string) [][]string {
	t.Helper()
	var all [][]string
	for _, name := range sessiontest.Files(t, logdir, "events.out.tfevents.*") {
		var file []string
		for _, e := range sessiontest.EventsIn(t, filepath.Join(logdir, name)) {
			file = append(file, describe(e))
		}
		all = append(all, file)
	}
	return all
}

func describe(e *tfpb.Event) string {
	switch w := e.GetWhat().(type) {
	case *tfpb.Event_FileVersion:
		return "version"
	case *tfpb.Event_GraphDef:
		return fmt.Sprintf("graph(%d)", e.Step)
	case *tfpb.Event_MetaGraphDef:
		return fmt.Sprintf("meta(%d)", e.Step)
	case *tfpb.Event_SessionLog:
		return fmt.Sprintf("%v(%d)", w.SessionLog.Status, e.Step)
	case *tfpb.Event_Summary:
		var tags []string
		for _, v := range w.Summary.Value {
			tags = append(tags, v.Tag)
		}
		return fmt.Sprintf("%s(%d)", strings.Join(tags, ","), e.Step)
	}
	return "other"
}

// stepsTo trains until the global step is last.
func stepsTo(m *sessiontest.Model, sv *Supervisor, last int64) func(context.Context, session.Session) error {
	return func(ctx context.Context, _ session.Session) error {
		for {
			n, _ := session.ScalarInt(m.Get("global_step"))
			if n >= last || ctx.Err() != nil {
				return nil
			}
			if err := sv.StepDone(ctx, m.Step()); err != nil {
				return err
			}
		}
	}
}

const Long = time.Hour

var errFirst = errors.New("first")

func saveWith(t *testing.T, s *checkpoint.Saver, sess session.Session, path string, step int64) string {
	t.Helper()
	prefix, err := s.Save(t.Context(), sess, path, step)
	sessiontest.MustNoErr(t, err)
	return prefix
}
