package remote_test

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
	"github.com/trainerd/trainerd/trainerd/session"
)

func floats(v ...float32) *ckptfmt.Tensor {
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{int64(len(v))}}
	for _, x := range v {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(x))
	}
	return t
}

func values(t *testing.T, x *ckptfmt.Tensor) []float32 {
	t.Helper()
	v, err := ckptfmt.Values[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// storeGraph has a variable of each kind, one of an unknown shape, a step that
// changes two, and one that waits for a queue.
func storeGraph() *tfpb.GraphDef {
	dtype := &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}}
	types := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{tfpb.DataType_DT_FLOAT}}}}
	shape := func(p *tfpb.TensorShapeProto) *tfpb.AttrValue {
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: p}}
	}
	two := shape(&tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 2}}})
	open := shape(&tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: -1}}})
	type attrs = map[string]*tfpb.AttrValue
	return &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		{Name: "x", Op: "Placeholder", Attr: attrs{"dtype": dtype}},
		{Name: "ref", Op: "VariableV2", Attr: attrs{"dtype": dtype, "shape": two}},
		{Name: "handle", Op: "VarHandleOp", Attr: attrs{"dtype": dtype, "shape": two, "shared_name": {Value: &tfpb.AttrValue_S{S: []byte("resource")}}}},
		{Name: "open", Op: "VarHandleOp", Attr: attrs{"dtype": dtype, "shape": open}},
		{Name: "add_ref", Op: "AssignAdd", Input: []string{"ref", "x"}, Attr: attrs{"T": dtype}},
		{Name: "add_resource", Op: "AssignAddVariableOp", Input: []string{"handle", "x"}, Attr: attrs{"dtype": dtype}},
		{Name: "step", Op: "NoOp", Input: []string{"^add_ref", "^add_resource"}},
		{Name: "queue", Op: "FIFOQueueV2", Attr: attrs{"component_types": types}},
		{Name: "take", Op: "QueueDequeueV2", Input: []string{"queue"}, Attr: attrs{"component_types": types}},
		{Name: "put", Op: "QueueEnqueueV2", Input: []string{"queue", "x"}, Attr: attrs{"Tcomponents": types}},
		{Name: "add_taken", Op: "AssignAdd", Input: []string{"ref", "take"}, Attr: attrs{"T": dtype}},
	}}
}

