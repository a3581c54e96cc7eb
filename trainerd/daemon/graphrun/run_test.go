package graphrun

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// writeGraph writes a MetaGraphDef that is given as text, with queue runners.
func writeGraph(t *testing.T, text string, runners ...*tfpb.QueueRunnerDef) string {
	t.Helper()
	meta := &tfpb.MetaGraphDef{}
	if err := tfproto.UnmarshalText([]byte(text), meta); err != nil {
		t.Fatal(err)
	}
	if len(runners) > 0 {
		list := &tfpb.CollectionDef_BytesList{}
		for _, r := range runners {
			list.Value = append(list.Value, tfproto.Marshal(r))
		}
		meta.CollectionDef = map[string]*tfpb.CollectionDef{"queue_runners": {Kind: &tfpb.CollectionDef_BytesList_{BytesList: list}}}
	}
	b, err := proto.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "model.meta")
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// sum is x + y.
const sum = `graph_def {
  node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: -1 } } } } }
  node { name: "in/y" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { unknown_rank: true } } } }
  node { name: "sum" op: "AddV2" input: "x" input: "in/y" attr { key: "T" value { type: DT_FLOAT } } }
  node { name: "double" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  versions { producer: 987 }
}`

func writeFeeds(t *testing.T, values map[string]*ckptfmt.Tensor, order ...string) string {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "feeds")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, key := range order {
		if err := w.Add(key, values[key]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return prefix
}

func runGraph(t *testing.T, ctx context.Context, o *Options) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	o.Stdout, o.Stderr = &out, &errs
	err = Run(ctx, o)
	return out.String(), errs.String(), err
}

// TestFeedsBundle feeds steps from a bundle, whole and with faults.
func TestFeedsBundle(t *testing.T) {
	one, pair, wide := tensor(t, []int64{1}, float32(1)), tensor(t, []int64{2}, float32(2), 3), tensor(t, []int64{1, 1}, float32(1))
	ints := tensor(t, []int64{1}, int32(1))
	values := map[string]*ckptfmt.Tensor{
		"step_000/x": one, "step_000/in/y": pair, "step_001/x": pair, "step_001/in/y": one, "step_001/in/y:0": one,
		"step_002/x": one, "step_1/x": one, "step_000/z": one, "other": one,
	}
	for _, test := range []struct {
		name  string
		keys  []string
		swap  *ckptfmt.Tensor // in place of the value of step_001/x
		fetch string
		steps int
		want  string // output, or part of the error
		bad   bool   // a *FeedError
	}{
		{"whole", []string{"step_000/in/y", "step_000/x", "step_001/in/y", "step_001/x"}, nil, "sum", -1,
			"{\"step\":0,\"fetches\":{\"sum\":[3,4]}}\n{\"step\":1,\"fetches\":{\"sum\":[3,4]}}\n", false},
		{"some steps", []string{"step_000/in/y", "step_000/x", "step_001/x"}, nil, "sum:0", 1, "{\"step\":0,\"fetches\":{\"sum:0\":[3,4]}}\n", false},
		{"not needed", []string{"step_000/x"}, nil, "double", -1, "{\"step\":0,\"fetches\":{\"double\":[2]}}\n", false},
		{"lacking", []string{"step_000/in/y", "step_000/x", "step_001/x"}, nil, "sum", -1,
			"step 1 has no value for in/y:0 (float32 <unknown>); its key is step_001/in/y", true},
		{"gap", []string{"step_000/x", "step_002/x"}, nil, "double", -1, "step 1 has no value for x:0 (float32 [?]); its key is step_001/x", true},
		{"wrong type", []string{"step_000/x", "step_001/x"}, ints, "double", 1, "step_001/x: the value is int32 [1], the placeholder x:0 takes float32 [?]", true},
		{"wrong shape", []string{"step_000/x", "step_001/x"}, wide, "double", 1, "step_001/x: the value is float32 [1,1], the placeholder x:0 takes float32 [?]", true},
		{"fed twice", []string{"step_001/in/y", "step_001/in/y:0"}, nil, "double", 1, "in/y:0 is fed by the key step_001/in/y, too", true},
		{"unknown name", []string{"step_000/z"}, nil, "double", 1, "has no node z", true},
		{"short number", []string{"step_1/x"}, nil, "double", 1, "step_1/x: the key is not of the form step_000/PLACEHOLDER", true},
		{"strange key", []string{"other"}, nil, "double", 1, "other: the key is not of the form step_000/PLACEHOLDER", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			given := map[string]*ckptfmt.Tensor{}
			maps.Copy(given, values)
			if test.swap != nil {
				given["step_001/x"] = test.swap
			}
			o := &Options{File: writeGraph(t, sum), Feeds: writeFeeds(t, given, test.keys...), Fetch: []string{test.fetch}, Steps: test.steps, JSON: true}
			out, _, err := runGraph(t, t.Context(), o)
			if _, bad := errors.AsType[*FeedError](err); bad != test.bad || !bad && err != nil {
				t.Errorf("got %T %v, want a *FeedError: %v", err, err, test.bad)
			}
			if err != nil {
				out = err.Error()
			}
			if !test.bad && out != test.want || !strings.Contains(out, test.want) {
				t.Errorf("got %q, want %q", out, test.want)
			}
		})
	}
}

