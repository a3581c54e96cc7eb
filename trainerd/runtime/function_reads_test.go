package runtime_test

import (
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// TestReadsInFunctions sums a variable in functions. One that only reads it has no memory for a
// copy; one that changes it afterwards gets the value before.
func TestReadsInFunctions(t *testing.T) {
	const f32, handle, elements = tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_RESOURCE, 1 << 20
	vector := func(n int32) *tfpb.TensorProto {
		return &tfpb.TensorProto{Dtype: loopInt, TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 1}}}, IntVal: []int32{n}}
	}
	function := func(name string, nodes ...*tfpb.NodeDef) *tfpb.FunctionDef {
		nodes = append([]*tfpb.NodeDef{
			{Name: "read", Op: "ReadVariableOp", Input: []string{"h"}, Attr: attrs("dtype", f32)},
			{Name: "all", Op: "Const", Attr: attrs("dtype", loopInt, "value", vector(0))},
		}, nodes...)
		return &tfpb.FunctionDef{Signature: &tfpb.OpDef{Name: name, IsStateful: true, InputArg: []*tfpb.OpDef_ArgDef{{Name: "h", Type: handle}},
			OutputArg: []*tfpb.OpDef_ArgDef{{Name: "sum", Type: f32}}}, NodeDef: nodes, Ret: map[string]string{"sum": "sum:output:0"}}
	}
	sum := func(after ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: "sum", Op: "Sum", Input: append([]string{"read:value:0", "all:output:0"}, after...), Attr: attrs("T", f32, "Tidx", loopInt)}
	}
	reads := function("reads", sum())
	changes := function("changes",
		&tfpb.NodeDef{Name: "twice", Op: "AddV2", Input: []string{"read:value:0", "read:value:0"}, Attr: attrs("T", f32)},
		&tfpb.NodeDef{Name: "assign", Op: "AssignVariableOp", Input: []string{"h", "twice:z:0"}, Attr: attrs("dtype", f32)},
		sum("^assign"))
	p := newPipe(t)
	p.def.Library = &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{reads, changes}}
	v := p.node("VarHandleOp", nil, "dtype", f32, "shared_name", "v")
	shape := &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: elements}}}
	p.def.Node[len(p.def.Node)-1].Attr["shape"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: shape}}
	x := p.node("Placeholder", nil, "dtype", f32)
	init := p.node("AssignVariableOp", []string{v, x}, "dtype", f32)
	call := func(name string) string {
		n := p.node("StatefulPartitionedCall", []string{v}, "Tin", []tfpb.DataType{handle}, "Tout", []tfpb.DataType{f32})
		last := p.def.Node[len(p.def.Node)-1]
		last.Attr["f"] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: name}}}
		return n
	}
	read, changed := call("reads"), call("changes")
	values := make([]float32, elements)
	values[7] = 3
	fed, err := ckptfmt.FromValues([]int64{elements}, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, node string
		memory     int64
		want       []float32
	}{{"reads", read, 7 << 20, []float32{3, 3}}, {"changes", changed, 64 << 20, []float32{3, 6, 12}}} {
		s, err := runtime.New(p.def, &runtime.Options{MaxMemory: c.memory})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Run(t.Context(), map[string]*ckptfmt.Tensor{x: fed}, nil, []string{init}); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			got, err := s.Run(t.Context(), nil, []string{c.node}, nil)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if sums, _ := ckptfmt.Values[float32](got[0]); sums[0] != want {
				t.Errorf("%s, call %d: the sum is %v, want %v", c.name, i, sums[0], want)
			}
		}
	}
}
