package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestRunStep(t *testing.T) {
	x := vector(1, 2)
	tests := []struct {
		name                string
		feeds               map[string]*ckptfmt.Tensor
		fetches, targets    []string
		wantFetch, wantTarg []string // sent; nil: nothing is sent
		want                int      // tensors
	}{
		{"names are completed", map[string]*ckptfmt.Tensor{"x": x}, []string{"y", "z:1"}, []string{"train:0", "^init"}, []string{"y:0", "z:1"}, []string{"train", "init"}, 2},
		{"a tensor asked for twice is fetched once", map[string]*ckptfmt.Tensor{"x": x}, []string{"y", "y:0"}, nil, []string{"y:0"}, nil, 2},
		{"a fed tensor is not fetched", map[string]*ckptfmt.Tensor{"x:0": x}, []string{"x", "y"}, nil, []string{"y:0"}, nil, 2},
		{"only what is fed", map[string]*ckptfmt.Tensor{"x:0": x}, []string{"x"}, nil, nil, nil, 1},
		{"nothing", nil, nil, nil, nil, nil, 0},
		{"targets only", nil, nil, []string{"train", "train"}, nil, []string{"train"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, _, s := open(t)
			out, err := s.Run(t.Context(), test.feeds, test.fetches, test.targets)
			if err != nil {
				t.Fatal(err)
			}
			if len(out) != test.want {
				t.Fatalf("got %d tensors, want %d", len(out), test.want)
			}
			for i, v := range out {
				if diff := cmp.Diff(x, v); diff != "" {
					t.Errorf("tensor %d: %s", i, diff)
				}
				v.Data[0]++ // the caller's own: changes neither the feed nor the others
			}
			if test.wantFetch == nil && test.wantTarg == nil {
				if len(f.steps) != 0 {
					t.Errorf("the server got %v", f.steps)
				}
				return
			}
			req := f.steps[0]
			if !slices.Equal(req.GetFetch(), test.wantFetch) || !slices.Equal(req.GetTarget(), test.wantTarg) {
				t.Errorf("sent fetches %q and targets %q, want %q and %q", req.GetFetch(), req.GetTarget(), test.wantFetch, test.wantTarg)
			}
			if !req.GetStoreErrorsInResponseBody() || req.GetRequestId() == 0 {
				t.Errorf("sent store_errors_in_response_body %t, request_id %d", req.GetStoreErrorsInResponseBody(), req.GetRequestId())
			}
		})
	}
}

