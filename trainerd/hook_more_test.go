package trainerd_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// GlobalStepWaiterHookTest: test_not_wait_for_step_zero, test_wait_for_step.
func TestGlobalStepWaiterHook(t *testing.T) {
	for _, until := range []int64{0, -1, 3} {
		sv := hooked(t, &hook.GlobalStepWaiter{WaitUntilStep: until, Poll: time.Second})
		synctest.Test(t, func(t *testing.T) {
			run(t, sv, func(ctx context.Context, sess session.Session) error {
				began := time.Now()
				sv.Loop("others", 2*time.Second, func(ctx context.Context) error { return trainerd.RunOps(ctx, sess, "train") })
				if err := trainerd.RunOps(ctx, sess, "noop"); err != nil {
					return err
				}
				// The others' steps end at 0, 2 and 4 seconds.
				if waited := time.Since(began); until <= 0 && waited != 0 || until > 0 && waited < 4*time.Second {
					t.Errorf("until %d: waited %v", until, waited)
				}
				return nil
			})
		})
	}
}

func TestGlobalStepWaiterHookStops(t *testing.T) {
	sv := hooked(t, &hook.GlobalStepWaiter{WaitUntilStep: 1000})
	synctest.Test(t, func(t *testing.T) {
		run(t, sv, func(ctx context.Context, sess session.Session) error {
			time.AfterFunc(time.Minute, func() { sv.RequestStop(nil) })
			return trainerd.RunOps(ctx, sess, "train")
		})
	})
}

// FinalOpsHookTest: test_final_ops_is_scalar_tensor, test_final_ops_is_tensor,
// test_final_ops_with_dictionary.
func TestFinalOpsHook(t *testing.T) {
	h := &hook.FinalOps{Fetches: []string{"five:0", "plus_one:0"}, Feeds: map[string]*ckptfmt.Tensor{"x": float(-3)}}
	run(t, hooked(t, h), func(ctx context.Context, sess session.Session) error {
		if h.Values != nil {
			t.Error("final ops have values before the end")
		}
		return nil
	})
	if got := floatsOf(t, h.Values); !slices.Equal(got, []float32{5, -2}) {
		t.Errorf("values are %v, want 5, -2", got)
	}
}

// test_final_ops_triggers_out_of_range_error
func TestFinalOpsHookEndOfInput(t *testing.T) {
	log, lines := logged()
	h := &hook.FinalOps{Fetches: []string{"next:0"}}
	sv := hooked(t, h)
	sv.MetaGraph, sv.Logger = emptyQueue(t), log
	run(t, sv, func(context.Context, session.Session) error { return nil })
	if h.Values != nil || !strings.Contains(lines(), "dependency back to some input source") {
		t.Errorf("values %v; log:\n%s", h.Values, lines())
	}
}

// emptyQueue is a graph whose tensor next is of a queue that is closed.
func emptyQueue(t *testing.T) *tfpb.MetaGraphDef {
	t.Helper()
	b := graph.NewBuilder()
	types := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{tfpb.DataType_DT_FLOAT}}}}
	q := b.Add(graph.NodeSpec{Op: "FIFOQueueV2", Name: "queue", Attrs: graph.Attrs{"component_types": types},
		Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_RESOURCE}}})
	end := b.Add(graph.NodeSpec{Op: "QueueCloseV2", Name: "close", Inputs: []graph.Output{q.Output(0)}})
	b.After([]*graph.Node{end}, func() {
		next := b.Add(graph.NodeSpec{Op: "QueueDequeueV2", Name: "dequeue", Inputs: []graph.Output{q.Output(0)}, Attrs: graph.Attrs{"component_types": types},
			Outputs: []graph.OutputType{{DType: tfpb.DataType_DT_FLOAT}}})
		b.Identity("next", next.Output(0))
	})
	b.Group("train")
	b.GlobalStep()
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// FeedFnHookTest: test_feeding_placeholder.
func TestFeedFnHook(t *testing.T) {
	n := float32(0)
	h := &hook.FeedFn{Feed: func(context.Context) (map[string]*ckptfmt.Tensor, error) {
		if n++; n > 2 {
			return nil, session.ErrOutOfRange
		}
		return map[string]*ckptfmt.Tensor{"x": float(n)}, nil
	}}
	var got []float32
	run(t, hooked(t, h), func(ctx context.Context, sess session.Session) error {
		for {
			v, err := trainerd.FetchScalar[float32](ctx, sess, "plus_one:0")
			if err != nil {
				return err // the end of the input
			}
			got = append(got, v)
		}
	})
	if !slices.Equal(got, []float32{2, 3}) {
		t.Errorf("fetched %v, want 2, 3", got)
	}
}

