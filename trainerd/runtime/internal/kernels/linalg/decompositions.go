package linalg

import (
	"runtime"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// floatsOrComplex are the types of the ops on matrices.
var floatsOrComplex = exec.Floats | exec.ComplexTypes

// Linear algebra on the matrices in the last two dimensions, computed in
// double precision.
var decompositionOps = exec.OpTable{
	"Cholesky":              {Types: floatsOrComplex, Build: choleskyFactor.build},
	"MatrixInverse":         {Types: floatsOrComplex, Build: matrixInverse.build},
	"MatrixDeterminant":     {Types: floatsOrComplex, Build: matrixDeterminant.build},
	"LogMatrixDeterminant":  {Types: floatsOrComplex, Build: logMatrixDeterminant.build},
	"MatrixSolve":           {Types: floatsOrComplex, Build: matrixSolve.build},
	"MatrixTriangularSolve": {Types: floatsOrComplex, Build: matrixTriangularSolve.build},
	"Qr":                    {Types: floatsOrComplex, Build: buildQR},
}

var (
	choleskyFactor        = &decomposition{f: cholesky, complex: complexCholesky}
	choleskyGradient      = &decomposition{f: choleskyGrad}
	matrixInverse         = &decomposition{f: inverse, complex: complexInverse}
	matrixDeterminant     = &decomposition{f: determinant, complex: complexDeterminant, number: true}
	logMatrixDeterminant  = &decomposition{f: logDeterminant, complex: complexLogDeterminant, number: true}
	matrixSolve           = &decomposition{f: solve, complex: complexSolve}
	matrixTriangularSolve = &decomposition{f: triangularSolve, complex: complexTriangularSolve}
)

// decomposition computes results from one square matrix of each input, which f may
// change: of as many rows and columns as the last input has, or a number each.
type decomposition struct {
	f       func(a *decompositionAttrs, in, out []blas64.General, pivots []int) error
	complex complexDecomposition
	number  bool
}

// decompositionAttrs are the attributes of these ops.
type decompositionAttrs struct{ adjoint, lower bool }

func (d *decomposition) build(b *exec.OpConstruction) (exec.Kernel, error) {
	a := &decompositionAttrs{b.Bool("adjoint"), b.BoolOr("lower", true)}
	return func(c *exec.KernelContext) error {
		if x := c.In(0); len(x.Shape) > 1 && x.Dim(-1) != x.Dim(-2) {
			return c.Invalid("%s holds no square matrices", x.Describe())
		}
		return decompose(c, a, d)
	}, nil
}

// decompose computes the results for every matrix of the batch.
func decompose(c *exec.KernelContext, a *decompositionAttrs, d *decomposition) error {
	x, last := c.In(0), c.In(c.NumInputs()-1)
	r := len(x.Shape)
	for i := range c.NumInputs() {
		t := c.In(i)
		if r < 2 || len(t.Shape) != r || !exec.SameShape(t.Shape[:r-2], x.Shape[:r-2]) || t.Shape[r-2] != x.Shape[r-2] {
			return c.Invalid("there is no kernel for %s and %s", x.Describe(), t.Describe())
		}
	}
	w := decomposing{d: d, attrs: a, count: exec.NumElements(x.Shape[:r-2]), n: x.Shape[r-1]}
	shape := append(c.ScratchInts(0, 0), x.Shape[:r-2]...)
	w.rows, w.cols = 1, 1
	if !d.number {
		w.rows, w.cols = w.n, last.Dim(-1)
		shape = append(shape, w.rows, w.cols)
	}
	for i := range c.NumInputs() {
		w.in = append(w.in, c.In(i))
	}
	for i := range c.NumOutputs() {
		w.out = append(w.out, c.Out(i, x.DType, shape...))
	}
	switch {
	case w.out[0].NumElements() == 0:
		return nil
	case exec.ComplexTypes.Has(x.DType):
		return w.runComplex(c)
	}
	return w.run(c)
}

// decomposing is a batch of matrices at work, shared between processors.
type decomposing struct {
	d                    *decomposition
	attrs                *decompositionAttrs
	in, out              []*exec.Tensor
	count, n, rows, cols int
	memory               []float64 // of each part: its matrices
	failed               []failure // by part
}

// failure is the first matrix of a part that has no result, and why.
type failure struct {
	matrix int
	err    error
}

// sharedDecomposition is how many elements, times the rows of their matrices, are worth a
// second processor.
const sharedDecomposition = 1 << 15

func (w *decomposing) run(c *exec.KernelContext) error {
	parts := 1
	if w.count*w.n*w.n*w.n >= sharedDecomposition {
		parts = min(w.count, runtime.GOMAXPROCS(0), exec.MaxParts)
	}
	w.memory = exec.Scratch[float64](c, exec.ScratchA, parts*w.elements())
	w.failed = make([]failure, parts)
	parallel.Run(parts, w)
	for _, f := range w.failed {
		if f.err != nil {
			return c.Invalid("matrix %d: %v", f.matrix, f.err)
		}
	}
	return nil
}

// elements is how many one part needs for a matrix of each input and output.
func (w *decomposing) elements() int {
	n := len(w.out) * w.rows * w.cols
	for _, t := range w.in {
		n += w.n * t.Dim(-1)
	}
	return n
}

// Part implements [parallel.Job].
func (w *decomposing) Part(i, n int) {
	memory := w.memory[i*w.elements():][:w.elements()]
	take := func(rows, cols int) blas64.General {
		m := blas64.General{Rows: rows, Cols: cols, Stride: max(1, cols), Data: memory[: rows*cols : rows*cols]}
		memory = memory[rows*cols:]
		return m
	}
	in, out, pivots := make([]blas64.General, len(w.in)), make([]blas64.General, len(w.out)), make([]int, w.n)
	for k, t := range w.in {
		in[k] = take(w.n, t.Dim(-1))
	}
	for k := range out {
		out[k] = take(w.rows, w.cols)
	}
	from, to := parallel.Span(w.count, 1, i, n)
	for m := from; m < to; m++ {
		for k, t := range w.in {
			loadFloats(in[k].Data, t, m*len(in[k].Data))
		}
		if err := w.d.f(w.attrs, in, out, pivots); err != nil {
			w.failed[i] = failure{m, err}
			return
		}
		for k, t := range w.out {
			storeFloats(t, m*len(out[k].Data), out[k].Data)
		}
	}
}

// loadFloats fills d with elements of t from one on.
func loadFloats(d []float64, t *exec.Tensor, from int) {
	if t.DType == exec.Float64 {
		copy(d, exec.Elems[float64](t)[from:])
		return
	}
	for i, v := range exec.Elems[float32](t)[from:][:len(d)] {
		d[i] = float64(v)
	}
}

// storeFloats sets elements of t from one on.
func storeFloats(t *exec.Tensor, from int, x []float64) {
	if t.DType == exec.Float64 {
		copy(exec.Elems[float64](t)[from:], x)
		return
	}
	d := exec.Elems[float32](t)[from:][:len(x)]
	for i, v := range x {
		d[i] = float32(v)
	}
}

func identity(n int) *mat.Dense {
	m := mat.NewDense(n, n, nil)
	for i := range n {
		m.Set(i, i, 1)
	}
	return m
}

// matrixAt returns matrix n of a batch.
func matrixAt(t *exec.Tensor, n int) *mat.Dense {
	rows, cols := t.Dim(-2), t.Dim(-1)
	data := make([]float64, rows*cols)
	loadFloats(data, t, n*len(data))
	return mat.NewDense(rows, cols, data)
}

// storeMatrix makes m the n-th of output i.
func storeMatrix(c *exec.KernelContext, i, n int, m *mat.Dense) {
	rows, cols := m.Dims()
	if n == 0 {
		x := c.In(0)
		c.Out(i, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...), rows, cols)...)
	}
	raw := m.RawMatrix()
	for r := range rows {
		storeFloats(c.Slot(i), (n*rows+r)*cols, raw.Data[r*raw.Stride:][:cols])
	}
}