func TestFeedsAreSentInOneOrder(t *testing.T) {
	f, _, s := open(t)
	feeds := map[string]*ckptfmt.Tensor{}
	for i := range 20 {
		feeds[fmt.Sprintf("f%02d", i)] = vector(1)
	}
	feeds["x"] = vector(1)
	for range 3 {
		if _, err := s.Run(t.Context(), feeds, []string{"y"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[int64]bool{}
	for _, req := range f.steps {
		var names []string
		for _, nt := range req.GetFeed() {
			names = append(names, nt.GetName())
		}
		if !slices.IsSorted(names) {
			t.Errorf("feeds in the order %q", names)
		}
		ids[req.GetRequestId()] = true
	}
	if len(ids) != 3 {
		t.Errorf("three steps have the request ids %v", ids)
	}
}

func TestBadFeedsAreRefusedBeforeTheyAreSent(t *testing.T) {
	tests := []struct {
		name  string
		feeds map[string]*ckptfmt.Tensor
		says  string
	}{
		{"no tensor", map[string]*ckptfmt.Tensor{"x": nil}, `feed "x:0": no tensor`},
		{"too few bytes", map[string]*ckptfmt.Tensor{"x": {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 4)}}, `feed "x:0"`},
		{"twice", map[string]*ckptfmt.Tensor{"x": vector(1), "x:0": vector(1)}, `"x:0" is fed twice`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, _, s := open(t)
			_, err := s.Run(t.Context(), test.feeds, []string{"y"}, nil)
			wantError(t, err, session.ErrInvalidArgument, test.says)
			if len(f.steps) != 0 {
				t.Error("the step was sent")
			}
		})
	}
}

func TestRunWithOptionsGivesMetadata(t *testing.T) {
	f, _, s := open(t)
	o := &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE}
	_, meta, err := s.RunWithOptions(t.Context(), o, map[string]*ckptfmt.Tensor{"x": vector(1)}, []string{"y"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if meta.GetStepStats() == nil || !proto.Equal(f.steps[0].GetOptions(), o) {
		t.Errorf("sent options %v, got metadata %v", f.steps[0].GetOptions(), meta)
	}
}

func TestVariableIsFetchedByItsValue(t *testing.T) {
	f, _, s := open(t)
	f.step = func(_ context.Context, req *tfpb.RunStepRequest) ([]*tfpb.NamedTensorProto, error) {
		var out []*tfpb.NamedTensorProto
		for _, name := range req.GetFetch() {
			out = append(out, &tfpb.NamedTensorProto{Name: name, Tensor: vector(1).Proto()})
		}
		return out, nil
	}
	nodes := []*tfpb.NodeDef{
		{Name: "v/later", Op: "ReadVariableOp", Input: []string{"v", "^x"}},
		{Name: "v/Read", Op: "ReadVariableOp", Input: []string{"v"}},
		{Name: "v/again", Op: "ReadVariableOp", Input: []string{"v"}},
		{Name: "v", Op: "VarHandleOp"},
		{Name: "bare", Op: "VarHandleOp"},
		{Name: "it/Read", Op: "ReadVariableOp", Input: []string{"x"}},
	}
	if err := s.Extend(t.Context(), &tfpb.GraphDef{Node: nodes}); err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(t.Context(), nil, []string{"v", "v/Read", "bare", "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.steps[0].GetFetch(), []string{"v/Read:0", "bare:0", "x:0"}; !slices.Equal(got, want) || len(out) != 4 {
		t.Errorf("fetched %q, want %q; got %d tensors", got, want, len(out))
	}
}

func TestServerThatLeavesOutAFetch(t *testing.T) {
	f, _, s := open(t)
	f.step = func(context.Context, *tfpb.RunStepRequest) ([]*tfpb.NamedTensorProto, error) { return nil, nil }
	if _, err := s.Run(t.Context(), nil, []string{"y"}, nil); !isCode(err, tfpb.Code_INTERNAL) {
		t.Errorf("got %v, want INTERNAL", err)
	}
	c, err := s.MakeCallable(t.Context(), nil, []string{"y"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context(), nil); !isCode(err, tfpb.Code_INTERNAL) {
		t.Errorf("callable: got %v, want INTERNAL", err)
	}
}

func TestErrorsOfSteps(t *testing.T) {
	long := strings.Repeat("long ", 20_000) // more than gRPC's status holds
	tests := []struct {
		name    string
		code    codes.Code
		message string
		kind    error
		node    string
	}{
		{"end of input", codes.OutOfRange, "End of sequence\n\t [[{{node y}}]]", session.ErrOutOfRange, "y"},
		{"uninitialised", codes.FailedPrecondition, "Attempting to use uninitialized value y\n\t [[{{node y}}]]", session.ErrFailedPrecondition, "y"},
		{"session gone", codes.Aborted, "Session xyz is not found.", session.ErrAborted, ""},
		{"closed by another", codes.FailedPrecondition, "Session is closed.", session.ErrAborted, ""},
		{"worker gone", codes.Unavailable, "Socket closed", session.ErrUnavailable, ""},
		{"queue closed", codes.Canceled, "Enqueue operation was cancelled\n\t [[{{node y}}]]", session.ErrCancelled, "y"},
		{"aborted on another server", codes.Canceled, "RecvFromRemoteAsync is cancelled. Recent warning and error logs:\n" +
			"  W0000 local_rendezvous.cc:412] Local rendezvous is aborting with status: UNAVAILABLE: Cleanup\n\t [[{{node y}}]]", session.ErrAborted, "y"},
		{"operation timeout", codes.DeadlineExceeded, "Timed out waiting for notification", session.ErrDeadlineExceeded, ""},
		{"long message", codes.InvalidArgument, long + "end\n\t [[{{node y}}]]", session.ErrInvalidArgument, "y"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, c, s := open(t)
			f.step = failing(test.code, test.message)
			_, err := s.Run(t.Context(), nil, []string{"y"}, nil)
			want, _, _ := strings.Cut(test.message, "\n")
			wantError(t, err, test.kind, want)
			var op *session.OpError
			if !errors.As(err, &op) || op.Node != test.node {
				t.Fatalf("got %#v, want node %q", err, test.node)
			}
			if test.node != "" && op.Op != "Identity" {
				t.Errorf("op is %q", op.Op)
			}
			if test.node == "" && !strings.Contains(err.Error(), c.Target()+": RunStep: ") {
				t.Errorf("%q does not name the server and the call", err)
			}
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v passes for the end of ctx", err)
			}
		})
	}
}

// TestCancelledAmongServers: the part of a step that was cancelled because that
// of another server failed has an error like any other cancelled step, and comes
// first.
func TestCancelledAmongServers(t *testing.T) {
	f, _, s := open(t)
	for code, want := range map[string]error{"ABORTED": session.ErrAborted, "UNAVAILABLE": session.ErrUnavailable, "INTERNAL": session.ErrCancelled} {
		f.step = failing(codes.Canceled, "=====================\nCANCELLED: From /job:worker/replica:0/task:0:\nStep was cancelled\n"+
			"\t [[{{node y}}]]\n"+code+": From /job:ps/replica:0/task:0:\nThe same RunGraph (Worker) request was received twice.\n=====================")
		_, err := s.Run(t.Context(), nil, []string{"y"}, nil)
		wantError(t, err, want, "received twice")
	}
}

func TestContextEndsAStep(t *testing.T) {
	cause := errors.New("the user said so")
	tests := []struct {
		name  string
		ctx   func(ctx context.Context, limit time.Duration) (context.Context, func())
		timed bool // by timeout_in_ms
		kinds []error
	}{
		{"cancel", func(ctx context.Context, _ time.Duration) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			return ctx, cancel
		}, false, []error{session.ErrCancelled, context.Canceled}},
		{"cancel with cause", func(ctx context.Context, _ time.Duration) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(cause) }
		}, false, []error{session.ErrCancelled, context.Canceled, cause}},
		{"deadline", func(ctx context.Context, limit time.Duration) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, limit)
			return ctx, func() {
				<-ctx.Done()
				cancel()
			}
		}, false, []error{session.ErrDeadlineExceeded, context.DeadlineExceeded}},
		{"timeout_in_ms", func(ctx context.Context, _ time.Duration) (context.Context, func()) { return ctx, func() {} },
			true, []error{session.ErrDeadlineExceeded, context.DeadlineExceeded}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, c, s := open(t)
			step, began, ended := blocking()
			f.step = step
			err := endStep(t, began, func(limit time.Duration) (func() error, func()) {
				ctx, end := test.ctx(t.Context(), limit)
				o := &tfpb.RunOptions{}
				if test.timed {
					o.TimeoutInMs = limit.Milliseconds()
				}
				return func() error {
					_, _, err := s.RunWithOptions(ctx, o, nil, nil, []string{"y"})
					return err
				}, end
			})
			for _, kind := range test.kinds {
				wantError(t, err, kind, c.Target())
			}
			receive(t, ended, "the server to give the step up")
			f.step = echo
			if _, err := s.Run(t.Context(), nil, nil, []string{"y"}); err != nil {
				t.Errorf("the next step: %v", err)
			}
		})
	}
}