// ProfilerHookTest, in steps at which there is a timeline: of
// test_save_secs_does_not_save_in_first_step, test_save_secs_saves_periodically,
// test_save_steps_does_not_save_in_first_step, test_save_steps_saves_periodically.
func TestProfilerHook(t *testing.T) {
	for _, c := range []struct {
		name    string
		trigger trainerd.Trigger
		at      []time.Duration // of the runs
		want    []string
	}{
		{"secs, first step", trainerd.Trigger{Every: 2 * time.Second}, []time.Duration{0}, nil},
		{"secs", trainerd.Trigger{Every: 2 * time.Second}, []time.Duration{0, 2500 * time.Millisecond, 2600 * time.Millisecond, 4400 * time.Millisecond, 4500 * time.Millisecond},
			[]string{"timeline-2.json", "timeline-5.json"}},
		{"steps, first step", trainerd.Trigger{Steps: 1}, []time.Duration{0}, nil},
		{"steps", trainerd.Trigger{Steps: 2}, make([]time.Duration, 5), []string{"timeline-2.json", "timeline-4.json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sv := hooked(t, &hook.Profiler{Trigger: c.trigger})
			synctest.Test(t, func(t *testing.T) {
				run(t, sv, func(ctx context.Context, sess session.Session) error {
					began := time.Now()
					for _, at := range c.at {
						time.Sleep(time.Until(began.Add(at)))
						if err := trainerd.RunOps(ctx, sess, "train"); err != nil {
							return err
						}
					}
					return nil
				})
			})
			got, err := filepath.Glob(filepath.Join(sv.Logdir, "timeline-*.json"))
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range got {
				got[i] = filepath.Base(name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("timelines %v; want %v", got, c.want)
			}
		})
	}
}

// test_run_metadata_saves; and the timeline is one that Chrome reads.
func TestProfilerHookWrites(t *testing.T) {
	for _, master := range []string{"", target.Local} {
		sv := hooked(t, &hook.Profiler{Trigger: trainerd.Trigger{Steps: 1}})
		sv.Master = master
		run(t, sv, times(2))
		var tags []string
		for _, e := range sessiontest.Events(t, sv.Logdir) {
			if m := e.GetTaggedRunMetadata(); m != nil {
				tags = append(tags, m.GetTag())
			}
		}
		if !slices.Equal(tags, []string{"step_2"}) {
			t.Errorf("run metadata %v; want step_2", tags)
		}
		text, err := os.ReadFile(filepath.Join(sv.Logdir, "timeline-2.json"))
		if err != nil {
			t.Fatal(err)
		}
		var trace struct {
			TraceEvents []struct {
				Name, Ph string
				Ts, Dur  int64
				Args     map[string]string
			}
		}
		if err := json.Unmarshal(text, &trace); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range trace.TraceEvents {
			found = found || e.Ph == "X" && e.Name == "AssignAddVariableOp" && e.Args["name"] == "raise" && e.Ts > 0 && e.Dur > 0
		}
		if !found {
			t.Errorf("no op raise in %s", text)
		}
	}
}
