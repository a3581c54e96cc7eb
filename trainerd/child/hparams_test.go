//go:build unix

package child

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// Hyperparameters come after the START of each start, which may drop those of the
// start before, and the end of the job is marked once.
func TestHParams(t *testing.T) {
	sv, _ := supervise(t, "steps 1 4;write ckpt-2;exit 1|resume 6")
	sv.HParams = map[string]any{"lr": 0.1, "amp": true}
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := curve(t, sv.Logdir, "_hparams_/session_start_info"), []int64{1, 3}; !slices.Equal(got, want) {
		t.Errorf("hyperparameters at steps %v, want %v", got, want)
	}
	if got, want := curve(t, sv.Logdir, "_hparams_/session_end_info"), []int64{6}; !slices.Equal(got, want) {
		t.Errorf("end at steps %v, want %v", got, want)
	}
}

// What is stopped may be resumed: it has no end.
func TestHParamsOfFailure(t *testing.T) {
	sv, _ := supervise(t, "steps 1 4;exit 1")
	sv.HParams, sv.Restarts.Max = map[string]any{"lr": 0.1}, -1
	if _, err := sv.Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if got := curve(t, sv.Logdir, "_hparams_/session_end_info"); len(got) != 0 {
		t.Errorf("end at steps %v", got)
	}
}

// TestWhichHParams has jobs with and without hyperparameters, and with one that TensorBoard
// cannot show, which have reports or none.
func TestWhichHParams(t *testing.T) {
	for _, tc := range []struct {
		params       map[string]any
		says         string
		begins, ends []int64
		cannot       bool
	}{
		{map[string]any{"lr": 0.1}, "step=0 loss=1", []int64{0}, []int64{0}, false},
		{map[string]any{"lr": 0.1}, "hello", nil, nil, false},
		{nil, "step=1 loss=1", nil, nil, false},
		{map[string]any{"lr": struct{}{}}, "step=1 loss=1", nil, []int64{1}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(p *simProgram) int { p.say("%s", tc.says); return 0 })
			sv.HParams = tc.params
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			begins, ends := curve(t, sv.Logdir, "_hparams_/session_start_info"), curve(t, sv.Logdir, "_hparams_/session_end_info")
			if !slices.Equal(begins, tc.begins) || !slices.Equal(ends, tc.ends) {
				t.Errorf("%v and %q: they begin at %v, and end at %v; want %v, %v", tc.params, tc.says, begins, ends, tc.begins, tc.ends)
			}
			if got := curve(t, sv.Logdir, ""); len(got) > 0 {
				t.Errorf("%v: points without a name at %v", tc.params, got)
			}
			if got := strings.Contains(log.String(), "cannot write the hyperparameters"); got != tc.cannot || strings.Contains(log.String(), "an event cannot be written") {
				t.Errorf("%v: the log:\n%s", tc.params, log)
			}
		})
	}
}
