package linalg

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

func buildMatMul(b *exec.OpConstruction) (exec.Kernel, error) {
	dt, ta, tb := b.DType("T"), b.Bool("transpose_a"), b.Bool("transpose_b")
	switch dt {
	case exec.Complex64:
		return matMulAlone(ta, tb, gemm.Complex64s), nil
	case exec.Complex128:
		return matMulAlone(ta, tb, gemm.Complex128s), nil
	case exec.Bfloat16:
		return matMulAlone(ta, tb, gemm.Bfloat16s), nil
	}
	b.JoinsAs(formOf(ta, tb))
	switch {
	case ta && !tb && dt == exec.Float32:
		b.AddsProducts(addStacked[float32])
	case ta && !tb && dt == exec.Float64:
		b.AddsProducts(addStacked[float64])
	case dt == exec.Float32 && tb && gemm.Float32sAdd(1):
		b.TakesTurned(turn[float32], floats32(ta, false).run, formOf(ta, false))
	case dt == exec.Float64 && tb && gemm.Float64sAdd(1):
		b.TakesTurned(turn[float64], floats64(ta, false).run, formOf(ta, false))
	}
	return exec.ByType(dt, floats32(ta, tb).run, floats64(ta, tb).run, integers[int32](ta, tb).run, integers[int64](ta, tb).run)
}

// formOf numbers the products by which factors they transpose.
func formOf(ta, tb bool) (form int) {
	form = 1
	if ta {
		form += 1
	}
	if tb {
		form += 2
	}
	return form
}

// matMul multiplies matrices.
type matMul[T exec.Number] struct {
	ta, tb   bool
	multiply gemm.Func[T]
	sum      gemm.SumFunc[T]
	// adds reports for which inner dimensions a product that is added to a matrix
	// has the bits of one that is added later.
	adds func(k int) bool
}

func floats32(ta, tb bool) *matMul[float32] {
	return &matMul[float32]{ta, tb, gemm.Float32s, gemm.FloatsSum[float32], gemm.Float32sAdd}
}

func floats64(ta, tb bool) *matMul[float64] {
	return &matMul[float64]{ta, tb, gemm.Float64s, gemm.FloatsSum[float64], gemm.Float64sAdd}
}

func integers[T exec.Integer](ta, tb bool) *matMul[T] {
	return &matMul[T]{ta, tb, gemm.Integers[T], gemm.IntegersSum[T], gemm.IntegersAdd}
}

// matMulAlone is the kernel of a product that joins no others.
func matMulAlone[T exec.Arithmetic](ta, tb bool, mul gemm.Func[T]) exec.Kernel {
	return func(c *exec.KernelContext) error {
		m, n, k, err := productDims(c, ta, tb)
		if err != nil {
			return err
		}
		x, y := c.In(0), c.In(1)
		mul(ta, tb, m, n, k, exec.Elems[T](x), exec.Elems[T](y), 0, exec.Elems[T](c.Out(0, x.DType, m, n)))
		return nil
	}
}

// productDims returns the dimensions of the product of two matrices.
func productDims(c *exec.KernelContext, ta, tb bool) (m, n, k int, err error) {
	x, y := c.In(0), c.In(1)
	if len(x.Shape) != 2 || len(y.Shape) != 2 {
		return 0, 0, 0, c.Invalid("the factors must be matrices, not %s and %s", x.Describe(), y.Describe())
	}
	m, n, k, ok := matrixDims(x.Shape, y.Shape, ta, tb)
	if !ok {
		return 0, 0, 0, c.Invalid("shapes %s and %s (transposed: %t, %t) cannot be multiplied", exec.ShapeString(x.Shape), exec.ShapeString(y.Shape), ta, tb)
	}
	return m, n, k, nil
}

func (p *matMul[T]) run(c *exec.KernelContext) error {
	x, y := c.In(0), c.In(1)
	m, n, k, err := productDims(c, p.ta, p.tb)
	if err != nil {
		return err
	}
	joining, err := c.Join(k > 0 && p.adds(k), x.DType, m, n)
	switch {
	case err != nil || joining == exec.Later:
		return err
	case joining == exec.All:
		p.addUp(c, m, n, k)
	default:
		p.multiply(p.ta, p.tb, m, n, k, exec.Elems[T](x), exec.Elems[T](y), 0, exec.Elems[T](c.Out(0, x.DType, m, n)))
	}
	return nil
}

// addUp computes all products of a sum. Those of a weight's gradient, with the rows
// of a batch as the inner dimension, become one: the sum, which is larger than what
// it is made of, then passes through memory once instead of once for each.
func (p *matMul[T]) addUp(c *exec.KernelContext, m, n, k int) {
	d := exec.Elems[T](c.Out(0, c.In(0).DType, m, n))
	terms := c.Terms()
	if !p.ta || p.tb {
		for i := range terms {
			x, y := c.Term(i)
			p.multiply(p.ta, p.tb, m, n, k, exec.Elems[T](x), exec.Elems[T](y), min(T(i), 1), d)
		}
		return
	}
	a, b := exec.Scratch[T](c, exec.ScratchA, terms*k*m), exec.Scratch[T](c, exec.ScratchB, terms*k*n)
	for i := range terms {
		x, y := c.Term(i)
		copy(a[i*k*m:], exec.Elems[T](x))
		copy(b[i*k*n:], exec.Elems[T](y))
	}
	p.sum(m, n, terms*k, k, a, b, 0, d)
}

// addStacked adds products of matrices, the first of them transposed, whose factors are
// stacked.
func addStacked[T float32 | float64](d, x, y *exec.Tensor, rows int) {
	gemm.FloatsSum(d.Shape[0], d.Shape[1], x.Shape[0], rows, exec.Elems[T](x), exec.Elems[T](y), 1, exec.Elems[T](d))
}

// turn is the kernel that transposes a matrix.
func turn[T float32 | float64](c *exec.KernelContext) error {
	x := c.In(0)
	if len(x.Shape) != 2 {
		return c.Invalid("the factors must be matrices, not %s", x.Describe())
	}
	m, n := x.Shape[0], x.Shape[1]
	gemm.Turn(exec.Elems[T](c.Out(0, x.DType, n, m)), exec.Elems[T](x), m, n)
	return nil
}