// endStep begins a step and, once the server has it, ends it. It returns the
// step's error. Where the time of the step is over before the server has it, it
// begins another with more.
func endStep(t *testing.T, began <-chan struct{}, begin func(limit time.Duration) (run func() error, end func())) error {
	t.Helper()
	for limit := 50 * time.Millisecond; ; limit *= 2 {
		run, end := begin(limit)
		result := make(chan error, 1)
		go func() { result <- run() }()
		select {
		case <-began:
			end()
			return <-result
		case err := <-result:
			end()
			if limit > patience {
				t.Fatalf("the server has not got a step within %v: %v", limit, err)
			}
		}
	}
}

func TestOperationTimeoutBoundsEachCall(t *testing.T) {
	f := startFake(t)
	step, _, _ := blocking()
	f.step = step
	c := dial(t, f.target(), nil)
	// Making the session and closing it have to be done within the limit, too.
	for limit := 50 * time.Millisecond; ; limit *= 2 {
		s, err := c.NewSession(t.Context(), smallGraph, &tfpb.ConfigProto{OperationTimeoutInMs: limit.Milliseconds()})
		if err == nil {
			_, err = s.Run(t.Context(), nil, nil, []string{"y"})
			wantError(t, err, session.ErrDeadlineExceeded)
			err = s.Close()
		}
		if err == nil {
			return
		}
		if limit > patience || !errors.Is(err, session.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
}

func TestEndedContextStartsNothing(t *testing.T) {
	f, _, s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, targets := range [][]string{{"y"}, nil} {
		_, err := s.Run(ctx, nil, nil, targets)
		wantError(t, err, session.ErrCancelled)
		wantError(t, err, context.Canceled)
	}
	wantError(t, s.Extend(ctx, &tfpb.GraphDef{}), session.ErrCancelled)
	if len(f.steps) != 0 {
		t.Errorf("the server got %v", f.steps)
	}
}

func TestLargeTensors(t *testing.T) {
	f, _, s := open(t)
	x := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{3, 1 << 20}, Data: bytes.Repeat([]byte("abcd"), 3<<20)}
	out, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": x}, []string{"y"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out[0].Shape, x.Shape) || !bytes.Equal(out[0].Data, x.Data) {
		t.Error("the tensor came back as another one")
	}
	if p := f.steps[0].GetFeed()[0].GetTensor(); len(p.GetTensorContent()) != len(x.Data) {
		t.Error("the tensor was not sent as tensor_content")
	}

	small := newSession(t, dial(t, f.target(), &Options{MaxMessageBytes: 1 << 20}))
	_, err = small.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": x}, []string{"y"}, nil)
	if !isCode(err, tfpb.Code_RESOURCE_EXHAUSTED) {
		t.Errorf("feeding more than the limit: %v", err)
	}
	f.step = func(ctx context.Context, req *tfpb.RunStepRequest) ([]*tfpb.NamedTensorProto, error) {
		return []*tfpb.NamedTensorProto{{Name: "y:0", Tensor: x.Proto()}}, nil
	}
	_, err = small.Run(t.Context(), nil, []string{"y"}, nil)
	if !isCode(err, tfpb.Code_RESOURCE_EXHAUSTED) {
		t.Errorf("fetching more than the limit: %v", err)
	}
}

