package sparse

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildSparseMatMul(b *exec.OpConstruction) (exec.Kernel, error) {
	ta, tb := b.Bool("adjoint_a"), b.Bool("adjoint_b")
	return exec.ByFloat(b.DType("T"), sparseMatMul[float32](ta, tb), sparseMatMul[float64](ta, tb))
}

// rowsProduct is the product of a sparse matrix, given by its entries, and a
// dense one of n columns. Processors share the columns, so that each element of
// d has one that adds to it, in the order of the entries.
type rowsProduct[T exec.Float] struct {
	d, y, s []T
	index   []int64 // two of each entry
	side    int     // which of the two is the row of d
	n       int
}

const (
	// sparseColumns is the fewest columns that a processor gets.
	sparseColumns = 8
	// sparseWork is the number of multiplications that are worth a second
	// processor: some 20 microseconds of one.
	sparseWork = 1 << 17
)

// Part implements [parallel.Job].
func (p *rowsProduct[T]) Part(i, n int) {
	from, to := parallel.Span(p.n, sparseColumns, i, n)
	vec.AddScaledRows(p.d, p.y, p.s, p.index, p.side, p.n, from, to)
}

// do computes the product, and lets go of the tensors.
func (p rowsProduct[T]) do(c *exec.KernelContext) {
	kept := exec.InFrame[rowsProduct[T]](c)
	*kept = p
	if len(p.s)*p.n < sparseWork {
		kept.Part(0, 1)
	} else {
		parallel.Run(min(exec.MaxParts, max(1, p.n/sparseColumns)), kept)
	}
	*kept = rowsProduct[T]{}
}

// sparseMatMul is the kernel of a product of a sparse and a dense matrix.
func sparseMatMul[T exec.Float](ta, tb bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		idx, values, shape, y := c.In(0), c.In(1), c.In(2), c.In(3)
		if len(idx.Shape) != 2 || idx.Shape[1] != 2 || values.NumElements() != idx.Shape[0] || shape.NumElements() != 2 || len(y.Shape) != 2 {
			return c.Invalid("indices %s, values %s and shape %s of a matrix times %s", idx.Describe(), values.Describe(), shape.Describe(), y.Describe())
		}
		rows, cols := shape.IntAt(0), shape.IntAt(1)
		m, k, side := rows, cols, 0
		if ta {
			m, k, side = k, m, 1
		}
		inner, n := y.Shape[0], y.Shape[1]
		if tb {
			inner, n = n, inner
		}
		if inner != k {
			return c.Invalid("a sparse matrix of [%d,%d] cannot be multiplied with %s", m, k, y.Describe())
		}
		index := entries(c, idx)
		if e := outside(index, rows, cols); e >= 0 {
			return c.Invalid("index %d is [%d,%d], outside [%d,%d]", e, index[2*e], index[2*e+1], rows, cols)
		}
		d := c.Out(0, y.DType, m, n)
		elem.Zero(d)
		p := rowsProduct[T]{d: exec.Elems[T](d), y: exec.Elems[T](y), s: exec.Elems[T](values), index: index, side: side, n: n}
		if tb {
			p.transposed(k)
			return nil
		}
		p.do(c)
		return nil
	}
}

// entries returns the indices of a sparse matrix, which may be int32.
func entries(c *exec.KernelContext, idx *exec.Tensor) []int64 {
	if idx.DType == exec.Int64 {
		return exec.Elems[int64](idx)
	}
	wide := exec.Scratch[int64](c, exec.ScratchA, idx.NumElements())
	for i, v := range exec.Elems[int32](idx) {
		wide[i] = int64(v)
	}
	return wide
}

// outside returns the first entry outside of a matrix, or -1.
func outside(index []int64, rows, cols int) int {
	for e := 0; e+1 < len(index); e += 2 {
		if uint64(index[e]) >= uint64(rows) || uint64(index[e+1]) >= uint64(cols) {
			return e / 2
		}
	}
	return -1
}

// transposed computes the product with the transpose of y, whose rows have k
// elements.
func (p *rowsProduct[T]) transposed(k int) {
	for e, v := range p.s {
		row := p.d[int(p.index[2*e+p.side])*p.n:][:p.n]
		l := int(p.index[2*e+1-p.side])
		for j := range row {
			row[j] += T(v * p.y[j*k+l])
		}
	}
}
