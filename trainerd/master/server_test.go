package master_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/remote"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

func float(v float32) *ckptfmt.Tensor {
	return &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))}
}

func value(t *testing.T, x *ckptfmt.Tensor) float32 {
	t.Helper()
	if x.DType != tfpb.DataType_DT_FLOAT || len(x.Data) != 4 {
		t.Fatalf("got %v of %d bytes, want one float", x.DType, len(x.Data))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(x.Data))
}

func floatType() *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}}
}

func node(name, op string, inputs ...string) *tfpb.NodeDef {
	n := &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Attr: map[string]*tfpb.AttrValue{}}
	switch op {
	case "VariableV2":
		n.Attr["dtype"] = floatType()
		n.Attr["shape"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{}}}
	case "Placeholder":
		n.Attr["dtype"] = floatType()
	default:
		n.Attr["T"] = floatType()
	}
	return n
}

// graph adds a fed number to a variable.
func graph() *tfpb.GraphDef {
	return &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		node("v", "VariableV2"), node("x", "Placeholder"),
		node("init", "Assign", "v", "x"), node("add", "AssignAdd", "v", "x"),
	}}
}

// serve starts a server that ends with the test, and returns a client of it.
func serve(t *testing.T, o *master.Options) *remote.Client {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := master.New(o)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	client, err := remote.Dial(t.Context(), "grpc://"+ln.Addr().String(), &remote.Options{ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return client
}

func open(t *testing.T, c *remote.Client, config *tfpb.ConfigProto) *remote.Session {
	t.Helper()
	s, err := c.NewSession(t.Context(), graph(), config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t *testing.T, s session.Session, fetch string, x float32) float32 {
	t.Helper()
	out, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": float(x)}, []string{fetch}, nil)
	if err != nil {
		t.Fatalf("%s: %v", fetch, err)
	}
	return value(t, out[0])
}

// TestSharedVariables: all sessions, the process's own included, see the same
// variables, which outlive each session; an isolated one has its own.
func TestSharedVariables(t *testing.T) {
	resources := &runtime.Resources{}
	own, err := runtime.New(graph(), &runtime.Options{Resources: resources})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	c := serve(t, &master.Options{Runtime: runtime.Options{Resources: resources}})
	first := open(t, c, nil)
	run(t, own, "init", 1)
	if got := run(t, first, "add", 2); got != 3 {
		t.Errorf("a client's step on the process's variable gives %v, want 3", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := run(t, open(t, c, nil), "add", 4); got != 7 {
		t.Errorf("a later session's step gives %v, want 7", got)
	}
	if got := run(t, own, "add", 0); got != 7 {
		t.Errorf("the process sees %v, want 7", got)
	}
	isolated := open(t, c, &tfpb.ConfigProto{IsolateSessionState: true})
	_, err = isolated.Run(t.Context(), nil, []string{"v"}, nil)
	if !errors.Is(err, session.ErrFailedPrecondition) {
		t.Errorf("an isolated session reads the variable: %v, want FAILED_PRECONDITION", err)
	}
}

func TestCallable(t *testing.T) {
	s := open(t, serve(t, nil), nil)
	run(t, s, "init", 10)
	c, err := s.MakeCallable(t.Context(), []string{"x:0"}, []string{"add:0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for want := float32(11); want < 14; want++ {
		out, err := c.Run(t.Context(), []*ckptfmt.Tensor{float(1)})
		if err != nil {
			t.Fatal(err)
		}
		if got := value(t, out[0]); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestExtend(t *testing.T) {
	s := open(t, serve(t, nil), nil)
	run(t, s, "init", 5)
	if err := s.Extend(t.Context(), &tfpb.GraphDef{Node: []*tfpb.NodeDef{node("twice", "Add", "v", "v")}}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "twice", 0); got != 10 {
		t.Errorf("the added node gives %v, want 10", got)
	}
	err := s.Extend(t.Context(), &tfpb.GraphDef{Node: []*tfpb.NodeDef{node("twice", "Add", "v", "v")}})
	if !errors.Is(err, session.ErrInvalidArgument) {
		t.Errorf("a node that is there already: %v, want INVALID_ARGUMENT", err)
	}
}

func TestErrors(t *testing.T) {
	c := serve(t, &master.Options{MaxSessions: 1})
	s := open(t, c, nil)
	_, err := s.Run(t.Context(), nil, []string{"v"}, nil)
	var op *session.OpError
	if !errors.As(err, &op) || op.Code != tfpb.Code_FAILED_PRECONDITION || op.Node != "v" {
		t.Errorf("a variable without a value: %v, want FAILED_PRECONDITION at v", err)
	}
	if _, err := s.Run(t.Context(), nil, []string{"nowhere"}, nil); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown fetch: %v, want NOT_FOUND", err)
	}
	if _, err := s.PartialRunSetup(t.Context(), nil, []string{"v"}, nil); !errors.Is(err, session.ErrUnimplemented) {
		t.Errorf("a partial run: %v, want UNIMPLEMENTED", err)
	}
	if _, err := c.NewSession(t.Context(), graph(), nil); err == nil || !strings.Contains(err.Error(), "1 sessions are open") {
		t.Errorf("one session too many: %v", err)
	}
	if err := remote.Reset(t.Context(), c, nil, nil); err == nil {
		t.Error("Reset was allowed")
	}
	if got := run(t, s, "init", 1); got != 1 {
		t.Errorf("after the errors a step gives %v, want 1", got)
	}
}

// TestReset: sessions end as if the server had restarted, and the variables go.
func TestReset(t *testing.T) {
	c := serve(t, &master.Options{AllowReset: true})
	s := open(t, c, nil)
	run(t, s, "init", 1)
	if err := remote.Reset(t.Context(), c, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), nil, []string{"v"}, nil); !errors.Is(err, session.ErrAborted) {
		t.Errorf("the old session: %v, want ABORTED", err)
	}
	if _, err := open(t, c, nil).Run(t.Context(), nil, []string{"v"}, nil); !errors.Is(err, session.ErrFailedPrecondition) {
		t.Errorf("the variable in a new session: %v, want FAILED_PRECONDITION", err)
	}
}

// queueGraph dequeues from a queue that stays empty.
func queueGraph() *tfpb.GraphDef {
	types := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{tfpb.DataType_DT_FLOAT}}}}
	return &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "q", Op: "FIFOQueueV2", Attr: map[string]*tfpb.AttrValue{"component_types": types}},
		{Name: "take", Op: "QueueDequeueV2", Input: []string{"q"}, Attr: map[string]*tfpb.AttrValue{"component_types": types}},
	}}
}

