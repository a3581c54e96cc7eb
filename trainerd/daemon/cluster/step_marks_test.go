package cluster

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// markSession answers with the counts of marks; those that it lacks are 0.
type markSession map[string]int32

func (s markSession) Run(_ context.Context, _ program.Feed, fetches, _ []string) ([]*ckptfmt.Tensor, error) {
	var out []*ckptfmt.Tensor
	for _, name := range fetches {
		out = append(out, &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Data: binary.LittleEndian.AppendUint32(nil, uint32(s[name]))})
	}
	return out, nil
}

func (markSession) Close() error { return nil }

// lostSession has no server any more.
type lostSession struct{ session.Session }

func (lostSession) Run(context.Context, program.Feed, []string, []string) ([]*ckptfmt.Tensor, error) {
	return nil, session.ErrUnavailable
}

// TestLookAtMarks looks twice at a step with two ops that may wait.
func TestLookAtMarks(t *testing.T) {
	take, give := markedOp{path: "take", scope: "0/"}, markedOp{path: "give", scope: "1/"}
	task := &Task{marked: []markedOp{take, give}}
	at := func(counts ...int32) session.Session {
		return markSession{take.count(opReached): counts[0], take.count(opDone): counts[1], give.count(opReached): counts[2], give.count(opDone): counts[3]}
	}
	for _, c := range []struct {
		name          string
		first, second session.Session
		op            string // that the second look sees
		still         bool   // the same as the first one
	}{
		{"nothing has begun", markSession{}, markSession{}, "", true},
		{"the first step waits for input", at(1, 0, 0, 0), at(1, 0, 0, 0), "take", true},
		{"a later one does", at(8, 7, 7, 7), at(8, 7, 7, 7), "take", true},
		{"it computes", at(8, 8, 7, 7), at(8, 8, 7, 7), "", true},
		{"it waits for room", at(8, 8, 8, 7), at(8, 8, 8, 7), "give", true},
		{"in a loop that takes", at(80, 79, 7, 7), at(90, 89, 7, 7), "take", false},
		{"in a loop that takes while another op waits", at(80, 79, 8, 7), at(90, 90, 8, 7), "give", false},
		{"the other one by now", at(8, 7, 7, 7), at(8, 8, 8, 7), "give", false},
		{"some turns of a loop wait at the same time", at(80, 70, 7, 7), at(80, 70, 7, 7), "take", true},
		{"the counter has begun from its least number", at(-1<<31, 1<<31-1, 7, 7), at(-1<<31, 1<<31-1, 7, 7), "take", true},
		{"the servers do not answer", lostSession{}, lostSession{}, "", true},
	} {
		first, second := task.lookAtMarks(t.Context(), c.first), task.lookAtMarks(t.Context(), c.second)
		if second.op != c.op || (first == second) != c.still {
			t.Errorf("%s: got %q, then %q; want %q, the same: %v", c.name, first, second, c.op, c.still)
		}
	}
}

// waitingGraph has ops that may wait in a loop, in a function, in a loop of a
// function, and in what a data set does.
const waitingGraph = `
node { name: "queue" op: "FIFOQueueV2" device: "/job:ps/task:0" }
node { name: "enter" op: "Enter" input: "queue" }
node { name: "merge" op: "Merge" input: "enter" input: "next" }
node { name: "inside" op: "QueueDequeueV2" input: "merge" device: "/job:ps/task:0" }
node { name: "next" op: "NextIteration" input: "inside" }
node { name: "exit" op: "Exit" input: "merge" }
node { name: "call" op: "StatefulPartitionedCall" input: "queue" device: "/job:ps/task:1" attr { key: "f" value { func { name: "outer" } } } }
node { name: "again" op: "StatefulPartitionedCall" input: "queue" attr { key: "f" value { func { name: "outer" } } } }
node { name: "legacy" op: "direct" input: "queue" }
node { name: "data" op: "MapDataset" attr { key: "f" value { func { name: "mapped" } } } }
node { name: "mapped_call" op: "StatefulPartitionedCall" attr { key: "f" value { func { name: "mapped" } } } }
node { name: "after" op: "QueueEnqueueV2" input: "queue" input: "exit" input: "^call" input: "^again" input: "^legacy" input: "^data" input: "^mapped_call" }
node { name: "train" op: "NoOp" input: "^after" }
node { name: "elsewhere" op: "QueueDequeueV2" input: "queue" }
library {
  function {
    signature { name: "outer" input_arg { name: "q" } output_arg { name: "x" } }
    node_def { name: "loop" op: "While" input: "q" attr { key: "cond" value { func { name: "cond" } } } attr { key: "body" value { func { name: "body" } } } }
    ret { key: "x" value: "loop:output:0" }
  }
  function { signature { name: "cond" } }
  function {
    signature { name: "body" input_arg { name: "q" } control_output: "put" }
    node_def { name: "take" op: "QueueDequeueV2" input: "q" input: "^q" }
    node_def { name: "put" op: "QueueEnqueueV2" input: "q" input: "take:components:0" }
    node_def { name: "unused" op: "QueueDequeueV2" input: "q" }
    control_ret { key: "put" value: "put" }
  }
  function {
    signature { name: "direct" input_arg { name: "q" } output_arg { name: "x" } }
    node_def { name: "get" op: "QueueDequeueV2" input: "q" }
    ret { key: "x" value: "get:components:0" }
  }
  function {
    signature { name: "mapped" output_arg { name: "x" } }
    node_def { name: "deep" op: "StatefulPartitionedCall" attr { key: "f" value { func { name: "deeper" } } } }
    ret { key: "x" value: "deep:output:0" }
  }
  function {
    signature { name: "deeper" output_arg { name: "x" } }
    node_def { name: "hidden" op: "Unstage" }
    ret { key: "x" value: "hidden:values:0" }
  }
}`

func TestFindWaits(t *testing.T) {
	var got []string
	for _, w := range findWaits(parseGraph(t, waitingGraph), []string{"train"}) {
		got = append(got, w.path+" "+w.device)
	}
	want := []string{
		"after ",
		"again/outer/loop/body/put ",
		"again/outer/loop/body/take ",
		"inside /job:ps/task:0",
		"legacy/direct/get ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// What is added to a function must run with it, next to its op, and change
// nothing that was there.
func TestMarksOfFunctions(t *testing.T) {
	def := parseGraph(t, waitingGraph)
	task := NewTask(new(config.Config), &program.Program{Train: []string{"train"}}, nil, nil)
	marked := task.addMarks(def)
	if len(marked) != 5 {
		t.Fatalf("%d ops are marked", len(marked))
	}
	for _, fn := range def.GetLibrary().GetFunction() {
		nodes := make(map[string]*tfpb.NodeDef)
		for _, n := range fn.GetNodeDef() {
			nodes[n.GetName()] = n
		}
		name, outputs := fn.GetSignature().GetName(), fn.GetSignature().GetControlOutput()
		if want := map[string]int{"body": 5, "direct": 2}[name]; len(outputs) != want || len(fn.GetControlRet()) != want {
			t.Errorf("%s has the control outputs %q, %q; want %d", name, outputs, fn.GetControlRet(), want)
		}
		for _, output := range outputs {
			if nodes[fn.GetControlRet()[output]] == nil {
				t.Errorf("%s: control output %q is no node", name, output)
			}
		}
	}
	for _, m := range marked {
		if in := m.path == "after" || m.path == "inside"; in != (len(m.targets) == 2) {
			t.Errorf("%s: a step runs %q", m.path, m.targets)
		}
	}
}
