package trainerd_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// stepsOf returns the steps of points, in order.
func stepsOf(points map[int64]float64) []int64 { return slices.Sorted(maps.Keys(points)) }

// paced returns a training that runs op train n times, each after a pause.
func paced(n int, pause time.Duration) func(ctx context.Context, sess session.Session) error {
	return func(ctx context.Context, sess session.Session) error {
		for range n {
			time.Sleep(pause)
			if err := trainerd.RunOps(ctx, sess, "train"); err != nil {
				return err
			}
		}
		return nil
	}
}

// StepCounterHookTest of TensorFlow's basic_session_run_hooks_test.
func TestStepCounterHook(t *testing.T) {
	for _, c := range []struct {
		name    string
		trigger trainerd.Trigger
		perRun  int64
		runs    int
		pause   time.Duration
		want    []int64
	}{
		{"test_step_counter_every_n_steps", trainerd.Trigger{Steps: 10}, 1, 30, 10 * time.Millisecond, []int64{11, 21}},
		{"test_step_counter_every_n_secs", trainerd.Trigger{Every: 100 * time.Millisecond}, 1, 3, 200 * time.Millisecond, []int64{2, 3}},
		{"test_steps_per_run_less_than_every_n_steps", trainerd.Trigger{Steps: 10}, 5, 5, 10 * time.Millisecond, []int64{15, 25}},
		{"test_steps_per_run_equal_every_n_steps", trainerd.Trigger{Steps: 5}, 5, 5, 10 * time.Millisecond, []int64{10, 15, 20, 25}},
		{"test_steps_per_run_greater_than_every_n_steps", trainerd.Trigger{Steps: 5}, 10, 5, 10 * time.Millisecond, []int64{20, 30, 40, 50}},
		{"by default each 100 steps", trainerd.Trigger{}, 1, 202, time.Millisecond, []int64{101, 201}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, lines := logged()
			sv := hooked(t, &hook.StepCounter{Trigger: c.trigger})
			sv.MetaGraph, sv.Logger = hookGraph(t, "global_step", c.perRun), log
			synctest.Test(t, func(t *testing.T) { run(t, sv, paced(c.runs, c.pause)) })
			rates := points(t, sv.Logdir, "global_step/sec")
			if got := stepsOf(rates); !slices.Equal(got, c.want) {
				t.Errorf("points at %v; want %v", got, c.want)
			}
			for step, rate := range rates {
				if want := float64(c.perRun) / c.pause.Seconds(); step > c.want[0] && (rate < want/1.01 || rate > want*1.01) {
					t.Errorf("rate %v at step %d; want %v", rate, step, want)
				}
			}
			if strings.Contains(lines(), "has not been increased") {
				t.Errorf("a warning of a step that was increased:\n%s", lines())
			}
		})
	}
}

// test_global_step_name
func TestStepCounterHookStepName(t *testing.T) {
	sv := hooked(t, &hook.StepCounter{Trigger: trainerd.Trigger{Steps: 1}})
	sv.MetaGraph, sv.GlobalStep = hookGraph(t, "bar/foo", 1), trainerd.Nodes("bar/foo")
	run(t, sv, times(2))
	if got := stepsOf(points(t, sv.Logdir, "bar/foo/sec")); !slices.Equal(got, []int64{2}) {
		t.Errorf("points at %v; want 2", got)
	}
}

// test_log_warning_if_global_step_not_increased
func TestStepCounterHookWarns(t *testing.T) {
	log, lines := logged()
	sv := hooked(t, &hook.StepCounter{Trigger: trainerd.Trigger{Steps: 1}})
	sv.MetaGraph, sv.Logger = hookGraph(t, "global_step", 0), log
	run(t, sv, times(70))
	if n := strings.Count(lines(), "global step has not been increased"); n != 1 {
		t.Errorf("%d warnings; want 1:\n%s", n, lines())
	}
}

// SummarySaverHookTest and ResourceSummarySaverHookTest: each fetch of the
// summary counts, so that the values tell how often it was computed.
func TestSummarySaverHook(t *testing.T) {
	for _, c := range []struct {
		name    string
		trigger trainerd.Trigger
		runs    int
		pause   time.Duration
		want    map[int64]float64
	}{
		{"test_save_steps", trainerd.Trigger{Steps: 8}, 30, 0, map[int64]float64{1: 1, 9: 2, 17: 3, 25: 4}},
		{"test_save_secs_saving_once_every_step", trainerd.Trigger{Every: 500 * time.Millisecond}, 4, 500 * time.Millisecond, map[int64]float64{1: 1, 2: 2, 3: 3, 4: 4}},
		{"test_save_secs_saving_once_every_three_steps", trainerd.Trigger{Every: 9 * time.Second}, 8, 3100 * time.Millisecond, map[int64]float64{1: 1, 4: 2, 7: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sv := hooked(t, &hook.SummarySaver{Trigger: c.trigger, Ops: []string{"my_summary:0"}})
			synctest.Test(t, func(t *testing.T) { run(t, sv, paced(c.runs, c.pause)) })
			if diff := cmp.Diff(points(t, sv.Logdir, "my_summary"), c.want); diff != "" {
				t.Errorf("points (-got +want):\n%s", diff)
			}
		})
	}
}

// test_multiple_summaries, and the graph's own summary op by default.
func TestSummarySaverHookSeveral(t *testing.T) {
	for _, ops := range [][]string{{"my_summary:0", "my_summary2:0"}, nil} {
		sv := hooked(t, &hook.SummarySaver{Trigger: trainerd.Trigger{Steps: 8}, Ops: ops})
		run(t, sv, times(10))
		for tag, want := range map[string]map[int64]float64{"my_summary": {1: 1, 9: 2}, "my_summary2": {1: 2, 9: 4}} {
			if diff := cmp.Diff(points(t, sv.Logdir, tag), want); diff != "" {
				t.Errorf("ops %v: %s (-got +want):\n%s", ops, tag, diff)
			}
		}
	}
}

// Hooks that do not say when, or have nothing to do, end the run before it
// begins.
func TestRunHooksRefusedAtTheStart(t *testing.T) {
	for want, h := range map[string]trainerd.Hook{
		"SummarySaver: neither Steps nor Every": &hook.SummarySaver{},
		"Profiler: neither Steps nor Every":     &hook.Profiler{},
		"FeedFn: Feed is not set":               &hook.FeedFn{},
	} {
		wantErrorWith(t, hooked(t, h).Run(t.Context(), times(1)), want)
	}
	for want, h := range map[string]trainerd.Hook{
		"SummarySaver: the graph names no summary op":   &hook.SummarySaver{Trigger: trainerd.Trigger{Steps: 1}},
		"Profiler: a session of type *variables.Variab": &hook.Profiler{Trigger: trainerd.Trigger{Steps: 1}},
		"GlobalStepWaiter: the session has no global ":  &hook.GlobalStepWaiter{WaitUntilStep: 1},
	} {
		vars := new(trainerd.Variables)
		if err := vars.Float64("w", []float64{0}); err != nil {
			t.Fatal(err)
		}
		sv := &trainerd.Supervisor{NewSession: vars.Session, Logdir: t.TempDir(), GlobalStep: trainerd.None(), Hooks: []trainerd.Hook{h}}
		wantErrorWith(t, sv.Run(t.Context(), func(context.Context, session.Session) error { return nil }), want)
	}
}
