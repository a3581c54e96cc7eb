package runtime_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// TestFunctionNodes runs nodes whose op is the name of a function: in the graph,
// and in another function, by the names of their results.
func TestFunctionNodes(t *testing.T) {
	float := &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}}
	typed := map[string]*tfpb.AttrValue{"T": float}
	arg := func(name string) *tfpb.OpDef_ArgDef {
		return &tfpb.OpDef_ArgDef{Name: name, Type: tfpb.DataType_DT_FLOAT}
	}
	twice := &tfpb.FunctionDef{
		Signature: &tfpb.OpDef{Name: "twice", InputArg: []*tfpb.OpDef_ArgDef{arg("x")}, OutputArg: []*tfpb.OpDef_ArgDef{arg("low"), arg("high")}},
		NodeDef: []*tfpb.NodeDef{
			{Name: "sum", Op: "AddV2", Input: []string{"x", "x"}, Attr: typed},
			{Name: "square", Op: "Mul", Input: []string{"sum:z:0", "x"}, Attr: typed},
		},
		Ret: map[string]string{"low": "sum:z:0", "high": "square:z:0"},
	}
	outer := &tfpb.FunctionDef{
		Signature: &tfpb.OpDef{Name: "outer", InputArg: []*tfpb.OpDef_ArgDef{arg("x")}, OutputArg: []*tfpb.OpDef_ArgDef{arg("y")}},
		NodeDef:   []*tfpb.NodeDef{{Name: "inner", Op: "twice", Input: []string{"x"}}, {Name: "less", Op: "Neg", Input: []string{"inner:high:0"}, Attr: typed}},
		Ret:       map[string]string{"y": "less:y:0"},
	}
	value := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{}, FloatVal: []float32{3}}
	def := &tfpb.GraphDef{
		Node: []*tfpb.NodeDef{
			{Name: "x", Op: "Const", Attr: map[string]*tfpb.AttrValue{"dtype": float, "value": {Value: &tfpb.AttrValue_Tensor{Tensor: value}}}},
			{Name: "call", Op: "twice", Input: []string{"x"}},
			{Name: "nested", Op: "outer", Input: []string{"x"}},
		},
		Library: &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{twice, outer}},
	}
	s, err := runtime.New(def, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), nil, []string{"call:0", "call:1", "nested"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{6, 18, -18} {
		if v := math.Float32frombits(binary.LittleEndian.Uint32(got[i].Data)); v != want {
			t.Errorf("result %d is %v, want %v", i, v, want)
		}
	}
}