// TestDamagedFeed has a bundle with a flipped bit: the steps before it run.
func TestDamagedFeed(t *testing.T) {
	one := tensor(t, []int64{1}, float32(1))
	feeds := writeFeeds(t, map[string]*ckptfmt.Tensor{"step_000/x": one, "step_001/x": one}, "step_000/x", "step_001/x")
	data, err := os.ReadFile(feeds + ".data-00000-of-00001")
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(feeds+".data-00000-of-00001", data, 0o666); err != nil {
		t.Fatal(err)
	}
	out, _, err := runGraph(t, t.Context(), &Options{File: writeGraph(t, sum), Feeds: feeds, Fetch: []string{"double"}, Steps: -1})
	var bad *FeedError
	if !errors.As(err, &bad) || bad.Key != "step_001/x" {
		t.Errorf("got %v", err)
	}
	if want := "step 0: double = float32 [1] [2]\n"; out != want {
		t.Errorf("stdout is %q, want %q", out, want)
	}
}

// waiting takes from the queue b, which is filled from the queue a, which is
// never filled.
const waiting = `graph_def {
  node { name: "a" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "b" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "take_a" op: "QueueDequeueV2" input: "a" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "put_b" op: "QueueEnqueueV2" input: "b" input: "take_a" attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
  node { name: "close_a" op: "QueueCloseV2" input: "a" attr { key: "cancel_pending_enqueues" value { b: false } } }
  node { name: "close_b" op: "QueueCloseV2" input: "b" attr { key: "cancel_pending_enqueues" value { b: false } } }
  node { name: "cancel_b" op: "QueueCloseV2" input: "b" attr { key: "cancel_pending_enqueues" value { b: true } } }
  node { name: "take_b" op: "QueueDequeueV2" input: "b" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  versions { producer: 987 }
}`

var fillB = &tfpb.QueueRunnerDef{QueueName: "b", EnqueueOpName: []string{"put_b"}, CloseOpName: "close_b", CancelOpName: "cancel_b"}

// TestStopWhileWaiting stops a run whose step waits for a queue.
func TestStopWhileWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	out, errs, err := runGraph(t, ctx, &Options{File: writeGraph(t, waiting, fillB), Fetch: []string{"take_b"}, Steps: -1})
	if err != nil || out != "" || errs != "0 steps of 1; stopped\n" {
		t.Errorf("stdout %q, stderr %q, error %v", out, errs, err)
	}
}

// TestRunnerFails has a queue runner whose op fails: its error is the run's,
// not that of the step that waits for the queue, and nothing is saved.
func TestRunnerFails(t *testing.T) {
	failing := strings.Replace(waiting, `input: "take_a"`, `input: "nonsense"`, 1)
	failing = strings.Replace(failing, "graph_def {", `graph_def {
  node { name: "text" op: "Const" attr { key: "dtype" value { type: DT_STRING } } attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "no number" } } } }
  node { name: "nonsense" op: "StringToNumber" input: "text" attr { key: "out_type" value { type: DT_FLOAT } } }`, 1)
	saved := filepath.Join(t.TempDir(), "saved")
	_, _, err := runGraph(t, t.Context(), &Options{File: writeGraph(t, failing, fillB), Fetch: []string{"take_b"}, Steps: -1, Save: saved})
	if !errors.Is(err, session.ErrInvalidArgument) || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
	if layout.Exists(saved) {
		t.Error("it saved")
	}
}

// TestEndOfInput closes the queue before the first step.
func TestEndOfInput(t *testing.T) {
	ended := strings.Replace(waiting, `node { name: "take_b"`, `node { name: "take_b" input: "b" input: "^close_b"`, 1)
	ended = strings.Replace(ended, `op: "QueueDequeueV2" input: "b" attr`, `op: "QueueDequeueV2" attr`, 1)
	out, errs, err := runGraph(t, t.Context(), &Options{File: writeGraph(t, ended), Fetch: []string{"take_b"}, Steps: 5})
	if err != nil || out != "" || errs != "0 steps; the input ended\n" {
		t.Errorf("stdout %q, stderr %q, error %v", out, errs, err)
	}
}