func TestCloseEndsCallsInFlight(t *testing.T) {
	f, _, s := open(t)
	step, began, ended := blocking()
	f.step = step
	results := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Run(context.WithoutCancel(t.Context()), nil, nil, []string{"y"})
			results <- err
		}()
		receive(t, began, "the step")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		wantError(t, <-results, session.ErrCancelled, "the session is closed")
		receive(t, ended, "the server to give the step up")
	}
	if len(f.sessions) != 0 {
		t.Error("the session is still there")
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	for _, targets := range [][]string{{"y"}, nil} {
		_, err := s.Run(t.Context(), nil, nil, targets)
		wantError(t, err, session.ErrCancelled, "the session is closed")
	}
	_, err := s.MakeCallable(t.Context(), nil, nil, []string{"y"})
	wantError(t, err, session.ErrCancelled, "the session is closed")
}

func TestCloseIsBounded(t *testing.T) {
	f := startFake(t)
	f.closing = func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	s := newSession(t, dial(t, f.target(), &Options{CloseTimeout: 50 * time.Millisecond}))
	err := s.Close()
	wantError(t, err, session.ErrDeadlineExceeded, f.target())
	if again := s.Close(); again != err {
		t.Errorf("closing again: %v", again)
	}
}

func TestCloseWithoutServer(t *testing.T) {
	f, _, s := open(t)
	f.stop()
	wantError(t, s.Close(), session.ErrUnavailable)
}
