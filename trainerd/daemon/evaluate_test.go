package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestEvaluationOutlivesItsDisk has no room for the events of an evaluation for a while:
// that is no failure, and they are there in the end.
func TestEvaluationOutlivesItsDisk(t *testing.T) {
	j := &job{config: &config.Config{Logdir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	e := &evaluator{job: j, result: &evaluation{names: []string{"loss"}, values: []float64{1}}}
	if err := e.open(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(j.config.Logdir, evalDir)
	if err := errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o666)); err != nil { // no file can be made in it now
		t.Fatal(err)
	}
	if err := e.write(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(dir), os.Mkdir(dir, 0o777), e.close()); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*tfevents*")); err != nil || len(files) != 1 || e.droppedEvents() != 0 {
		t.Errorf("events files %v, %v; %d dropped", files, err, e.droppedEvents())
	}
}

// TestEvaluationsFolderIsDeleted ends a run that has not evaluated, and whose events
// have nowhere to go: that is no failure of the run.
func TestEvaluationsFolderIsDeleted(t *testing.T) {
	j := &job{config: &config.Config{Logdir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	e := &evaluator{job: j}
	if err := e.open(); err != nil {
		t.Fatal(err)
	}
	if err := e.events.AddSession(t.Context(), tfpb.SessionLog_START, "", 7); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(j.config.Logdir); err != nil {
		t.Fatal(err)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
