package runtime_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

func typeAttr(dt tfpb.DataType) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: dt}}
}

// nodeDef makes a node with float attributes T and dtype.
func nodeDef(name, op string, inputs ...string) *tfpb.NodeDef {
	return &tfpb.NodeDef{Name: name, Op: op, Input: inputs, Attr: map[string]*tfpb.AttrValue{
		"T": typeAttr(tfpb.DataType_DT_FLOAT), "dtype": typeAttr(tfpb.DataType_DT_FLOAT)}}
}

func constant(name string, v ...float32) *tfpb.NodeDef {
	n := nodeDef(name, "Const")
	p := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{}, FloatVal: v}
	if len(v) != 1 {
		p.TensorShape.Dim = []*tfpb.TensorShapeProto_Dim{{Size: int64(len(v))}}
	}
	n.Attr["value"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: p}}
	return n
}

// variableDef makes a scalar variable of either kind.
func variableDef(name, op string) *tfpb.NodeDef {
	n := nodeDef(name, op)
	n.Attr["shape"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{}}}
	n.Attr["shared_name"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(name)}}
	return n
}

func newSession(t testing.TB, nodes ...*tfpb.NodeDef) *runtime.Session {
	t.Helper()
	s, err := runtime.New(&tfpb.GraphDef{Node: nodes}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// counters is a graph of two variables, one of each kind, that one step
// increments both.
func counters() []*tfpb.NodeDef {
	return []*tfpb.NodeDef{
		constant("zero", 0), constant("one", 1),
		variableDef("a", "VariableV2"), variableDef("b", "VarHandleOp"),
		nodeDef("a/init", "Assign", "a", "zero"), nodeDef("b/init", "AssignVariableOp", "b", "zero"),
		nodeDef("init", "NoOp", "^a/init", "^b/init"),
		nodeDef("a/read", "Identity", "a"), nodeDef("b/read", "ReadVariableOp", "b"),
		nodeDef("a/add", "AssignAdd", "a", "one"), nodeDef("b/add", "AssignAddVariableOp", "b", "one"),
		nodeDef("step", "NoOp", "^a/add", "^b/add"),
		nodeDef("b/after", "ReadVariableOp", "b", "^step"),
		nodeDef("sum", "AddV2", "a/read", "b/read"),
	}
}

func run(t testing.TB, s *runtime.Session, fetches []string, targets ...string) []float64 {
	t.Helper()
	out, err := s.Run(context.Background(), nil, fetches, targets)
	if err != nil {
		t.Fatal(err)
	}
	var values []float64
	for _, v := range out {
		values = append(values, scalarOf(t, v))
	}
	return values
}

// TestReadOrder checks what a run that also writes reads, with no path between
// the two, by what TensorFlow's executor gives: a resource variable as it was when
// the read ran, here after the update; a reference variable as it is when the
// value is used: for the sum before the update, at the end of the run if it is
// fetched.
func TestReadOrder(t *testing.T) {
	s := newSession(t, counters()...)
	run(t, s, nil, "init")
	for i := range 3 {
		got := fmt.Sprint(run(t, s, []string{"a/read", "b/read", "b/after", "a", "sum"}, "step"))
		want := fmt.Sprint([]float64{float64(i + 1), float64(i + 1), float64(i + 1), float64(i + 1), float64(2*i + 1)})
		if got != want {
			t.Fatalf("step %d: got %s, want %s", i, got, want)
		}
	}
}

// TestConsistentCut takes snapshots and runs readers while steps continue: both
// variables always show the same step.
func TestConsistentCut(t *testing.T) {
	s := newSession(t, counters()...)
	run(t, s, nil, "init")
	ctx := context.Background()
	var wg sync.WaitGroup
	const writers, steps = 3, 200
	for range writers {
		wg.Go(func() {
			for range steps {
				if _, err := s.Run(ctx, nil, nil, []string{"step"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for range steps {
			snap, err := s.Snapshot(ctx, []string{"a", "b"})
			if err != nil {
				t.Error(err)
				return
			}
			if !bytes.Equal(snap.Tensors[0].Data, snap.Tensors[1].Data) {
				t.Errorf("a snapshot between steps: %v, %v", snap.Tensors[0].Data, snap.Tensors[1].Data)
			}
		}
	})
	wg.Go(func() {
		for range steps {
			out, err := s.Run(ctx, nil, []string{"a/read", "b/read"}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if !bytes.Equal(out[0].Data, out[1].Data) {
				t.Errorf("a run between steps: %v, %v", out[0].Data, out[1].Data)
			}
		}
	})
	wg.Wait()
	if got := run(t, s, []string{"sum"})[0]; got != 2*writers*steps {
		t.Errorf("%v increments, want %d", got, 2*writers*steps)
	}
}

// TestResume stops a program with dropout in the middle, continues in another
// session, and ends with the bits of a run that was not stopped.
func TestResume(t *testing.T) {
	ctx := context.Background()
	whole, first, second := load(t, "mlp_dropout"), load(t, "mlp_dropout"), load(t, "mlp_dropout")
	names := []string{"b1", "global_step", "w1", "w2"}
	feeds := whole.feeds(t)
	const half = 7
	whole.restore(t)
	first.restore(t)
	for i, f := range feeds {
		whole.run(t, f, nil, whole.TrainOp)
		if i < half {
			first.run(t, f, nil, first.TrainOp)
		}
	}
	snap, err := first.sess.Snapshot(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	if len(snap.State) != 1 || !strings.HasPrefix(snap.State[0].Name, session.StatePrefix) {
		t.Fatalf("state %v, want that of the one random op in use", snap.State)
	}
	values := append([]ckptfmt.NamedTensor(nil), snap.State...)
	for i, name := range names {
		values = append(values, ckptfmt.NamedTensor{Name: name, Tensor: snap.Tensors[i]})
	}
	if err := second.sess.Restore(ctx, values); err != nil {
		t.Fatal(err)
	}
	for _, f := range feeds[half:] {
		second.run(t, f, nil, second.TrainOp)
	}
	want, err := whole.sess.Snapshot(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	got, err := second.sess.Snapshot(ctx, names)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if !bytes.Equal(got.Tensors[i].Data, want.Tensors[i].Data) {
			t.Errorf("variable %s differs", name)
		}
	}
	if !bytes.Equal(got.State[0].Tensor.Data, want.State[0].Tensor.Data) {
		t.Error("the random stream is at another position")
	}
}

// TestSaveRestore goes through the graph's own save and restore ops.
func TestSaveRestore(t *testing.T) {
	for _, name := range fed {
		if name == "softmax_no_saver" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p, q := load(t, name), load(t, name)
			p.restore(t)
			p.run(t, p.feeds(t)[0], nil, p.TrainOp)
			prefix := filepath.Join(t.TempDir(), "model.ckpt-1")
			saver := p.meta.GetSaverDef()
			file := map[string]*ckptfmt.Tensor{saver.GetFilenameTensorName(): {DType: tfpb.DataType_DT_STRING, Strings: [][]byte{[]byte(prefix)}}}
			got := p.run(t, file, []string{saver.GetSaveTensorName()})
			if string(got[0].Strings[0]) != prefix {
				t.Errorf("the save op returned %q", got[0].Strings[0])
			}
			q.run(t, file, nil, saver.GetRestoreOpName())
			var names []string
			for _, nt := range bundle(t, prefix) {
				names = append(names, nt.Name)
			}
			a, err := p.sess.Snapshot(context.Background(), names)
			if err != nil {
				t.Fatal(err)
			}
			b, err := q.sess.Snapshot(context.Background(), names)
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range names {
				if !bytes.Equal(a.Tensors[i].Data, b.Tensors[i].Data) {
					t.Errorf("variable %s differs", name)
				}
			}
		})
	}
}

// TestSummaries decodes what the programs' merged summaries give.
func TestSummaries(t *testing.T) {
	for _, name := range fed {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			p.restore(t)
			var sum tfpb.Summary
			if err := proto.Unmarshal(p.run(t, p.feeds(t)[0], []string{p.SummaryOp})[0].Strings[0], &sum); err != nil {
				t.Fatal(err)
			}
			tags := map[string]float64{}
			for _, v := range sum.GetValue() {
				tags[v.GetTag()] = float64(v.GetSimpleValue())
			}
			if want := p.PerStep[0]["loss"]; !near(tags["loss"], want, p.RTol, p.ATol) {
				t.Errorf("loss %v, want %v", tags["loss"], want)
			}
		})
	}
}

func float(v ...float32) *ckptfmt.Tensor {
	t := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{int64(len(v))}}
	t.Data, _ = binary.Append(nil, binary.LittleEndian, v)
	return t
}

func TestErrors(t *testing.T) {
	vector := nodeDef("x", "Placeholder")
	vector.Attr["shape"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 2}}}}}
	wrong := nodeDef("wrong", "Conv2D", "x", "x")
	wrong.Attr["T"] = typeAttr(tfpb.DataType_DT_STRING)
	s := newSession(t, append(counters(), vector, wrong,
		nodeDef("three", "Const"), constant("c2", 1, 2), constant("c3", 1, 2, 3),
		nodeDef("bad", "AddV2", "x", "c3"), nodeDef("odd", "NoSuchOp"), nodeDef("odder", "NoSuchOpEither"),
		nodeDef("both", "NoOp", "^odd", "^odder", "^wrong"), nodeDef("set", "Assign", "a", "c2"))...)
	ok := map[string]*ckptfmt.Tensor{"x": float(1, 2)}
	cases := []struct {
		name    string
		feeds   map[string]*ckptfmt.Tensor
		fetches []string
		target  string
		code    error
		want    []string // in the message
	}{
		{"unknown fetch", nil, []string{"nothing"}, "", session.ErrNotFound, []string{"nothing"}},
		{"unknown output", nil, []string{"one:3"}, "", session.ErrNotFound, []string{"one:3"}},
		{"unknown feed", map[string]*ckptfmt.Tensor{"nothing": float(1)}, []string{"one"}, "", session.ErrNotFound, []string{"nothing"}},
		{"not fed", nil, []string{"x"}, "", session.ErrInvalidArgument, []string{"x", "fed"}},
		{"feed of another shape", map[string]*ckptfmt.Tensor{"x": float(1, 2, 3)}, []string{"x"}, "", session.ErrInvalidArgument, []string{"x", "[3]"}},
		{"feed of another type", map[string]*ckptfmt.Tensor{"x": {DType: tfpb.DataType_DT_INT32, Shape: []int64{2}, Data: make([]byte, 8)}}, []string{"x"}, "", session.ErrInvalidArgument, []string{"int32"}},
		{"short feed", map[string]*ckptfmt.Tensor{"x": {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 7)}}, []string{"x"}, "", session.ErrInvalidArgument, []string{"7 bytes"}},
		{"nil feed", map[string]*ckptfmt.Tensor{"x": nil}, []string{"x"}, "", session.ErrInvalidArgument, []string{"nil"}},
		{"shapes that do not fit", ok, []string{"bad"}, "", session.ErrInvalidArgument, []string{"bad (AddV2)", "[2]", "[3]"}},
		{"not initialised", nil, []string{"a/read"}, "", session.ErrFailedPrecondition, []string{`"a"`}},
		{"not initialised, resource", nil, []string{"b/read"}, "", session.ErrFailedPrecondition, []string{`"b"`}},
		{"missing ops", ok, nil, "both", session.ErrUnimplemented, []string{"odd (NoSuchOp)", "odder (NoSuchOpEither)", "wrong (Conv2D: no kernel for T=string)"}},
		{"assign another shape", nil, nil, "set", session.ErrInvalidArgument, []string{`"a"`, "[2]"}},
		{"const without value", nil, []string{"three"}, "", session.ErrInvalidArgument, []string{"three", "value"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var targets []string
			if c.target != "" {
				targets = []string{c.target}
			}
			_, err := s.Run(context.Background(), c.feeds, c.fetches, targets)
			if !errors.Is(err, c.code) {
				t.Fatalf("got %v, want %v", err, c.code)
			}
			for _, text := range c.want {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not mention %q", err, text)
				}
			}
		})
	}
}

