package runtime_test

import (
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime"
)

// loopFunction returns a function of the variables i, w, x and y of a loop.
func loopFunction(name string, results []*tfpb.OpDef_ArgDef, ret map[string]string, nodes ...*tfpb.NodeDef) *tfpb.FunctionDef {
	args := []*tfpb.OpDef_ArgDef{{Name: "i", Type: loopInt}, {Name: "w", Type: loopFloat}, {Name: "x", Type: loopFloat}, {Name: "y", Type: loopFloat}}
	return &tfpb.FunctionDef{Signature: &tfpb.OpDef{Name: name, InputArg: args, OutputArg: results}, NodeDef: nodes, Ret: ret}
}

func constOf(name string, v int32) *tfpb.NodeDef {
	return &tfpb.NodeDef{Name: name, Op: "Const", Attr: attrs("dtype", loopInt, "value", &tfpb.TensorProto{Dtype: loopInt, TensorShape: &tfpb.TensorShapeProto{}, IntVal: []int32{v}})}
}

// functionalLoop is a graph with a loop of TensorFlow 2 that adds the product of x, transposed, and y
// to w in each iteration, and passes x and y on. Its conditions are that it did so n times, or
// that the sum of w is below n.
func functionalLoop(t *testing.T, cond string, n int32) *runtime.Session {
	result := func(name string, dt tfpb.DataType) *tfpb.OpDef_ArgDef {
		return &tfpb.OpDef_ArgDef{Name: name, Type: dt}
	}
	truth, ret := []*tfpb.OpDef_ArgDef{result("more", tfpb.DataType_DT_BOOL)}, map[string]string{"more": "more:z:0"}
	counted := loopFunction("counted", truth, ret, constOf("n", n),
		&tfpb.NodeDef{Name: "more", Op: "Less", Input: []string{"i", "n:output:0"}, Attr: attrs("T", loopInt)})
	summed := loopFunction("summed", truth, ret, constOf("n", n),
		&tfpb.NodeDef{Name: "limit", Op: "Cast", Input: []string{"n:output:0"}, Attr: attrs("SrcT", loopInt, "DstT", loopFloat)},
		&tfpb.NodeDef{Name: "rank", Op: "Const", Attr: attrs("dtype", loopInt, "value", &tfpb.TensorProto{Dtype: loopInt,
			TensorShape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 2}}}, IntVal: []int32{0, 1}})},
		&tfpb.NodeDef{Name: "all", Op: "Sum", Input: []string{"w", "rank:output:0"}, Attr: attrs("T", loopFloat, "Tidx", loopInt)},
		&tfpb.NodeDef{Name: "more", Op: "Less", Input: []string{"all:output:0", "limit:y:0"}, Attr: attrs("T", loopFloat)})
	step := loopFunction("step", []*tfpb.OpDef_ArgDef{result("i_", loopInt), result("w_", loopFloat), result("x_", loopFloat), result("y_", loopFloat)},
		map[string]string{"i_": "next:z:0", "w_": "sum:z:0", "x_": "x", "y_": "y"}, constOf("one", 1),
		&tfpb.NodeDef{Name: "next", Op: "AddV2", Input: []string{"i", "one:output:0"}, Attr: attrs("T", loopInt)},
		&tfpb.NodeDef{Name: "product", Op: "MatMul", Input: []string{"x", "y"}, Attr: attrs("T", loopFloat, "transpose_a", true)},
		&tfpb.NodeDef{Name: "sum", Op: "AddV2", Input: []string{"w", "product:product:0"}, Attr: attrs("T", loopFloat)})
	types := []tfpb.DataType{loopInt, loopFloat, loopFloat, loopFloat}
	var nodes []*tfpb.NodeDef
	for i, dt := range types {
		nodes = append(nodes, &tfpb.NodeDef{Name: []string{"i", "w", "x", "y"}[i], Op: "Placeholder", Attr: attrs("dtype", dt)})
	}
	function := func(name string) *tfpb.AttrValue {
		return &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: name}}}
	}
	loop := &tfpb.NodeDef{Name: "loop", Op: "While", Input: []string{"i", "w", "x", "y"}, Attr: attrs("T", types)}
	loop.Attr["cond"], loop.Attr["body"] = function(cond), function("step")
	s, err := runtime.New(&tfpb.GraphDef{Node: append(nodes, loop), Library: &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{counted, summed, step}}},
		&runtime.Options{MaxMemory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestWhile adds up products in loops that end after some iterations, after none, and when a
// condition on the sum no longer holds.
func TestWhile(t *testing.T) {
	for _, v := range []struct {
		cond string
		n    int32
		want []float32 // i and w
	}{
		{"counted", 0, []float32{0, 1, 1, 1, 1, 1, 1}},
		{"counted", 5, []float32{5, 26, 31, 36, 31, 41, 51}}, // 1 + 5 times the product
		{"summed", 100, []float32{3, 16, 19, 22, 19, 25, 31}},
	} {
		s := functionalLoop(t, v.cond, v.n)
		feeds := map[string]*ckptfmt.Tensor{"i": ckptfmt.Scalar(int32(0)), "w": matrixOf(t, 2, 3, 1, 1, 1, 1, 1, 1), "x": matrixOf(t, 2, 2, 1, 1, 1, 2), "y": matrixOf(t, 2, 3, 4, 4, 4, 1, 2, 3)}
		got, err := s.Run(t.Context(), feeds, []string{"loop:0", "loop:1", "loop:2"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		i, _ := ckptfmt.Values[int32](got[0])
		w, _ := ckptfmt.Values[float32](got[1])
		if all := append([]float32{float32(i[0])}, w...); !slices.Equal(all, v.want) || !slices.Equal(got[2].Data, feeds["x"].Data) {
			t.Errorf("%s, %d: %v, want %v", v.cond, v.n, all, v.want)
		}
	}
}

func matrixOf(t *testing.T, rows, cols int64, v ...float32) *ckptfmt.Tensor {
	m, err := ckptfmt.FromValues([]int64{rows, cols}, v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWhileMemory runs a loop of so many iterations that its variables would not fit into the
// memory of the session if each had some of its own.
func TestWhileMemory(t *testing.T) {
	s := functionalLoop(t, "counted", 200)
	const n = 1 << 20
	feeds := map[string]*ckptfmt.Tensor{"i": ckptfmt.Scalar(int32(0)), "w": matrixOf(t, 1, n, make([]float32, n)...), "x": matrixOf(t, 1, 1, 1), "y": matrixOf(t, 1, n, make([]float32, n)...)}
	before := allocated()
	if _, err := s.Run(t.Context(), feeds, nil, []string{"loop"}); err != nil {
		t.Error(err)
	}
	if mib := (allocated() - before) >> 20; mib > 64 {
		t.Errorf("the loop allocated %d MiB", mib)
	}
}

func allocated() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}
