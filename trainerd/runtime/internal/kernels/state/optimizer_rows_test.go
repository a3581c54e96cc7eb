package state_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestShortRows updates rows of one element, some of them twice, in one step and one
// by one.
func TestShortRows(t *testing.T) {
	const rows, updates = 40, 64
	r := rand.New(rand.NewPCG(1, 9))
	values := make([]float32, rows)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	grads, indices := make([]float32, updates), make([]int32, updates)
	for k := range grads {
		grads[k], indices[k] = float32(r.NormFloat64()), int32(r.IntN(rows))
	}
	for k := range 30 { // no row twice
		indices[k] = int32(k)
	}
	trained := func(pieces int) []float32 {
		g := kerneltest.New(t)
		shape := &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: rows}, {Size: 1}}}
		var handles, inits []string
		for _, v := range [][]float32{values, slices.Repeat([]float32{.1}, rows), make([]float32, rows)} {
			h := g.Node("VarHandleOp", nil, "dtype", tfpb.DataType_DT_FLOAT, "shape", shape, "shared_name", string(rune('a'+len(handles))))
			handles = append(handles, h)
			inits = append(inits, g.Node("AssignVariableOp", []string{h, kerneltest.Tensor(g, []int64{rows, 1}, v...)}, "dtype", tfpb.DataType_DT_FLOAT))
		}
		number := func(v float32) string { return kerneltest.Scalar(g, v) }
		var list []string
		for i := range pieces {
			part := grads[i*updates/pieces : (i+1)*updates/pieces]
			inputs := slices.Concat(handles, []string{kerneltest.Tensor(g, []int64{int64(len(part)), 1}, part...),
				kerneltest.Vector(g, indices[i*updates/pieces:(i+1)*updates/pieces]...), number(.1), number(.001), number(0), number(-.5)})
			list = append(list, g.Node("ResourceSparseApplyFtrl", inputs, "T", tfpb.DataType_DT_FLOAT, "Tindices", tfpb.DataType_DT_INT32))
		}
		read := g.Node("ReadVariableOp", handles[:1], "dtype", tfpb.DataType_DT_FLOAT)
		g.Run(nil, inits...)
		for _, update := range list {
			g.Run(nil, update)
		}
		return kerneltest.Values[float32](t, g.Run([]string{read})[0])
	}
	if got, want := trained(1), trained(updates); !slices.Equal(got, want) {
		t.Errorf("together: %v\none by one: %v", got, want)
	}
}
