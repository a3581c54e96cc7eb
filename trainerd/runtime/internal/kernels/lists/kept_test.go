package lists_test

import (
	"runtime"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// keepers are graphs that keep a matrix in resources of the run and hand it out
// again.
var keepers = map[string]func(g *kerneltest.Graph, rows string, n int) string{
	"array, read once":  func(g *kerneltest.Graph, rows string, n int) string { return throughArray(g, rows, n, true) },
	"array, read often": func(g *kerneltest.Graph, rows string, n int) string { return throughArray(g, rows, n, false) },
	"array, one by one": oneByOne,
	"stack":             throughStack,
	"stack, not popped": leftOnStack,
	"stack, used again": pushedAfterPop,
	"gradients added":   addedGradients,
}

func array(g *kerneltest.Graph, n int, once bool) string {
	return g.Node("TensorArrayV3", []string{kerneltest.Scalar(g, int32(n))}, "dtype", exec.Float32, "clear_after_read", once)
}

func indices(g *kerneltest.Graph, n int) string {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return kerneltest.Vector(g, list...)
}

func throughArray(g *kerneltest.Graph, rows string, n int, once bool) string {
	a, all := array(g, n, once), indices(g, n)
	flow := g.Node("TensorArrayScatterV3", []string{a, all, rows, a + ":1"})
	return g.Node("TensorArrayGatherV3", []string{a, all, flow}, "dtype", exec.Float32)
}

// oneByOne writes the matrix to both elements of an array, and reads one of them
// after it has read the other.
func oneByOne(g *kerneltest.Graph, rows string, _ int) string {
	a := array(g, 2, true)
	zero, one := kerneltest.Scalar[int32](g, 0), kerneltest.Scalar[int32](g, 1)
	twice := g.Node("AddV2", []string{rows, rows})
	flow := g.Node("TensorArrayWriteV3", []string{a, zero, rows, a + ":1"})
	flow = g.Node("TensorArrayWriteV3", []string{a, one, twice, flow})
	first := g.Node("TensorArrayReadV3", []string{a, zero, flow}, "dtype", exec.Float32)
	second := g.Node("TensorArrayReadV3", []string{a, one, flow, "^" + first}, "dtype", exec.Float32)
	return g.Node("Sub", []string{second, first})
}

func throughStack(g *kerneltest.Graph, rows string, _ int) string {
	s := g.Node("StackV2", []string{kerneltest.Scalar[int32](g, -1)}, "elem_type", exec.Float32)
	twice := g.Node("AddV2", []string{rows, rows})
	push := g.Node("StackPushV2", []string{s, rows})
	again := g.Node("StackPushV2", []string{s, twice, "^" + push})
	top := g.Node("StackPopV2", []string{s, "^" + again}, "elem_type", exec.Float32)
	below := g.Node("StackPopV2", []string{s, "^" + top}, "elem_type", exec.Float32)
	return g.Node("Sub", []string{top, below})
}

// pushedAfterPop uses what it has popped after something else was pushed.
func pushedAfterPop(g *kerneltest.Graph, rows string, _ int) string {
	s := g.Node("StackV2", []string{kerneltest.Scalar[int32](g, -1)}, "elem_type", exec.Float32)
	twice := g.Node("AddV2", []string{rows, rows})
	push := g.Node("StackPushV2", []string{s, rows})
	top := g.Node("StackPopV2", []string{s, "^" + push}, "elem_type", exec.Float32)
	again := g.Node("StackPushV2", []string{s, twice, "^" + top})
	return g.Node("Mul", []string{top, kerneltest.Scalar[float32](g, 1), "^" + again})
}

func leftOnStack(g *kerneltest.Graph, rows string, _ int) string {
	s := g.Node("StackV2", []string{kerneltest.Scalar[int32](g, -1)}, "elem_type", exec.Float32)
	return g.Node("StackPushV2", []string{s, rows})
}

// addedGradients writes the matrix to an array's gradient twice, and takes half of
// the sum.
func addedGradients(g *kerneltest.Graph, rows string, n int) string {
	a, all := array(g, n, true), indices(g, n)
	grad := g.Node("TensorArrayGradV3", []string{a, a + ":1"}, "source", "gradients")
	flow := g.Node("TensorArrayScatterV3", []string{grad, all, rows, grad + ":1"})
	flow = g.Node("TensorArrayScatterV3", []string{grad, all, rows, flow})
	sum := g.Node("TensorArrayGatherV3", []string{grad, all, flow}, "dtype", exec.Float32)
	return g.Node("Mul", []string{sum, kerneltest.Scalar[float32](g, 0.5)})
}

// TestKeptValues runs one graph on matrices of other sizes and values each time.
func TestKeptValues(t *testing.T) {
	const n = 3
	for name, keep := range keepers {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			rows := kerneltest.Tensor[float32](g, []int64{n, 0})
			out := keep(g, rows, n)
			for run, width := range []int64{2, 2, 5, 0, 1, 5, 2, 2, 1, 0, 5} {
				want := make([]float32, n*width)
				for i := range want {
					want[i] = float32(100*run + i)
				}
				m, err := ckptfmt.FromValues([]int64{n, width}, want)
				if err != nil {
					t.Fatal(err)
				}
				g.Feed(rows, m)
				kerneltest.Want(t, g.Run([]string{out})[0], want...)
			}
		})
	}
}

// TestKeptMemory runs graphs whose resources need no new memory once they are warm.
func TestKeptMemory(t *testing.T) {
	const n, width, runs = 4, 1 << 18, 8
	for name, keep := range keepers {
		t.Run(name, func(t *testing.T) {
			g := kerneltest.New(t)
			rows := kerneltest.Tensor(g, []int64{n, width}, make([]float32, n*width)...)
			size := g.Node("Size", []string{keep(g, rows, n)})
			g.Run([]string{size})
			before := allocated()
			for range runs {
				kerneltest.Want[int32](t, g.Run([]string{size})[0], n*width)
			}
			if perRun := (allocated() - before) / runs; perRun > 4*width {
				t.Errorf("a run allocates %d bytes, and keeps a matrix of %d", perRun, 4*n*width)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
