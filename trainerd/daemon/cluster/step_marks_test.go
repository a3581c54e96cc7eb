package cluster

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// markSession answers what the variables of marks hold; those that it lacks were
// never set.
type markSession map[string]int64

func (s markSession) Run(_ context.Context, _ program.Feed, fetches, _ []string) ([]*ckptfmt.Tensor, error) {
	value, ok := s[fetches[0]]
	if !ok {
		return nil, session.ErrFailedPrecondition
	}
	return []*ckptfmt.Tensor{{DType: tfpb.DataType_DT_INT64, Data: binary.LittleEndian.AppendUint64(nil, uint64(value))}}, nil
}

func (markSession) Close() error { return nil }

// TestWaitsFor looks at a step with two ops that may wait.
func TestWaitsFor(t *testing.T) {
	const earlier, now = 7, 8
	take, give := markedOp{"take", "0/"}, markedOp{"give", "1/"}
	task := &Task{marked: []markedOp{take, give}}
	for _, c := range []struct {
		name  string
		marks markSession
		want  string
	}{
		{"nothing was ever set", nil, ""},
		{"the first step waits for input", markSession{take.read(opReached): now}, "take"},
		{"a later one does", markSession{take.read(opReached): now, take.read(opDone): earlier, give.read(opReached): earlier, give.read(opDone): earlier}, "take"},
		{"it computes", markSession{take.read(opReached): now, take.read(opDone): now, give.read(opReached): earlier, give.read(opDone): earlier}, ""},
		{"it waits for room", markSession{take.read(opReached): now, take.read(opDone): now, give.read(opReached): now, give.read(opDone): earlier}, "give"},
		{"in the branch that is not taken", markSession{take.read(opReached): earlier, take.read(opDone): earlier, give.read(opReached): now, give.read(opDone): now}, ""},
	} {
		if got := task.waitsFor(t.Context(), c.marks, now); got != c.want {
			t.Errorf("%s: waits for %q, want %q", c.name, got, c.want)
		}
	}
}

// An op in a loop has no place next to it: it runs many times in a step.
func TestOpsInLoops(t *testing.T) {
	def := new(tfpb.GraphDef)
	const text = `
node { name: "queue" op: "FIFOQueueV2" }
node { name: "enter" op: "Enter" input: "queue" }
node { name: "merge" op: "Merge" input: "enter" input: "next" }
node { name: "inside" op: "QueueDequeueV2" input: "merge" }
node { name: "next" op: "NextIteration" input: "inside" }
node { name: "exit" op: "Exit" input: "merge" }
node { name: "after" op: "QueueEnqueueV2" input: "queue" input: "exit" }
node { name: "train" op: "NoOp" input: "^after" }`
	if err := prototext.Unmarshal([]byte(text), def); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range newWaitFinder(def).find([]string{"train"}) {
		names = append(names, n.GetName())
	}
	if want := []string{"after"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
