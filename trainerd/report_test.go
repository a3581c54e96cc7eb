package trainerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/report"
	"github.com/trainerd/trainerd/trainerd/session"
)

func readReport(t *testing.T, dir string) *report.Run {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, report.JSONName))
	sessiontest.MustNoErr(t, err)
	rep := new(report.Run)
	sessiontest.MustNoErr(t, json.Unmarshal(b, rep))
	return rep
}

// The report says how long what took, in a run whose session was lost once.
// countedSyncs counts the syncs of directories.
type countedSyncs struct {
	ckptfmt.FS
	n atomic.Int64
}

func (f *countedSyncs) SyncDir(name string) error {
	f.n.Add(1)
	return f.FS.SyncDir(name)
}

func TestRunReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 10)
		syncs := &countedSyncs{FS: atomicfile.OrOS(nil)}
		sv.Saver = &checkpoint.Saver{FS: slowFS{syncs}, MaxToKeep: 2}
		sv.MaxRestarts, sv.SaveGrace = 1, -1
		lost := false
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			for n, _ := session.ScalarInt(m.Get("global_step")); n < 40; n++ {
				time.Sleep(time.Minute)
				if n == 25 && !lost {
					lost = true
					return session.ErrAborted
				}
				sv.ReportMetric("loss", math.NaN())
				if err := sv.StepDone(ctx, m.Step()); err != nil {
					return err
				}
			}
			return nil
		}))
		rep := readReport(t, dir)
		if rep.Outcome != report.Completed || rep.FirstStep != 0 || rep.LastStep != 40 || rep.Steps != 45 || rep.PID != os.Getpid() {
			t.Errorf("report %+v; want 45 steps from 0 to 40", rep)
		}
		if rep.Restarts.Count != 1 || rep.Restarts.StepsAgain != 5 || time.Duration(rep.Restarts.Lost) != firstRestart {
			t.Errorf("restarts %+v", rep.Restarts)
		}
		// How many of the syncs the training waits for is a matter of chance.
		if got, all := time.Duration(rep.Time.Training), time.Duration(syncs.n.Load())*time.Minute; got < 46*time.Minute || got > 46*time.Minute+all {
			t.Errorf("training took %v; want 46 min and what syncing takes", got)
		}
		if rep.Saves.Count != 4 || rep.Saves.Failed != 0 || time.Duration(rep.Saves.Longest) < 2*time.Minute {
			t.Errorf("saves %+v", rep.Saves)
		}
		var names []string
		for _, c := range rep.Checkpoints {
			names = append(names, c.Name+": "+strings.Join(c.Why, ", "))
			if v := float64(c.Metrics["loss"]); v == v {
				t.Errorf("loss of %s is %v; want NaN", c.Name, v)
			}
		}
		if diff := cmp.Diff(names, []string{"model.ckpt-30: among the last 2", "model.ckpt-40: among the last 2"}); diff != "" {
			t.Errorf("checkpoints (-got +want):\n%s", diff)
		}
		text, err := os.ReadFile(filepath.Join(dir, report.MarkdownName))
		sessiontest.MustNoErr(t, err)
		for _, want := range []string{"**completed**", "0 to 40: 45 made", "| model.ckpt-40 |", "loss = NaN", "5 steps made again"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the text lacks %q:\n%s", want, text)
			}
		}
	})
}

// The report tells apart why a run has ended.
func TestRunReportOutcome(t *testing.T) {
	end := func(context.Context, context.CancelCauseFunc) error { return nil }
	stop := func(cause error) func(context.Context, context.CancelCauseFunc) error {
		return func(ctx context.Context, cancel context.CancelCauseFunc) error {
			cancel(cause)
			<-ctx.Done()
			return nil
		}
	}
	tests := []struct {
		name  string
		train func(ctx context.Context, cancel context.CancelCauseFunc) error
		want  report.Run
		text  string
	}{
		{"end of the training", end, report.Run{Outcome: report.Completed}, "**completed**."},
		{"end of the input", func(context.Context, context.CancelCauseFunc) error { return session.ErrOutOfRange }, report.Run{Outcome: report.Completed}, "**completed**."},
		{"signal in the last step", func(ctx context.Context, cancel context.CancelCauseFunc) error {
			cancel(StopRequest("SIGTERM"))
			return session.ErrCompleted
		}, report.Run{Outcome: report.Completed}, "**completed**."},
		{"signal", stop(StopRequest("SIGTERM")), report.Run{Outcome: report.Stopped, StoppedBy: "SIGTERM"}, "**stopped** by SIGTERM."},
		{"wrapped", stop(fmt.Errorf("host: %w", StopRequest("a request"))), report.Run{Outcome: report.Stopped, StoppedBy: "a request"}, "**stopped** by a request."},
		{"nobody known", stop(nil), report.Run{Outcome: report.Stopped}, "**stopped**."},
		{"another cause", stop(errors.New("lunch")), report.Run{Outcome: report.Stopped, StoppedBy: "lunch"}, "**stopped** by lunch."},
		{"failure", func(context.Context, context.CancelCauseFunc) error { return errors.New("bad") }, report.Run{Outcome: report.Failed, Error: "train: bad"}, "**failed**."},
		{"failure while stopping", func(ctx context.Context, cancel context.CancelCauseFunc) error {
			cancel(StopRequest("SIGINT"))
			return errors.New("bad")
		}, report.Run{Outcome: report.Failed, StoppedBy: "SIGINT", Error: "bad"}, "**failed**"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			sv := newSupervisor(sessiontest.Counter(), dir, 10)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			err := sv.Run(ctx, func(ctx context.Context, _ session.Session) error {
				if got := sv.Report().Outcome; got != report.Running {
					t.Errorf("outcome of a run under way: %q", got)
				}
				return tt.train(ctx, cancel)
			})
			if (err != nil) != (tt.want.Outcome == report.Failed) {
				t.Errorf("Run = %v", err)
			}
			if err != nil {
				tt.want.Error = err.Error()
			}
			rep := readReport(t, dir)
			if diff := cmp.Diff(tt.want, report.Run{Outcome: rep.Outcome, StoppedBy: rep.StoppedBy, Error: rep.Error}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			text, err := os.ReadFile(filepath.Join(dir, report.MarkdownName))
			sessiontest.MustNoErr(t, err)
			if !strings.Contains(string(text), tt.text) {
				t.Errorf("the text lacks %q:\n%s", tt.text, text)
			}
		})
	}
}

func TestRunReportOfFailure(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 10)
	err := sv.Run(t.Context(), func(context.Context, session.Session) error { return errors.New("one | two\nthree") })
	rep := readReport(t, dir)
	if rep.Outcome != report.Failed || rep.Error != err.Error() {
		t.Errorf("report %+v; want the error", rep)
	}
	if got := sv.Report(); got.Outcome != report.Failed || got.Error != err.Error() {
		t.Errorf("report after the run %+v; want the error", got)
	}
	sv = newSupervisor(m, t.TempDir(), 10)
	sv.NoReport = true
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 1)))
	if got := sessiontest.Files(t, sv.Logdir, "run-report*"); len(got) > 0 {
		t.Errorf("report %v was not asked for", got)
	}
	if rep := (&Supervisor{}).Report(); rep.Steps != 0 || rep.Time.Total != 0 {
		t.Errorf("report before a run: %+v", rep)
	}
}
