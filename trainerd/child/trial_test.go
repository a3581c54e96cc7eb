//go:build unix

package child

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestFirstFolderIsProven has a program that ends after it has written the first of
// its folders, and nothing shows that this is complete: it is given to the program,
// and counts once that has continued from it.
func TestFirstFolderIsProven(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		saved        int // how often
		left         string
		aside        bool
	}{
		{"killed, and whole", "steps 1 10;write c-10/w c-10/m;kill 9|env STEP;resume 30;exit 1|env STEP;resume 40", 1, "c-10", false},
		{"an error, and whole", "steps 1 10;write c-10/w;exit 1|env STEP;resume 30", 1, "c-10", false},
		{"passed by it", "steps 1 10;write c-10/w;steps 11 12;kill 9|env STEP;exit 1|resume 30", 1, "c-10", false},
		{"a mark", "steps 1 10;write c-10/w c-10/COMMITTED;kill 9|env STEP;exit 1|resume 30", 1, "c-10", false},
		{"cut short", "steps 1 10;write c-10/w;exit 1|env STEP;exit 1|env STEP;exit 1|steps 1 10;write c-10/w c-10/m", 1, "c-10", true},
		{"replaced", "steps 1 10;write c-10/w;exit 1|steps 1 10;write c-10/m;steps 11 20", 1, "c-10", false},
		{"preempted", "steps 1 10;write c-10/w;exit 75|env STEP;exit 1|resume 30", 1, "c-10", false},
		{"of an earlier start", "steps 1 10;write c-10/w;kill 9|env STEP;steps 1 1;exit 75|env STEP", 0, "c-10", false},
		{"two alike", "steps 1 1;write c-10000/w;kill 9|steps 2 3;write c-20000/w;kill 9|steps 3 4;exit 1|steps 4 5", 2, "c-20000", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sv, out := supervise(t, tc.script)
			sv.Checkpoints, sv.Retention = "c-*", []retention.Policy{retention.Last(1)}
			log := newScreen()
			sv.Log = slog.New(slog.NewTextHandler(log, nil))
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatalf("%v\n%s", err, log)
			}
			if got := strings.Count(log.String(), "msg=saved"); got != tc.saved {
				t.Errorf("%d checkpoints were announced, want %d; output %q, log\n%s", got, tc.saved, out, log)
			}
			if got := strings.Contains(log.String(), "moved it aside"); got != tc.aside {
				t.Errorf("moved aside: %v, want %v:\n%s", got, tc.aside, log)
			}
			if strings.Contains(tc.script, "env STEP") && !strings.Contains(out.String(), "STEP is \"10\"") {
				t.Errorf("the program was not given it: %q", out)
			}
			if left := childtest.Below(t, sv.Logdir); !slices.Contains(left, filepath.Join(tc.left, "w")) {
				t.Errorf("left: %v, want %s", left, tc.left)
			}
		})
	}
}

// TestFirstFolderAtAStop has programs whose first folder comes at a stop: one that
// SIGTERM ends once its handler has saved, and one that is killed while it saves.
func TestFirstFolderAtAStop(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		lost   bool
	}{
		"saved":            {"steps 1 9;polite c-10/w;date c-10/w;raise", false},
		"killed meanwhile": {"steps 1 9;polite c-10/w;kill 9", true},
		"an exit code":     {"steps 1 9;polite c-10/w;exit 143", false},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, tc.script)
			sv.Checkpoints = "c-*"
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			sv.Stdout = writerFunc(func(b []byte) (int, error) {
				if strings.Contains(string(b), "ready") {
					stop()
				}
				return out.Write(b)
			})
			_, err := sv.Run(ctx)
			if is[*SaveLostError](err) != tc.lost || !tc.lost && err != nil {
				t.Errorf("Run = %v, want a lost save: %v", err, tc.lost)
			}
		})
	}
}

