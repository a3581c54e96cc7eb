package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestExtend(t *testing.T) {
	f, _, s := open(t)
	z := &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "z", Op: "Neg"}}}
	for i, nodes := range []*tfpb.GraphDef{z, {Node: []*tfpb.NodeDef{{Name: "w", Op: "Neg"}}}} {
		if err := s.Extend(t.Context(), nodes); err != nil {
			t.Fatal(err)
		}
		if got := s.GraphVersion(); got != int64(i+1) {
			t.Errorf("version %d after extension %d", got, i+1)
		}
	}
	wantError(t, s.Extend(t.Context(), z), session.ErrInvalidArgument, "ExtendSession")
	if got := s.GraphVersion(); got != 2 {
		t.Errorf("version %d after an extension that failed", got)
	}
	f.step = failing(codes.OutOfRange, "end\n\t [[{{node z}}]]")
	_, err := s.Run(t.Context(), nil, []string{"z"}, nil)
	wantError(t, err, session.ErrOutOfRange, "node z (Neg)")

	f.sessions[s.Handle()].version++ // as if the answer to an extension had been lost
	err = s.Extend(t.Context(), &tfpb.GraphDef{})
	wantError(t, err, session.ErrFailedPrecondition, "Current version is 3")
	if errors.Is(err, session.ErrAborted) {
		t.Error("a stale version passes for a lost session")
	}
}

// TestCallsHoldSteps has steps that call functions, by an attribute, or by the name of the op as
// those of TensorFlow 1's Defun do: they wait while variables are saved if one of the functions
// changes some. A saver whose ops are in functions would wait for itself else.
func TestCallsHoldSteps(t *testing.T) {
	node := func(name, op string, calls ...string) *tfpb.NodeDef {
		n := &tfpb.NodeDef{Name: name, Op: op}
		for _, f := range calls {
			n.Attr = map[string]*tfpb.AttrValue{"f": {Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: f}}}}
		}
		return n
	}
	function := func(name string, nodes ...*tfpb.NodeDef) *tfpb.FunctionDef {
		return &tfpb.FunctionDef{Signature: &tfpb.OpDef{Name: name}, NodeDef: nodes}
	}
	graph := &tfpb.GraphDef{
		Node: []*tfpb.NodeDef{node("save", "StatefulPartitionedCall", "saves"), node("train", "StatefulPartitionedCall", "updates"),
			node("outer", "PartitionedCall", "calls"), node("unknown", "StatefulPartitionedCall", "missing"), node("loops", "While", "loop")},
		Library: &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{function("saves", node("v", "SaveV2")),
			function("updates", node("a", "AssignAddVariableOp")), function("calls", node("c", "updates")), function("loop", node("l", "loop"))}},
	}
	_, c, _ := open(t)
	s, err := c.NewSession(t.Context(), graph, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Extend(t.Context(), &tfpb.GraphDef{Node: []*tfpb.NodeDef{node("defun", "updates")}}); err != nil {
		t.Fatal(err)
	}
	release, err := s.HoldSteps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for target, held := range map[string]bool{"save": false, "train": true, "outer": true, "unknown": true, "loops": true, "defun": true} {
		_, err := s.Run(ended, nil, nil, []string{target})
		if got := err != nil && strings.Contains(err.Error(), "waiting for a copy of the variables"); got != held {
			t.Errorf("%s: held: %v, %v", target, got, err)
		}
	}
}

// TestExtensionHoldsSteps runs a step before its node exists, and again once it does: the
// node changes a variable, so the step now waits while variables are saved.
func TestExtensionHoldsSteps(t *testing.T) {
	_, _, s := open(t)
	if _, err := s.Run(t.Context(), nil, nil, []string{"train"}); err != nil { // the fake knows any node
		t.Fatal(err)
	}
	train := &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "train", Op: "ResourceApplyGradientDescent"}}}
	if err := s.Extend(t.Context(), train); err != nil {
		t.Fatal(err)
	}
	release, err := s.HoldSteps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Run(ended, nil, nil, []string{"train"})
	wantError(t, err, session.ErrCancelled, "waiting for a copy of the variables")
}

func TestConcurrentExtensionsAndSteps(t *testing.T) {
	_, _, s := open(t)
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for i := range 16 {
		wg.Go(func() {
			errs <- s.Extend(t.Context(), &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: fmt.Sprint("n", i), Op: "NoOp"}}})
		})
		wg.Go(func() {
			x := vector(float32(i))
			out, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": x}, []string{"y"}, nil)
			if err == nil && !cmp.Equal(out[0], x) {
				err = fmt.Errorf("step %d got %v", i, out[0])
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if got := s.GraphVersion(); got != 16 {
		t.Errorf("version %d after 16 extensions", got)
	}
}
