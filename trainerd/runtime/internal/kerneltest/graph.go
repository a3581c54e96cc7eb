// Package kerneltest builds small graphs for the tests of kernels: values that a
// test writes down, nodes of the ops under test, and a run in the embedded
// runtime. A [Graph] belongs to one test, and is not for concurrent use.
package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/opdef"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Graph is a graph in the making.
type Graph struct {
	t     testing.TB
	def   *tfpb.GraphDef
	feeds map[string]*ckptfmt.Tensor
	types map[string]tfpb.DataType // by name of a tensor
	sess  *runtime.Session
	// stepwise is the session of Stepwise.
	stepwise *runtime.Session
}

// New returns an empty graph.
func New(t testing.TB) *Graph {
	return &Graph{t: t, def: &tfpb.GraphDef{}, feeds: map[string]*ckptfmt.Tensor{}, types: map[string]tfpb.DataType{}}
}

// Tensor adds a tensor, which every run is fed with, and returns its name.
func Tensor[T ckptfmt.Element](g *Graph, shape []int64, v ...T) string {
	g.t.Helper()
	t, err := ckptfmt.FromValues(shape, v)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.feed(t)
}

// Vector adds a tensor of rank 1.
func Vector[T ckptfmt.Element](g *Graph, v ...T) string {
	g.t.Helper()
	return Tensor(g, []int64{int64(len(v))}, v...)
}

// Scalar adds a tensor of rank 0.
func Scalar[T ckptfmt.Element](g *Graph, v T) string { return g.feed(ckptfmt.Scalar(v)) }

func (g *Graph) feed(t *ckptfmt.Tensor) string {
	name := g.Node("Placeholder", nil, "dtype", t.DType)
	g.feeds[name+":0"] = t
	return name
}

// Feed gives a tensor that runs are fed with another value.
func (g *Graph) Feed(name string, t *ckptfmt.Tensor) { g.feeds[name+":0"] = t }

// Node adds a node, and returns its name. pairs are names and values of
// attributes; the types of inputs need not be given.
func (g *Graph) Node(op string, inputs []string, pairs ...any) string {
	g.t.Helper()
	n := &tfpb.NodeDef{Name: fmt.Sprintf("%s_%d", op, len(g.def.Node)), Op: op, Input: inputs, Attr: map[string]*tfpb.AttrValue{}}
	for i := 0; i < len(pairs); i += 2 {
		n.Attr[pairs[i].(string)] = g.attr(pairs[i+1])
	}
	g.inferTypes(n)
	outputs, err := opdef.Outputs(n)
	if err != nil {
		g.t.Fatalf("%s: %v", op, err)
	}
	for i, o := range outputs {
		g.types[fmt.Sprintf("%s:%d", n.Name, i)] = o.Type
	}
	g.def.Node = append(g.def.Node, n)
	return n.Name
}

// inferTypes sets the attributes that say what the inputs are.
func (g *Graph) inferTypes(n *tfpb.NodeDef) {
	at := 0
	for _, arg := range opdef.Lookup(n.Op).GetInputArg() {
		count := 1
		list := arg.GetTypeListAttr()
		if list != "" {
			count = len(n.Input) - at
		}
		if number := arg.GetNumberAttr(); number != "" {
			count = int(n.Attr[number].GetI())
		}
		var types []tfpb.DataType
		for ; count > 0 && at < len(n.Input); count-- {
			types = append(types, g.types[tensorName(n.Input[at])])
			at++
		}
		switch attr := arg.GetTypeAttr(); {
		case list != "" && n.Attr[list] == nil:
			n.Attr[list] = g.attr(types)
		case attr != "" && n.Attr[attr] == nil && len(types) > 0:
			n.Attr[attr] = g.attr(types[0])
		}
	}
}

func tensorName(input string) string {
	if strings.Contains(input, ":") {
		return input
	}
	return input + ":0"
}

func (g *Graph) attr(v any) *tfpb.AttrValue {
	switch v := v.(type) {
	case tfpb.DataType:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: v}}
	case []tfpb.DataType:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: v}}}
	case int:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: int64(v)}}
	case bool:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: v}}
	case string:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(v)}}
	case float32:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_F{F: v}}
	case []int64:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{I: v}}}
	case *tfpb.TensorShapeProto:
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: v}}
	case [][]int64:
		list := &tfpb.AttrValue_ListValue{}
		for _, dims := range v {
			s := &tfpb.TensorShapeProto{}
			for _, d := range dims {
				s.Dim = append(s.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
			}
			list.Shape = append(list.Shape, s)
		}
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: list}}
	}
	g.t.Fatalf("attribute %v of type %T", v, v)
	return nil
}

// Run runs the graph, in the same session each time, and returns what tensors
// hold. Targets are nodes that are run for their effects.
func (g *Graph) Run(fetches []string, targets ...string) []*ckptfmt.Tensor {
	g.t.Helper()
	out, err := g.Try(fetches, targets...)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

// Try is Run for a run that may fail.
func (g *Graph) Try(fetches []string, targets ...string) ([]*ckptfmt.Tensor, error) {
	g.t.Helper()
	if g.sess == nil {
		g.sess = g.session()
	}
	return g.sess.Run(context.Background(), g.feeds, fetches, targets)
}

// Stepwise is Run in a session of its own that runs each node alone, as a trace needs
// it.
func (g *Graph) Stepwise(fetches []string, targets ...string) []*ckptfmt.Tensor {
	g.t.Helper()
	if g.stepwise == nil {
		g.stepwise = g.session()
	}
	traced := &tfpb.RunOptions{TraceLevel: tfpb.RunOptions_FULL_TRACE}
	out, _, err := g.stepwise.RunWithOptions(context.Background(), traced, g.feeds, fetches, targets)
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

func (g *Graph) session() *runtime.Session {
	g.t.Helper()
	s, err := runtime.New(g.def, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { s.Close() })
	return s
}

// Close ends the session.
func (g *Graph) Close() error { return g.sess.Close() }

// Code returns the code of a run's error.
func Code(err error) tfpb.Code {
	var op *session.OpError
	if !errors.As(err, &op) {
		return tfpb.Code_UNKNOWN
	}
	return op.Code
}

// Values returns the elements of a tensor.
func Values[T ckptfmt.Element](t testing.TB, got *ckptfmt.Tensor) []T {
	t.Helper()
	v, err := ckptfmt.Values[T](got)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Want compares the elements of a tensor.
func Want[T ckptfmt.Element](t testing.TB, got *ckptfmt.Tensor, want ...T) {
	t.Helper()
	WantValues(t, Values[T](t, got), want)
}

// WantValues compares two lists.
func WantValues[T comparable](t testing.TB, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