func newStore(t *testing.T) *remote.Store {
	t.Helper()
	graph := storeGraph()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, served := master.New(nil), make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	client, err := remote.Dial(t.Context(), "grpc://"+ln.Addr().String(), &remote.Options{ConnectTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
		<-served
	})
	sess, err := client.NewSession(t.Context(), graph, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := remote.NewStore(t.Context(), sess, graph)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func initial() []ckptfmt.NamedTensor {
	return []ckptfmt.NamedTensor{{Name: "ref", Tensor: floats(1, 2)}, {Name: "resource", Tensor: floats(3, 4)},
		{Name: "open", Tensor: floats(5, 6, 7)}, {Name: session.StatePrefix + "random/x", Tensor: floats(0)}}
}

// TestVariablesOfSilentServer wants that a listing fails when the server cannot be asked, rather
// than call every variable one without a value, and that it can be given up.
func TestVariablesOfSilentServer(t *testing.T) {
	st := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list, err := st.Variables(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a listing that was given up says %v, %v", list, err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := st.Variables(t.Context()); err == nil {
		t.Errorf("a closed session has the variables %v", list)
	}
}

// variablesOf lists the variables.
func variablesOf(t *testing.T, st *remote.Store) []session.VariableInfo {
	t.Helper()
	list, err := st.Variables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestStoreCopies sets variables, changes them, and copies them back.
func TestStoreCopies(t *testing.T) {
	st := newStore(t)
	want := []session.VariableInfo{{Name: "open", DType: tfpb.DataType_DT_FLOAT},
		{Name: "ref", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}}, {Name: "resource", DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}}}
	if diff := cmp.Diff(want, variablesOf(t, st)); diff != "" {
		t.Fatalf("variables before any has a value (-want +got):\n%s", diff)
	}
	if err := st.Restore(t.Context(), initial()); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].Initialized = true
	}
	want[0].Shape = []int64{3}
	if diff := cmp.Diff(want, variablesOf(t, st)); diff != "" {
		t.Fatalf("variables with values (-want +got):\n%s", diff)
	}
	if _, err := st.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": floats(10, 20)}, nil, []string{"step"}); err != nil {
		t.Fatal(err)
	}
	snap, err := st.Snapshot(t.Context(), []string{"resource", "ref", "open"})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]float32
	for _, x := range snap.Tensors {
		got = append(got, values(t, x))
	}
	if diff := cmp.Diff([][]float32{{13, 24}, {11, 22}, {5, 6, 7}}, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func TestStoreRefuses(t *testing.T) {
	st := newStore(t)
	if _, err := st.Snapshot(t.Context(), []string{"ref"}); !errors.Is(err, session.ErrFailedPrecondition) {
		t.Errorf("a snapshot without values: %v, want FAILED_PRECONDITION", err)
	}
	if _, err := st.Snapshot(t.Context(), []string{"nobody"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a snapshot of no variable: %v, want NOT_FOUND", err)
	}
	if err := st.Restore(t.Context(), initial()); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]ckptfmt.NamedTensor{
		"unknown":     {Name: "nobody", Tensor: floats(1)},
		"no tensor":   {Name: "resource"},
		"wrong shape": {Name: "resource", Tensor: floats(1, 2, 3)},
		"wrong type":  {Name: "resource", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Shape: []int64{2}, Data: make([]byte, 8)}},
	} {
		if err := st.Restore(t.Context(), []ckptfmt.NamedTensor{{Name: "ref", Tensor: floats(8, 9)}, bad}); err == nil {
			t.Errorf("%s: restored", name)
		}
	}
	snap, err := st.Snapshot(t.Context(), []string{"ref"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{1, 2}, values(t, snap.Tensors[0])); diff != "" {
		t.Errorf("a refused restore changed a variable (-want +got):\n%s", diff)
	}
}

// TestStoreSnapshotIsBetweenSteps: whatever steps run, a snapshot sees both
// variables after the same one.
func TestStoreSnapshotIsBetweenSteps(t *testing.T) {
	st := newStore(t)
	if err := st.Restore(t.Context(), []ckptfmt.NamedTensor{{Name: "ref", Tensor: floats(0, 0)}, {Name: "resource", Tensor: floats(0, 0)}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			for ctx.Err() == nil {
				if _, err := st.Run(context.WithoutCancel(ctx), map[string]*ckptfmt.Tensor{"x": floats(1, 1)}, nil, []string{"step"}); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range 50 {
		snap, err := st.Snapshot(t.Context(), []string{"ref", "resource"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(values(t, snap.Tensors[0]), values(t, snap.Tensors[1])); diff != "" {
			t.Fatalf("a snapshot in the middle of a step:\n%s", diff)
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestStoreSnapshotAndQueues: a snapshot waits for a step that waits for a
// queue, and keeps nobody from filling it; a wait ends with its context.
func TestStoreSnapshotAndQueues(t *testing.T) {
	st := newStore(t)
	if err := st.Restore(t.Context(), []ckptfmt.NamedTensor{{Name: "ref", Tensor: floats(0, 0)}}); err != nil {
		t.Fatal(err)
	}
	stepped := make(chan error, 1)
	go func() {
		_, err := st.Run(t.Context(), nil, []string{"add_taken"}, nil)
		stepped <- err
	}()
	// Until the step is on its way, the snapshot does not wait for it.
	for ended := false; !ended; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := st.Snapshot(ctx, []string{"ref"})
		ended = errors.Is(err, session.ErrDeadlineExceeded) && strings.Contains(err.Error(), "waiting for steps")
		cancel()
	}
	if _, err := st.Run(t.Context(), map[string]*ckptfmt.Tensor{"x": floats(4, 5)}, nil, []string{"put"}); err != nil {
		t.Fatal(err)
	}
	if err := <-stepped; err != nil {
		t.Fatal(err)
	}
	snap, err := st.Snapshot(t.Context(), []string{"ref"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float32{4, 5}, values(t, snap.Tensors[0])); diff != "" {
		t.Errorf("after the step (-want +got):\n%s", diff)
	}
}
