package math_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// updates is a random program of element-wise ops that reads and changes
// variables: tensors of m by n, rows of n, columns of m and single numbers, and
// views of the variables.
type updates struct {
	*kerneltest.Graph
	dtype                  tfpb.DataType
	m, n                   int
	r                      *rand.Rand
	whole, rows, columns   []string
	handles, inits, stores []string
}

func (u *updates) values(shape ...int64) string {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(u.r.NormFloat64())
	}
	return u.typed(kerneltest.Tensor(u.Graph, shape, v...))
}

// typed returns float32s as the type of the program.
func (u *updates) typed(name string) string {
	if u.dtype == tfpb.DataType_DT_FLOAT {
		return name
	}
	return u.Node("Cast", []string{name}, "DstT", u.dtype)
}

func (u *updates) variable() {
	shape := &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(u.m)}, {Size: int64(u.n)}}}
	handle := u.Node("VarHandleOp", nil, "dtype", u.dtype, "shape", shape)
	u.handles = append(u.handles, handle)
	u.inits = append(u.inits, u.Node("AssignVariableOp", []string{handle, u.values(int64(u.m), int64(u.n))}, "dtype", u.dtype))
}

func (u *updates) read() string {
	return u.Node("ReadVariableOp", []string{u.handles[u.r.IntN(len(u.handles))]}, "dtype", u.dtype)
}

func (u *updates) pick(list []string) string { return list[max(0, len(list)-1-u.r.IntN(5))] }

func (u *updates) grow() {
	x := u.pick(u.whole)
	binary := []string{"AddV2", "Sub", "Mul", "SquaredDifference", "Maximum", "RealDiv"}[u.r.IntN(6)]
	add := func(n string) { u.whole = append(u.whole, u.Node("Tanh", []string{n})) }
	switch u.r.IntN(10) {
	case 0:
		add(u.Node([]string{"Relu", "Square", "Neg", "Sigmoid", "Exp", "Abs", "Elu", "Softplus", "Softsign"}[u.r.IntN(9)], []string{x}))
	case 1:
		add(u.Node(binary, []string{x, u.pick(u.whole)}))
	case 2:
		binary = []string{binary, "TanhGrad", "SigmoidGrad", "EluGrad", "SoftplusGrad"}[u.r.IntN(5)]
		add(u.Node(binary, []string{x, u.pick(u.whole)}))
	case 3:
		pair := []string{x, u.typed(kerneltest.Scalar(u.Graph, float32(u.r.NormFloat64())))}
		if u.r.IntN(2) == 0 {
			slices.Reverse(pair)
		}
		add(u.Node(binary, pair))
	case 4:
		pair := []string{x, u.pick(slices.Concat(u.rows, u.columns))}
		if u.r.IntN(2) == 0 {
			slices.Reverse(pair)
		}
		add(u.Node(binary, pair))
	case 5:
		list := []string{x, u.pick(u.whole), u.pick(u.whole), x}[:1+u.r.IntN(4)]
		add(u.Node("AddN", list, "N", len(list)))
	case 6:
		u.whole = append(u.whole, u.read())
	case 7: // a row of a variable, which may change while the row is used
		begin := kerneltest.Vector(u.Graph, int32(u.r.IntN(u.m)), int32(0))
		row := u.Node("Slice", []string{u.read(), begin, kerneltest.Vector(u.Graph, int32(1), int32(u.n))})
		u.rows = append(u.rows, row)
		add(u.Node("Sub", []string{x, row}))
	case 8:
		op := []string{"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}[u.r.IntN(3)]
		u.stores = append(u.stores, u.Node(op, []string{u.handles[u.r.IntN(len(u.handles))], x}, "dtype", u.dtype))
	default:
		add(u.Node("BiasAdd", []string{x, u.rows[0]}))
	}
}

// TestChains runs random programs whose steps are joined to chains, and compares
// with the same steps one by one: what is fetched, and the variables.
func TestChains(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for n := range 60 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dt := []tfpb.DataType{tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16}[n%3]
			u := &updates{Graph: kerneltest.New(t), dtype: dt, r: r, m: 64, n: 48}
			if n%4 == 3 { // a row is longer than a block
				u.m, u.n = 3, 1503
			}
			u.rows, u.columns = []string{u.values(int64(u.n))}, []string{u.values(int64(u.m), 1)}
			for range 3 {
				u.whole = append(u.whole, u.values(int64(u.m), int64(u.n)))
				u.variable()
			}
			for range 40 {
				u.grow()
			}
			var state []string
			for _, h := range u.handles {
				state = append(state, u.Node("ReadVariableOp", []string{h}, "dtype", u.dtype))
			}
			u.Run(nil, u.inits...)
			u.Stepwise(nil, u.inits...)
			last := u.whole[len(u.whole)-2:]
			for run := range 4 { // the first one finds the chains
				same(t, run, "result", u.Run(last, u.stores...), u.Stepwise(last, u.stores...))
				same(t, run, "variable", u.Run(state), u.Stepwise(state))
			}
		})
	}
}

func same(t *testing.T, run int, what string, got, want []*ckptfmt.Tensor) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i].Data, want[i].Data) {
			t.Fatalf("run %d: %s %d has other bits in a chain", run, what, i)
		}
	}
}
