package trainerd_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// HookedSessionTest of TensorFlow's monitored_session_test.

func TestHookedSessionCallsHooks(t *testing.T) {
	h1, h2 := &fakeHook{}, &fakeHook{}
	sv := hooked(t, h1, h2)
	feeds := map[string]*ckptfmt.Tensor{"a": float(3)}
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		out, err := sess.Run(ctx, feeds, []string{"sum:0"}, []string{"noop"})
		if got := floatsOf(t, out); !slices.Equal(got, []float32{3}) {
			t.Errorf("the training got %v, want 3: its arguments go on to the session", got)
		}
		return err
	})
	for i, h := range []*fakeHook{h1, h2} {
		if h.begun != 1 || h.before != 1 || h.after != 1 || h.ended != 1 {
			t.Errorf("hook %d: begin %d, before %d, after %d, end %d; want 1 of each", i, h.begun, h.before, h.after, h.ended)
		}
		if len(h.values.Results) != 0 || h.values.Options != nil || h.values.Metadata != nil {
			t.Errorf("hook %d asked for nothing and got %v", i, h.values)
		}
		want := hook.RunArgs{Feeds: feeds, Fetches: []string{"sum:0"}, Targets: []string{"noop"}}
		if diff := cmp.Diff(h.context.Args, want, cmp.Comparer(func(a, b *ckptfmt.Tensor) bool { return a == b })); diff != "" {
			t.Errorf("hook %d: original arguments (-got +want):\n%s", i, diff)
		}
	}
}

func TestHookedSessionShouldStop(t *testing.T) {
	h := &fakeHook{}
	sv := hooked(t, h, &fakeHook{})
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		err := trainerd.RunOps(ctx, sess, "noop")
		if sv.ShouldStop() {
			t.Error("a stop before a hook asked for it")
		}
		h.stop = true
		err = errors.Join(err, trainerd.RunOps(ctx, sess, "noop"))
		if !sv.ShouldStop() {
			t.Error("no stop after a hook asked for it")
		}
		return err
	})
}

func TestHookedSessionFetches(t *testing.T) {
	h1 := &fakeHook{request: &hook.RunArgs{Fetches: []string{"five:0"}}}
	h2 := &fakeHook{request: &hook.RunArgs{Fetches: []string{"ten:0", "five"}, Targets: []string{"train"}}}
	sv := hooked(t, h1, h2)
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		out, err := sess.Run(ctx, nil, []string{"sum:0"}, nil)
		for _, c := range []struct {
			who  string
			out  []*ckptfmt.Tensor
			want []float32
		}{{"training", out, []float32{0}}, {"first hook", h1.values.Results, []float32{5}}, {"second hook", h2.values.Results, []float32{10, 5}}} {
			if got := floatsOf(t, c.out); !slices.Equal(got, c.want) {
				t.Errorf("%s got %v, want %v", c.who, got, c.want)
			}
		}
		step, stepErr := trainerd.FetchScalar[int64](context.WithoutCancel(t.Context()), sess, "global_step/Read/ReadVariableOp:0")
		if stepErr != nil || step != 1 {
			t.Errorf("step is %d, %v; want 1: a hook's target runs in the step", step, stepErr)
		}
		return err
	})
}

func TestHookedSessionFeeds(t *testing.T) {
	a, b := map[string]*ckptfmt.Tensor{"a": float(5)}, map[string]*ckptfmt.Tensor{"b:0": float(10)}
	sv := hooked(t, &fakeHook{request: &hook.RunArgs{Feeds: a}}, &fakeHook{request: &hook.RunArgs{Feeds: b}})
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		for _, c := range []struct {
			feeds map[string]*ckptfmt.Tensor
			want  float32
		}{{nil, 15}, {map[string]*ckptfmt.Tensor{"c": float(20)}, 35}} {
			given := maps.Clone(c.feeds)
			out, err := sess.Run(ctx, given, []string{"sum:0"}, nil)
			if err != nil {
				return err
			}
			if got := floatsOf(t, out)[0]; got != c.want {
				t.Errorf("sum is %v, want %v", got, c.want)
			}
			if len(given) != len(c.feeds) {
				t.Errorf("the training's feeds were changed: %v", given)
			}
		}
		return nil
	})
	if len(a) != 1 || len(b) != 1 {
		t.Error("a hook's feeds were changed")
	}
}

