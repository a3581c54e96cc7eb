package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestEvaluationOutlivesItsDisk has no room for the events of an evaluation: they
// are dropped, as those of the training are.
func TestEvaluationOutlivesItsDisk(t *testing.T) {
	j := &job{config: &config.Config{Logdir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	e := &evaluator{job: j, result: &evaluation{names: []string{"loss"}, values: []float64{1}}}
	if err := e.open(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(j.config.Logdir, evalDir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o666); err != nil { // no file can be made in it now
		t.Fatal(err)
	}
	if err := e.write(t.Context(), 1); err != nil || e.droppedEvents() == 0 {
		t.Errorf("%v; dropped %d events, want some", err, e.droppedEvents())
	}
	if err := e.close(); err != nil {
		t.Error(err)
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
