//go:build unix

package child

import (
	"slices"
	"testing"
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
