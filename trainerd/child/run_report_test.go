//go:build unix

package child

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	runreport "github.com/trainerd/trainerd/trainerd/report"
)

// TestRunReport has a program that fails once and leaves a damaged checkpoint, and
// one that fails forever.
func TestRunReport(t *testing.T) {
	sv, out := supervise(t, "steps 1 10;write ckpt-10;steps 11 14;tear ckpt-14.safetensors;exit 1|resume 20;write ckpt-20")
	sv.Retention = []retention.Policy{retention.Last(3), retention.Best{Metric: "loss"}}
	read := func() (r runreport.Run) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(sv.Logdir, runreport.JSONName))
		if err := errors.Join(err, json.Unmarshal(b, &r)); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("%v; output %q", err, out)
	}
	r := read()
	if r.Outcome != runreport.Completed || r.FirstStep != 0 || r.LastStep != 20 || r.Steps != 24 || r.Restarts.Count != 1 || r.Restarts.StepsAgain != 4 || r.Saves.Count != 2 {
		t.Errorf("report %+v", r)
	}
	if !slices.Equal(r.PassedOver, []string{"ckpt-14.safetensors"}) {
		t.Errorf("skipped %v", r.PassedOver)
	}
	if len(r.Checkpoints) != 2 || r.Checkpoints[1].Step != 20 || r.Checkpoints[1].Metrics["loss"] != 0.05 || len(r.Checkpoints[1].Why) != 2 {
		t.Errorf("checkpoints %+v", r.Checkpoints)
	}
	if s := sv.Stats(); s.Restarts != 1 || s.FailedSaves != 1 {
		t.Errorf("Stats = %+v", s)
	}
	sv.Env, sv.Restarts.Max = []string{"CHILD_SCRIPT=exit 1"}, -1
	if _, err := sv.Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if r := read(); r.Outcome != runreport.Failed || r.Error == "" || r.Restored != "ckpt-20" {
		t.Errorf("report of a failure %+v", r)
	}
}

// TestRunReportOfASilentProgram has a program that reports nothing: what it has saved
// says how far it came.
func TestRunReportOfASilentProgram(t *testing.T) {
	sv, _ := supervise(t, "write ckpt-10;exit 1|write ckpt-140")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var r runreport.Run
	b, err := os.ReadFile(filepath.Join(sv.Logdir, runreport.JSONName))
	if err := errors.Join(err, json.Unmarshal(b, &r)); err != nil || r.LastStep != 140 {
		t.Errorf("it came to step %d, want 140; %v", r.LastStep, err)
	}
}