// TestIsPast has what shows that a program has finished writing its first folder: it was
// found at a step of a start, and the program is further now.
func TestIsPast(t *testing.T) {
	const name, epoch = "c-10", "epoch_10"
	for what, tc := range map[string]struct {
		file  string
		found found.Moment // some time ago
		ago   time.Duration
		now   attempt
		want  bool
	}{
		"a step after it":              {name, found.Moment{Step: 10}, 0, attempt{step: 11}, true},
		"its step":                     {name, found.Moment{Step: 10}, 0, attempt{step: 10}, false},
		"a step before the name's":     {name, found.Moment{Step: 5}, 0, attempt{step: 9}, false},
		"a step after an epoch":        {epoch, found.Moment{Step: 5}, 0, attempt{step: 6}, true},
		"the step of an epoch":         {epoch, found.Moment{Step: 5}, 0, attempt{step: 5}, false},
		"silent":                       {name, found.Moment{Attempt: 2}, silentSave, attempt{step: -1}, true},
		"not silent for long":          {name, found.Moment{Attempt: 2}, silentSave - 1, attempt{step: -1}, false},
		"silent, and suspended":        {name, found.Moment{Attempt: 2}, silentSave, attempt{step: -1, paused: true}, false},
		"silent, of an earlier start":  {name, found.Moment{Attempt: 1}, silentSave, attempt{step: -1}, false},
		"it reports":                   {epoch, found.Moment{Attempt: 2}, silentSave, attempt{step: 0}, false},
		"it ended well":                {name, found.Moment{Attempt: 2}, 0, attempt{step: -1, endedWell: true}, true},
		"a later one ended well":       {name, found.Moment{Attempt: 1}, 0, attempt{step: -1, endedWell: true}, false},
		"it ended well after its step": {name, found.Moment{Step: 10, Attempt: 2}, 0, attempt{step: 10, endedWell: true}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &run{attempts: 2, attempt: tc.now}
			tc.found.At = time.Now()
			c := foundAt(t, tc.file, tc.found)
			time.Sleep(tc.ago)
			if got := r.isPast(&c); got != tc.want {
				t.Errorf("%s: %v", what, got)
			}
		})
	}
}

// TestFirstStepIsPast has an epoch that is there before the first report: any step comes after it.
func TestFirstStepIsPast(t *testing.T) {
	r := &run{attempts: 2, attempt: attempt{step: -1, started: true}}
	c := foundAt(t, "epoch_10", r.moment())
	for step, want := range map[int64]bool{-1: false, 0: false, 1: true} {
		if r.attempt.step = step; r.isPast(&c) != want {
			t.Errorf("at step %d: %v", step, !want)
		}
	}
}

// TestIsPastWhileItSaves has a checkpoint that the program has written between its steps: these do
// not show that it is complete, but a start that has continued from it does, a good end,
// and a minute without a change.
func TestIsPastWhileItSaves(t *testing.T) {
	for what, tc := range map[string]struct {
		attempt int // that has written it
		ago     time.Duration
		now     attempt
		want    bool
	}{
		"many steps after it": {2, silentSave - 1, attempt{step: 99}, false},
		"a minute":            {2, silentSave, attempt{step: 12}, true},
		"a minute of pause":   {2, silentSave, attempt{step: 12, paused: true}, false},
		"a good end":          {2, 0, attempt{step: 12, endedWell: true}, true},
		"a step of a start":   {1, 0, attempt{step: 13}, true},
		"none of a start":     {1, silentSave, attempt{step: -1}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &run{attempts: 2, attempt: tc.now}
			at := func(step int64) found.Moment {
				return found.Moment{Step: step, Attempt: tc.attempt, At: time.Now()}
			}
			c := foundLast(t, "c-10", at(10), at(11), at(12))
			time.Sleep(tc.ago)
			if got := r.isPast(&c); got != tc.want {
				t.Errorf("%s: %v", what, got)
			}
		})
	}
}

func TestEndsWell(t *testing.T) {
	for e, want := range map[*Exit]bool{
		{Code: 0}: true, {Code: exitTempFail}: true, {Code: 143}: true,
		{Code: 1}: false, {Code: 137}: false, {Code: -1, Signal: syscall.SIGTERM}: false, {Signal: syscall.SIGKILL}: false,
	} {
		if got := endsWell(e); got != want {
			t.Errorf("%v: %v", e, got)
		}
	}
}