// TestRestoreAllOrNothing restores values, one of them of the wrong shape.
func TestRestoreAllOrNothing(t *testing.T) {
	s := newSession(t, counters()...)
	run(t, s, nil, "init")
	scalar := float(5)
	scalar.Shape = nil
	for name, bad := range map[string]ckptfmt.NamedTensor{
		"shape": {Name: "b", Tensor: float(1, 2)},
		"type":  {Name: "b", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT32, Data: make([]byte, 4)}},
		"name":  {Name: "c", Tensor: scalar},
		"state": {Name: session.StatePrefix + "random/x", Tensor: scalar},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.Restore(context.Background(), []ckptfmt.NamedTensor{{Name: "a", Tensor: scalar}, bad}); err == nil {
				t.Fatal("no error")
			}
			if got := run(t, s, []string{"a/read"})[0]; got != 0 {
				t.Errorf("a is %v, want it untouched", got)
			}
		})
	}
	if err := s.Restore(context.Background(), []ckptfmt.NamedTensor{{Name: "a", Tensor: scalar}, {Name: session.StatePrefix + "later", Tensor: scalar}}); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, []string{"a/read"})[0]; got != 5 {
		t.Errorf("a is %v, want 5", got)
	}
}

// TestBadGraphs is what New refuses.
func TestBadGraphs(t *testing.T) {
	cases := map[string][]*tfpb.NodeDef{
		"no name":           {nodeDef("", "NoOp")},
		"two of one name":   {nodeDef("a", "NoOp"), nodeDef("a", "NoOp")},
		"unknown input":     {nodeDef("a", "Identity", "b")},
		"unknown control":   {nodeDef("a", "NoOp", "^b")},
		"input after":       {constant("c", 1), nodeDef("a", "AddV2", "c", "^c", "c")},
		"bad output number": {constant("c", 1), nodeDef("a", "Identity", "c:-1")},
		"variable untyped":  {{Name: "v", Op: "VariableV2"}},
	}
	for name, nodes := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := runtime.New(&tfpb.GraphDef{Node: nodes}, nil); !errors.Is(err, session.ErrInvalidArgument) {
				t.Errorf("got %v, want INVALID_ARGUMENT", err)
			}
		})
	}
	t.Run("cycle", func(t *testing.T) {
		s := newSession(t, nodeDef("a", "Identity", "b"), nodeDef("b", "Identity", "a"))
		if _, err := s.Run(context.Background(), nil, []string{"a"}, nil); !errors.Is(err, session.ErrInvalidArgument) {
			t.Errorf("got %v, want INVALID_ARGUMENT", err)
		}
	})
}

// TestClosed calls a closed session.
func TestClosed(t *testing.T) {
	s := newSession(t, counters()...)
	s.Close()
	if _, err := s.Run(context.Background(), nil, []string{"one"}, nil); !errors.Is(err, session.ErrCancelled) {
		t.Errorf("got %v, want CANCELLED", err)
	}
}

// TestDeadline runs with a context that is done.
func TestDeadline(t *testing.T) {
	s := newSession(t, counters()...)
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if _, err := s.Run(ctx, nil, nil, []string{"init"}); !errors.Is(err, session.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
}
