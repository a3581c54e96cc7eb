package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestPartialRun(t *testing.T) {
	f, _, s := open(t)
	p, err := s.PartialRunSetup(t.Context(), []string{"x", "b"}, []string{"y", "y:0", "z"}, []string{"train"})
	if err != nil {
		t.Fatal(err)
	}
	setup := f.sessions[s.Handle()].partials[p.handle]
	if !slices.Equal(setup.GetFeed(), []string{"x:0", "b:0"}) || !slices.Equal(setup.GetFetch(), []string{"y:0", "z:0"}) ||
		!slices.Equal(setup.GetTarget(), []string{"train"}) || setup.GetRequestId() == 0 {
		t.Errorf("announced %v", setup)
	}
	out, err := p.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": vector(3)}, []string{"y"})
	if err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(out[0], vector(3)) {
		t.Errorf("got %v", out[0])
	}
	if _, err := p.Run(t.Context(), map[string]*ckptfmt.Tensor{"b": vector(4)}, nil); err != nil {
		t.Fatal(err)
	}
	for i, req := range f.steps {
		if req.GetPartialRunHandle() != p.handle || len(req.GetTarget()) != 0 {
			t.Errorf("part %d: handle %q, targets %q", i, req.GetPartialRunHandle(), req.GetTarget())
		}
	}
	if len(f.steps) != 2 {
		t.Errorf("%d parts were sent", len(f.steps))
	}
}

func TestCallable(t *testing.T) {
	f, _, s := open(t)
	c, err := s.MakeCallable(t.Context(), []string{"b", "x"}, []string{"y", "b", "z", "y"}, []string{"train:0"})
	if err != nil {
		t.Fatal(err)
	}
	want := &tfpb.CallableOptions{Feed: []string{"b:0", "x:0"}, Fetch: []string{"y:0", "z:0"}, Target: []string{"train"}}
	if diff := cmp.Diff(want, f.callables[c.handle], protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			b, x := vector(-1), vector(float32(i))
			out, err := c.Run(t.Context(), []*ckptfmt.Tensor{b, x})
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff([]*ckptfmt.Tensor{x, b, x, x}, out); diff != "" {
				t.Error(diff)
			}
		})
	}
	wg.Wait()
	_, err = c.Run(t.Context(), []*ckptfmt.Tensor{vector(1)})
	wantError(t, err, session.ErrInvalidArgument, "takes 2")
	_, err = c.Run(t.Context(), []*ckptfmt.Tensor{vector(1), nil})
	wantError(t, err, session.ErrInvalidArgument, `"x:0"`)
	f.step = failing(codes.OutOfRange, "end\n\t [[{{node y}}]]")
	_, err = c.Run(t.Context(), []*ckptfmt.Tensor{vector(1), vector(1)})
	wantError(t, err, session.ErrOutOfRange, "node y (Identity)")
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if len(f.callables) != 0 {
		t.Error("the callable is still there")
	}
	_, err = c.Run(t.Context(), []*ckptfmt.Tensor{vector(1), vector(1)})
	wantError(t, err, session.ErrCancelled, "callable is closed")
}

// Whatever changes variables waits while they are held, in each form of a step, and
// what does not passes.
func TestHeldSteps(t *testing.T) {
	_, c, _ := open(t)
	graph := &tfpb.GraphDef{Node: append(slices.Clone(smallGraph.Node), &tfpb.NodeDef{Name: "w", Op: "VarHandleOp"},
		&tfpb.NodeDef{Name: "train", Op: "AssignAddVariableOp", Input: []string{"w", "x"}})}
	s, err := c.NewSession(t.Context(), graph, nil)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]func(ctx context.Context, target []string) error{
		"step": func(ctx context.Context, target []string) error {
			_, err := s.Run(ctx, map[string]*ckptfmt.Tensor{"x": vector(1)}, []string{"y"}, target)
			return err
		},
		"callable": func(ctx context.Context, target []string) error {
			c, err := s.MakeCallable(t.Context(), []string{"x"}, []string{"y"}, target)
			if err != nil {
				return err
			}
			_, err = c.Run(ctx, []*ckptfmt.Tensor{vector(1)})
			return err
		},
		"partial run": func(ctx context.Context, target []string) error {
			p, err := s.PartialRunSetup(t.Context(), []string{"x"}, []string{"y"}, target)
			if err != nil {
				return err
			}
			_, err = p.Run(ctx, map[string]*ckptfmt.Tensor{"x": vector(1)}, []string{"y"})
			return err
		},
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			release, err := s.HoldSteps(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := form(t.Context(), nil); err != nil {
				t.Errorf("without a change: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			wantError(t, form(ctx, []string{"train"}), session.ErrDeadlineExceeded, "waiting for a copy of the variables")
			release()
			if err := form(t.Context(), []string{"train"}); err != nil {
				t.Errorf("after the release: %v", err)
			}
		})
	}
}