func TestHookedSessionFeedConflicts(t *testing.T) {
	feed := func(names ...string) *fakeHook {
		feeds := map[string]*ckptfmt.Tensor{}
		for _, name := range names {
			feeds[name] = float(1)
		}
		return &fakeHook{request: &hook.RunArgs{Feeds: feeds}}
	}
	for name, c := range map[string]struct {
		hooks []trainerd.Hook
		own   string
	}{
		"two hooks":               {[]trainerd.Hook{feed("a"), feed("a")}, "c"},
		"two hooks, other output": {[]trainerd.Hook{feed("a"), feed("a:0")}, "c"},
		"hook and training":       {[]trainerd.Hook{feed("a"), feed("b")}, "b"},
		"other output":            {[]trainerd.Hook{feed("b:0")}, "b"},
		"training alone":          {[]trainerd.Hook{&fakeHook{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := hooked(t, c.hooks...).Run(t.Context(), func(ctx context.Context, sess session.Session) error {
				_, err := sess.Run(ctx, map[string]*ckptfmt.Tensor{"a": float(1), c.own: float(1)}, []string{"sum:0"}, nil)
				return err
			})
			if c.own == "" {
				return // "" is no tensor: the session says so
			}
			wantErrorWith(t, err, "same tensor is fed twice: ")
		})
	}
}

func TestHookErrorsEndTheCall(t *testing.T) {
	h := &fakeHook{failBefore: errHook, failBeforeCall: 2}
	err := hooked(t, h).Run(t.Context(), times(3))
	if !errors.Is(err, errHook) || h.after != 1 {
		t.Errorf("Run = %v after %d calls; want the hook's error after 1", err, h.after)
	}
}

// RaiseOnceAtCountN of the same file: a session that a hook says is lost is
// made again, from its last checkpoint.
func TestHookAbortsTheSession(t *testing.T) {
	for _, code := range []tfpb.Code{tfpb.Code_ABORTED, tfpb.Code_UNAVAILABLE} {
		h := &fakeHook{failBefore: &session.OpError{Code: code}, failBeforeCall: 3}
		sv := hooked(t, h)
		sv.MaxRestarts, sv.SaveModelSteps = 1, 1
		var steps []int64
		run(t, sv, func(ctx context.Context, sess session.Session) error {
			return sv.UntilStop(func() error {
				step, err := trainerd.FetchScalar[int64](t.Context(), sess, "global_step/Read/ReadVariableOp:0")
				if steps = append(steps, step); err != nil || step == 3 {
					return errors.Join(err, session.ErrCompleted)
				}
				return trainerd.RunOps(ctx, sess, "train")
			})
		})
		if want := []int64{0, 1, 2, 2, 3}; !slices.Equal(steps, want) {
			t.Errorf("%v: steps %v; want %v", code, steps, want)
		}
	}
}

// A service's calls are not the training's.
func TestHooksLeaveServicesAlone(t *testing.T) {
	h := &fakeHook{}
	sv := hooked(t, h)
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		looked := make(chan error, 1)
		sv.Loop("look", 0, func(ctx context.Context) error {
			select {
			case looked <- trainerd.RunOps(ctx, sess, "noop"):
			default:
			}
			return nil
		})
		return <-looked
	})
	if h.before != 0 {
		t.Errorf("the hook took part in %d calls of a service", h.before)
	}
}

