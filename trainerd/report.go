package trainerd

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/trainerd/report"
)

// Report returns the report of the current run up to now, or of the last run.
func (sv *Supervisor) Report() *report.Run {
	return sv.report(sv.current())
}

func (sv *Supervisor) report(r *run) *report.Run {
	a := sv.stats.read()
	host, _ := os.Hostname() // one without a name has none in the report
	rep := &report.Run{
		Host: host, PID: os.Getpid(), Logdir: sv.Logdir,
		Begun: a.begun.UTC(), Ended: time.Now().UTC(), Outcome: a.outcome, StoppedBy: a.stoppedBy, Error: a.failure,
		Restored: baseName(a.restored), PassedOver: baseNames(a.damaged),
		FirstStep: a.firstStep, LastStep: a.lastStep, Steps: a.stepsDone,
		Time: report.Times{Preparing: report.Seconds(a.preparing), Training: report.Seconds(a.training), Stopping: report.Seconds(a.stopping)},
		Saves: report.Saves{Count: a.saves, Failed: a.failedSaves, Skipped: a.skippedSaves, Writing: report.Seconds(a.saving),
			Longest: report.Seconds(a.longestSave), Stalled: report.Seconds(a.stalled), LongestStall: report.Seconds(a.longestStall)},
		Restarts:    report.Restarts{Count: a.restarts, Rewinds: a.rewinds, Lost: report.Seconds(a.replaced), StepsAgain: a.stepsAgain},
		Checkpoints: []report.Checkpoint{},
	}
	if !a.begun.IsZero() {
		rep.Time.Total = report.Seconds(time.Since(a.begun))
	}
	if a.training > 0 {
		rep.StepsPerSecond = float64(a.stepsDone) / a.training.Seconds()
	}
	if r != nil && r.plan.saver != nil {
		rep.Checkpoints = report.Checkpoints(r.plan.saver.Kept())
	}
	return rep
}

func baseName(prefix string) string {
	if prefix == "" {
		return ""
	}
	return filepath.Base(prefix)
}

// writeReport writes the report of a run that has ended.
func (sv *Supervisor) writeReport(r *run) error {
	dir, err := r.home.dir()
	if err != nil {
		return fmt.Errorf("report of the run: %w", err)
	}
	return sv.report(r).Write(r.fs(), dir)
}

// baseNames returns the last elements of paths.
func baseNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = filepath.Base(p)
	}
	return names
}
