package linalg

import (
	"fmt"

	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

var matmulOps = exec.OpTable{
	"MatMul":        {Types: factorTypes, Build: withHalves("T", buildMatMul)},
	"BatchMatMul":   {Types: factorTypes, Build: withHalves("T", buildBatchMatMulV1)},
	"BatchMatMulV2": {Types: factorTypes, Build: withHalves("T", buildBatchMatMul)},
	"BatchMatMulV3": {Types: factorTypes | bytes8, TypeAttr: "Ta", Build: buildBatchMatMulV3},
}

var factorTypes = exec.Numbers | exec.Halves | exec.ComplexTypes

// matrixDims returns the dimensions of a product of the last two dimensions of
// shapes x and y, and whether the inner ones agree.
func matrixDims(x, y []int, tx, ty bool) (m, n, k int, ok bool) {
	m, k = x[len(x)-2], x[len(x)-1]
	if tx {
		m, k = k, m
	}
	k2, n := y[len(y)-2], y[len(y)-1]
	if ty {
		k2, n = n, k2
	}
	return m, n, k, k == k2
}

func buildBatchMatMul(b *exec.OpConstruction) (exec.Kernel, error) {
	return batchMatMulOf(b, b.DType("T"))
}

// buildBatchMatMulV1 builds the op of the first releases, which does not broadcast.
func buildBatchMatMulV1(b *exec.OpConstruction) (exec.Kernel, error) {
	k, err := buildBatchMatMul(b)
	if err != nil {
		return nil, err
	}
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		if r := len(x.Shape); r != len(y.Shape) || r > 2 && !exec.SameShape(x.Shape[:r-2], y.Shape[:r-2]) {
			return c.Invalid("the factors %s and %s are not as many matrices", x.Describe(), y.Describe())
		}
		return k(c)
	}, nil
}

func batchMatMulOf(b *exec.OpConstruction, dt tfpb.DataType) (exec.Kernel, error) {
	tx, ty := b.Bool("adj_x"), b.Bool("adj_y")
	switch dt {
	case exec.Complex64:
		return batchMatMul(tx, ty, dt, exec.Elems, gemm.Adjoints64s), nil
	case exec.Complex128:
		return batchMatMul(tx, ty, dt, exec.Elems, gemm.Adjoints128s), nil
	case exec.Bfloat16:
		return batchMatMul(tx, ty, dt, exec.Elems, gemm.Bfloat16s), nil
	}
	return exec.ByType(dt, batchMatMul(tx, ty, dt, exec.Elems, gemm.Many32s), batchMatMul(tx, ty, dt, exec.Elems, gemm.Many64s),
		batchMatMul(tx, ty, dt, exec.Elems, gemm.Integers[int32]), batchMatMul(tx, ty, dt, exec.Elems, gemm.Integers[int64]))
}

// bytes8 are the types of integers whose products are int32.
var bytes8 = exec.SetOf(exec.Int8, exec.Uint8)

// buildBatchMatMulV3 takes factors of one type, or small integers of two.
func buildBatchMatMulV3(b *exec.OpConstruction) (exec.Kernel, error) {
	x, y, out := b.DType("Ta"), b.DType("Tb"), b.DType("Tout")
	switch {
	case bytes8.Has(x) && bytes8.Has(y) && out == exec.Int32:
		return batchMatMul(b.Bool("adj_x"), b.Bool("adj_y"), out, int32sOf, gemm.Integers[int32]), nil
	case x == y && x == out:
		return withHalves("Ta", func(b *exec.OpConstruction) (exec.Kernel, error) { return batchMatMulOf(b, b.DType("Ta")) })(b)
	}
	return nil, fmt.Errorf("no kernel for Ta=%s, Tb=%s, Tout=%s", exec.TypeName(x), exec.TypeName(y), exec.TypeName(out))
}

// int32sOf returns the elements of a tensor of small integers.
func int32sOf(t *exec.Tensor) []int32 {
	list := make([]int32, t.NumElements())
	for i := range list {
		list[i] = int32(elem.RealAt(t, i))
	}
	return list
}

// batchMatMul multiplies matrices pairwise; the leading dimensions broadcast.
func batchMatMul[T exec.Arithmetic](tx, ty bool, out tfpb.DataType, elements func(*exec.Tensor) []T, mul gemm.Func[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, y := c.In(0), c.In(1)
		if len(x.Shape) < 2 || len(y.Shape) < 2 {
			return c.Invalid("the factors must be matrices or batches of them, not %s and %s", x.Describe(), y.Describe())
		}
		m, n, k, ok := matrixDims(x.Shape, y.Shape, tx, ty)
		if !ok {
			return c.Invalid("shapes %s and %s (transposed: %t, %t) cannot be multiplied", exec.ShapeString(x.Shape), exec.ShapeString(y.Shape), tx, ty)
		}
		var b elem.Broadcast
		if err := b.Init(x.Shape[:len(x.Shape)-2], y.Shape[:len(y.Shape)-2]); err != nil {
			return c.Invalid("batch dimensions: %v", err)
		}
		shape := append(append(c.ScratchInts(0, 0), b.Shape()...), m, n)
		w := exec.InFrame[matrixPairs[T]](c)
		*w = matrixPairs[T]{mul: mul, tx: tx, ty: ty, m: m, n: n, k: k, batch: b, x: elements(x), y: elements(y)}
		w.d = exec.Elems[T](c.Out(0, out, shape...))
		w.do(exec.NumElements(b.Shape()))
		*w = matrixPairs[T]{}
		return nil
	}
}

// matrixPairs is matrices that are multiplied pairwise. It is kept in the frame, so
// that a step does not allocate it.
type matrixPairs[T exec.Arithmetic] struct {
	mul     gemm.Func[T]
	tx, ty  bool
	m, n, k int
	batch   elem.Broadcast
	x, y, d []T
	count   int
}

// Products with fewer multiplications than this are shared between processors
// pair by pair, if they have so many in all: a larger one is shared by itself.
const (
	sharedPair  = 1 << 22
	sharedPairs = 1 << 20
)

func (w *matrixPairs[T]) do(count int) {
	w.count = count
	if size := w.m * w.n * w.k; size >= sharedPair || size*count < sharedPairs {
		w.Part(0, 1)
		return
	}
	parallel.Run(min(count, exec.MaxParts), w)
}

// Part implements [parallel.Job].
func (w *matrixPairs[T]) Part(i, n int) {
	from, to := parallel.Span(w.count, 1, i, n)
	a, b, c := w.m*w.k, w.k*w.n, w.m*w.n
	w.batch.PairsIn(from, to, func(o, i, j int) {
		w.mul(w.tx, w.ty, w.m, w.n, w.k, w.x[i*a:(i+1)*a], w.y[j*b:(j+1)*b], 0, w.d[o*c:(o+1)*c])
	})
}