// TestStepsEnd: a step that waits forever ends with its context, and with
// its session.
func TestStepsEnd(t *testing.T) {
	c := serve(t, nil)
	s, err := c.NewSession(t.Context(), queueGraph(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, nil, []string{"take"}, nil); !errors.Is(err, session.ErrDeadlineExceeded) {
		t.Errorf("a step past its time: %v, want DEADLINE_EXCEEDED", err)
	}
	_, _, err = s.RunWithOptions(t.Context(), &tfpb.RunOptions{TimeoutInMs: 20}, nil, []string{"take"}, nil)
	if !errors.Is(err, session.ErrDeadlineExceeded) {
		t.Errorf("a step past its timeout_in_ms: %v, want DEADLINE_EXCEEDED", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Run(context.WithoutCancel(t.Context()), nil, []string{"take"}, nil)
		ended <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a step of a closed session ended without an error")
	}
}

func TestListDevices(t *testing.T) {
	local, others, err := serve(t, nil).ListDevices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 0}, []int{len(local), len(others)}); diff != "" {
		t.Fatalf("devices of the server and of others (-want +got):\n%s", diff)
	}
	if d := local[0]; d.GetDeviceType() != "CPU" || !strings.HasSuffix(d.GetName(), "/device:CPU:0") {
		t.Errorf("got device %v", d)
	}
}
