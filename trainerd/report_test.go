package trainerd

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

func readReport(t *testing.T, dir string) *RunReport {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, ReportJSON))
	mustNoErr(t, err)
	rep := new(RunReport)
	mustNoErr(t, json.Unmarshal(b, rep))
	return rep
}

// The report says how long what took, in a run whose session was lost once.
func TestRunReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := counterModel()
		sv := newSupervisor(m, dir, 10)
		sv.Saver = &Saver{FS: slowFS{atomicfile.OrOS(nil)}, MaxToKeep: 2}
		sv.MaxRestarts, sv.SaveGrace = 1, -1
		lost := false
		mustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s Session) error {
			for n, _ := scalarInt(m.get("global_step")); n < 40; n++ {
				time.Sleep(time.Minute)
				if n == 25 && !lost {
					lost = true
					return ErrAborted
				}
				sv.ReportMetric("loss", math.NaN())
				if err := sv.StepDone(ctx, m.step()); err != nil {
					return err
				}
			}
			return nil
		}))
		rep := readReport(t, dir)
		if rep.Outcome != OutcomeDone || rep.FirstStep != 0 || rep.LastStep != 40 || rep.Steps != 45 || rep.PID != os.Getpid() {
			t.Errorf("report %+v; want 45 steps from 0 to 40", rep)
		}
		if rep.Restarts.Count != 1 || rep.Restarts.StepsAgain != 5 || time.Duration(rep.Restarts.Lost) != firstRestart {
			t.Errorf("restarts %+v", rep.Restarts)
		}
		if got := time.Duration(rep.Time.Training); got < 46*time.Minute || got > 55*time.Minute {
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
		text, err := os.ReadFile(filepath.Join(dir, ReportMarkdown))
		mustNoErr(t, err)
		for _, want := range []string{"**done**", "0 to 40: 45 made", "| model.ckpt-40 |", "loss = NaN", "5 steps made again"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the text lacks %q:\n%s", want, text)
			}
		}
	})
}

func TestRunReportOfFailure(t *testing.T) {
	dir := t.TempDir()
	m := counterModel()
	sv := newSupervisor(m, dir, 10)
	err := sv.Run(t.Context(), func(context.Context, Session) error { return errors.New("one | two\nthree") })
	rep := readReport(t, dir)
	if rep.Outcome != OutcomeFailed || rep.Error != err.Error() {
		t.Errorf("report %+v; want the error", rep)
	}
	sv = newSupervisor(m, t.TempDir(), 10)
	sv.NoReport = true
	mustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 1)))
	if got := files(t, sv.Logdir, "run-report*"); len(got) > 0 {
		t.Errorf("report %v was not asked for", got)
	}
	if rep := (&Supervisor{}).Report(); rep.Steps != 0 || rep.Time.Total != 0 {
		t.Errorf("report before a run: %+v", rep)
	}
}
