package target_test

import (
	"net"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/master"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

// counter is a graph with a variable n, which op add raises.
func counter(t *testing.T) *tfpb.MetaGraphDef {
	t.Helper()
	b := graph.NewBuilder()
	n := b.Variable(graph.VariableSpec{Name: "n", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Constant(5)})
	b.Identity("value", b.Read("", n))
	meta, err := b.MetaGraph()
	if err == nil {
		meta, err = graph.Complete(meta)
	}
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func TestOpen(t *testing.T) {
	served, err := (&target.Options{}).Serve(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	onDisk := &target.Options{ServerDisk: true}
	for _, c := range []struct {
		name, master string
		options      *target.Options
		isStore      bool
	}{
		{"this process", "", nil, true},
		{"local", target.Local, nil, true},
		{"server", served.Master(), nil, true},
		{"server with a disk", served.Master(), onDisk, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			meta := counter(t)
			sess, err := c.options.Open(t.Context(), c.master, meta)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := sess.(session.VariableStore); ok != c.isStore {
				t.Errorf("a VariableStore: %t; want %t", ok, c.isStore)
			}
			if _, err := sess.Run(t.Context(), nil, nil, []string{"init"}); err != nil {
				t.Fatal(err)
			}
			out, err := sess.Run(t.Context(), nil, []string{"value:0"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := ckptfmt.Values[float32](out[0]); err != nil || v[0] != 5 {
				t.Errorf("value is %v, %v; want 5", v, err)
			}
			if err := sess.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Other processes see the variables of a session that is served, and none of
// them after it is closed.
func TestServed(t *testing.T) {
	ln, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	meta := counter(t)
	sess, err := (&target.Options{Listener: ln}).Open(t.Context(), target.Local, meta)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if _, err := sess.Run(t.Context(), nil, nil, []string{"init"}); err != nil {
		t.Fatal(err)
	}
	master := sess.(*target.Served).Master()
	if want := "unix:" + ln.Addr().String(); master != want {
		t.Errorf("served at %q; want %q", master, want)
	}
	other, err := target.Open(t.Context(), master, meta)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Run(t.Context(), nil, []string{"value:0"}, nil); err != nil {
		t.Errorf("the variable is not shared: %v", err)
	}
	if err := sess.Close(); err != nil {
		t.Error(err)
	}
	if _, err := other.Run(t.Context(), nil, []string{"value:0"}, nil); err == nil {
		t.Error("a session that is closed is still served")
	}
}

// A graph or a server that is of no use leaves nothing open: no session, and no
// error that is one.
func TestOpenErrors(t *testing.T) {
	bad := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a", Op: "NoSuchOp", Input: []string{"b"}}}}}
	for _, master := range []string{"", target.Local, "localhost", "grpc://localhost", "ftp://localhost:1"} {
		if sess, err := target.Open(t.Context(), master, bad); err == nil || sess != nil {
			t.Errorf("%q: session %v, error %v; want an error alone", master, sess, err)
		}
	}
}

// TestServedMemory bounds what sessions of clients take. The limit is named as a Go
// program knows it only if one set it.
func TestServedMemory(t *testing.T) {
	b := graph.NewBuilder()
	b.Add(graph.NodeSpec{Op: "Neg", Name: "negated", Inputs: []graph.Output{b.Const("one", literal.Float(1))}, Attrs: graph.Attrs{"T": attr.Type(tfpb.DataType_DT_FLOAT)}})
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{"": "Options.MaxSessionMemory sets the limit", "train.memory_mb": "the server sets the limit"} {
		served, err := (&target.Options{MemoryOption: option, Server: master.Options{MaxSessionMemory: 1000}}).Serve(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer served.Close()
		sess, err := target.Open(t.Context(), served.Master(), meta)
		if err != nil {
			t.Fatal(err)
		}
		defer sess.Close()
		big := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{1000}, Data: make([]byte, 4000)}
		if _, err := sess.Run(t.Context(), map[string]*ckptfmt.Tensor{"one:0": big}, []string{"negated:0"}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("MemoryOption %q: got %v, want %q", option, err, want)
		}
	}
}
