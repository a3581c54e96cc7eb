package daemon

import (
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/control"
)

// TestChildWatchSays has programs that report less than they have done.
func TestChildWatchSays(t *testing.T) {
	for _, tc := range []struct {
		name   string
		w      childWatch
		at     string
		silent bool
	}{
		{"saved more than reported", childWatch{step: 150, saved: child.Checkpoint{Step: 300}, reported: true}, " at step 300", false},
		{"reported more than saved", childWatch{step: 150, saved: child.Checkpoint{Step: 100}, reported: true}, " at step 150", false},
		{"saved alone", childWatch{saved: child.Checkpoint{Step: 300}}, " at step 300", true},
		{"nothing left to do", childWatch{resumed: true}, "", false},
		{"a checkpoint without a step", childWatch{saved: child.Checkpoint{Step: found.NoStep}}, "", true},
	} {
		if got := tc.w.at(); got != tc.at {
			t.Errorf("%s: at() = %q, want %q", tc.name, got, tc.at)
		}
		if text := tc.w.silence(); text != "" && !strings.HasSuffix(text, "\n") {
			t.Errorf("%s: silence() = %q, which does not end its line", tc.name, text)
		}
		if got := strings.Contains(tc.w.silence(), "child.patterns"); got != tc.silent {
			t.Errorf("%s: silence() = %q, want one: %v", tc.name, tc.w.silence(), tc.silent)
		}
	}
}

// TestChildWatchStops has the trainerds of two nodes: only the chief knows the step.
func TestChildWatchStops(t *testing.T) {
	for want, w := range map[string]childWatch{
		"stopped\n":              {follows: true, step: 644},
		"stopped at step 1128\n": {follows: true, step: 1128, reported: true},
	} {
		var text strings.Builder
		w.reportStopped(RunOptions{Stderr: &text})
		if text.String() != want {
			t.Errorf("got %q, want %q", text.String(), want)
		}
	}
}

// TestStatusOfFullDisk has a program that failed on a full disk, or for another reason, and one
// that is not started again: the status says what the next start waits for.
func TestStatusOfFullDisk(t *testing.T) {
	for _, tc := range []struct {
		full, again bool
		want        string
	}{{true, true, "room on the disk"}, {false, true, ""}, {true, false, ""}} {
		w := childWatch{monitor: control.NewMonitor("job", t.TempDir(), 1)}
		w.Ended(child.Exit{DiskFull: tc.full}, tc.again, 0)
		if got := w.monitor.Status().Waiting; got != tc.want {
			t.Errorf("%+v: it waits for %q", tc, got)
		}
		w.monitor.Begin(w.job, 0, 0, "")
		if got := w.monitor.Status().Waiting; got != "" {
			t.Errorf("%+v: after the start it waits for %q", tc, got)
		}
	}
}