// test_merge_run_options_from_hooks and test_merge_caller_and_hook_run_options.
func TestMergeRunOptions(t *testing.T) {
	watch := func(name string) *tfpb.DebugOptions {
		return &tfpb.DebugOptions{DebugTensorWatchOpts: []*tfpb.DebugTensorWatch{{NodeName: name}}}
	}
	h1 := &fakeHook{request: &hook.RunArgs{Options: &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_SOFTWARE_TRACE, TimeoutInMs: 30_000, DebugOptions: watch("one")}}}
	h2 := &fakeHook{request: &hook.RunArgs{Options: &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_HARDWARE_TRACE, TimeoutInMs: 60_000,
		OutputPartitionGraphs: true, DebugOptions: watch("two")}}}
	own := &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE, ReportTensorAllocationsUponOom: true, DebugOptions: watch("own")}
	run(t, hooked(t, h1, h2), func(ctx context.Context, sess session.Session) error {
		if err := trainerd.RunOps(ctx, sess, "train"); err != nil {
			return err
		}
		for _, h := range []*fakeHook{h1, h2} {
			o := h.values.Options
			if o.GetTraceLevel() != tfpb.RunOptions_HARDWARE_TRACE || o.GetTimeoutInMs() != 60_000 || !o.GetOutputPartitionGraphs() ||
				o.GetReportTensorAllocationsUponOom() || len(o.GetDebugOptions().GetDebugTensorWatchOpts()) != 2 {
				t.Errorf("merged options: %v", o)
			}
			if len(h.values.Metadata.GetStepStats().GetDevStats()) != 1 {
				t.Errorf("metadata: %v; want that of one device", h.values.Metadata)
			}
		}
		_, meta, err := session.RunWithOptions(ctx, sess, own, nil, nil, []string{"train"})
		o := h1.values.Options
		if o.GetTraceLevel() != tfpb.RunOptions_FULL_TRACE || !o.GetReportTensorAllocationsUponOom() || len(o.GetDebugOptions().GetDebugTensorWatchOpts()) != 3 {
			t.Errorf("merged with the training's: %v", o)
		}
		if meta != h1.values.Metadata {
			t.Error("the training and its hooks got different metadata")
		}
		return err
	})
	if len(own.GetDebugOptions().GetDebugTensorWatchOpts()) != 1 || own.GetTimeoutInMs() != 0 {
		t.Errorf("the training's options were changed: %v", own)
	}
}

// A session that takes no options takes a timeout at least.
func TestRunOptionsOfPlainSession(t *testing.T) {
	s := plainSession{}
	_, _, err := session.RunWithOptions(t.Context(), s, &tfpb.RunOptions{TimeoutInMs: 1}, nil, nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v; want that of the timeout", err)
	}
	_, _, err = session.RunWithOptions(t.Context(), s, &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE}, nil, nil, nil)
	if !errors.Is(err, session.ErrUnimplemented) {
		t.Errorf("error %v; want that it does not trace", err)
	}
}

// plainSession is a session whose calls take until their time is over.
type plainSession struct{}

func (plainSession) Run(ctx context.Context, _ map[string]*ckptfmt.Tensor, _, _ []string) ([]*ckptfmt.Tensor, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (plainSession) Close() error { return nil }

// A tracing session of each kind records steps.
func TestTraceAtEveryMaster(t *testing.T) {
	for _, kind := range masters {
		h := &fakeHook{request: &hook.RunArgs{Options: &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE}}}
		sv := hooked(t, h)
		sv.Master, sv.Open = kind.master(t), kind.open()
		run(t, sv, times(1))
		var nodes []string
		for _, dev := range h.values.Metadata.GetStepStats().GetDevStats() {
			for _, n := range dev.GetNodeStats() {
				nodes = append(nodes, n.GetNodeName())
			}
		}
		if !slices.Contains(nodes, "raise") {
			t.Errorf("%s: traced %v; want raise among them", kind.name, nodes)
		}
	}
}
