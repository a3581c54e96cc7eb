package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// TestEvaluationOutlivesItsDisk has no room for the events of an evaluation for a while:
// that is not a failure, and they are there in the end.
func TestEvaluationOutlivesItsDisk(t *testing.T) {
	j := &job{config: &config.Config{Logdir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	e := &evaluator{job: j, result: &evaluation{names: []string{"loss"}, values: []float64{1}}}
	if err := e.openFile(); err != nil {
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
// have nowhere to go: that is not a failure of the run.
func TestEvaluationsFolderIsDeleted(t *testing.T) {
	j := &job{config: &config.Config{Logdir: t.TempDir()}, log: slog.New(slog.DiscardHandler)}
	e := &evaluator{job: j}
	if err := e.openFile(); err != nil {
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

// TestEvaluationsOfLostSession has a disk without room when a session is lost: the points
// that wait come in the file of the next session, but for those that it makes again.
func TestEvaluationsOfLostSession(t *testing.T) {
	disk := faultfs.New(0)
	e := newEvaluatorOn(t, disk)
	mustNoErr(t, e.begin(t.Context(), new(trainerd.Supervisor), 0, false), e.write(t.Context(), 1))
	disk.Break(1, faultfs.Fault{Err: syscall.ENOSPC, Lasting: true})
	mustNoErr(t, e.write(t.Context(), 2), e.write(t.Context(), 3))
	mustNoErr(t, e.begin(t.Context(), new(trainerd.Supervisor), 2, true))
	disk.Heal()
	mustNoErr(t, e.write(t.Context(), 3), e.write(t.Context(), 4), e.close())
	wantEvaluations(t, e, 1, 2, 3, 4)
	if n := e.droppedEvents(); n != 0 {
		t.Errorf("dropped %d", n)
	}
}

// newEvaluatorOn returns an evaluator of a job on a disk.
func newEvaluatorOn(t *testing.T, disk atomicfile.FS) *evaluator {
	t.Helper()
	j := &job{config: &config.Config{Logdir: t.TempDir()}, log: slog.New(slog.DiscardHandler), fsys: disk}
	return &evaluator{job: j, result: &evaluation{names: []string{"loss"}, values: []float64{1}}}
}

// wantEvaluations wants every loader to show an evaluation at these steps.
func wantEvaluations(t *testing.T, e *evaluator, want ...int64) {
	t.Helper()
	fsys := os.DirFS(filepath.Join(e.job.config.Logdir, evalDir))
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	for _, loader := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgeDataServer} {
		var got []int64
		for p := range tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: loader}).Lookup("loss").Points() {
			got = append(got, p.Step)
		}
		if !slices.Equal(got, want) {
			t.Errorf("loader %v shows evaluations at %v, want %v", loader, got, want)
		}
	}
}

func mustNoErr(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
