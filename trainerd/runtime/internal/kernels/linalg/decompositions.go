package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Linear algebra on the matrices in the last two dimensions, computed in
// float64.
var decompositionOps = exec.OpTable{
	"Cholesky":              {Types: exec.Floats, Build: buildDecomposition(1, cholesky)},
	"MatrixInverse":         {Types: exec.Floats, Build: buildDecomposition(1, inverse)},
	"MatrixDeterminant":     {Types: exec.Floats, Build: buildDecomposition(1, determinant)},
	"LogMatrixDeterminant":  {Types: exec.Floats, Build: buildDecomposition(2, logDeterminant)},
	"MatrixSolve":           {Types: exec.Floats, Build: buildDecomposition(1, solve)},
	"MatrixTriangularSolve": {Types: exec.Floats, Build: buildDecomposition(1, triangularSolve)},
	"Qr":                    {Types: exec.Floats, Build: buildDecomposition(2, qr)},
}

// decomposition computes from one matrix of each input one result for each
// output: a matrix, or a *mat.VecDense of one element for a number.
type decomposition func(b *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error)

// decompositionAttrs are the attributes of these ops.
type decompositionAttrs struct{ adjoint, lower, full bool }

func buildDecomposition(outputs int, f decomposition) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		a := &decompositionAttrs{b.Bool("adjoint"), b.BoolOr("lower", true), b.Bool("full_matrices")}
		anyShape := b.Op() == "Qr"
		return func(c *exec.KernelContext) error {
			if x := c.In(0); !anyShape && len(x.Shape) > 1 && x.Dim(-1) != x.Dim(-2) {
				return c.Invalid("%s holds no square matrices", x.Describe())
			}
			return decompose(c, a, f)
		}, nil
	}
}

// decompose calls f for every matrix of the batch.
func decompose(c *exec.KernelContext, a *decompositionAttrs, f decomposition) error {
	x := c.In(0)
	r := len(x.Shape)
	for i := range c.NumInputs() {
		t := c.In(i)
		if r < 2 || len(t.Shape) != r || !exec.SameShape(t.Shape[:r-2], x.Shape[:r-2]) || t.Shape[r-2] != x.Shape[r-2] {
			return c.Invalid("there is no kernel for %s and %s", x.Describe(), t.Describe())
		}
	}
	if x.NumElements() == 0 || c.In(c.NumInputs()-1).NumElements() == 0 {
		return decomposeNothing(c, a, f)
	}
	for n := range exec.NumElements(x.Shape[:r-2]) {
		in := make([]*mat.Dense, c.NumInputs())
		for i := range in {
			in[i] = matrixAt(c.In(i), n)
		}
		results, err := f(a, in)
		if err != nil {
			return c.Invalid("matrix %d: %v", n, err)
		}
		for i, m := range results {
			storeMatrix(c, i, n, m)
		}
	}
	return nil
}

// decomposeNothing makes the results of a batch without elements. Those of
// identities tell which results are numbers.
func decomposeNothing(c *exec.KernelContext, a *decompositionAttrs, f decomposition) error {
	in := make([]*mat.Dense, c.NumInputs())
	for i := range in {
		t := c.In(i)
		in[i] = identity(max(1, t.Dim(-2)), max(1, t.Dim(-1)))
	}
	results, err := f(a, in)
	if err != nil {
		return c.Invalid("%v", err)
	}
	for i, m := range results {
		rows, cols := emptyDims(c, i, a.full)
		d := outMatrices(c, i, m, rows, cols)
		if _, number := m.(*mat.VecDense); number {
			rows, cols = 1, 1
		}
		// Not all results are empty: determinants of nothing, and all of Q.
		for k := range d.NumElements() {
			v := 0.0
			if at := k % (rows * cols); at/cols == at%cols {
				v = m.At(0, 0)
			}
			elem.SetNumber(d, k, v)
		}
	}
	return nil
}

// emptyDims returns the size of the matrices of output i where those of input 0
// have no elements.
func emptyDims(c *exec.KernelContext, i int, full bool) (rows, cols int) {
	x := c.In(0)
	m, n := x.Dim(-2), x.Dim(-1)
	last := c.In(c.NumInputs() - 1)
	p := min(m, n)
	if full {
		p = m
	}
	switch {
	case c.Op() != "Qr":
		return n, last.Dim(-1)
	case i == 0:
		return m, p
	}
	return p, n
}

func identity(rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range min(rows, cols) {
		m.Set(i, i, 1)
	}
	return m
}

// matrixAt returns matrix n of a batch.
func matrixAt(t *exec.Tensor, n int) *mat.Dense {
	rows, cols := t.Dim(-2), t.Dim(-1)
	data := make([]float64, rows*cols)
	for i := range data {
		data[i] = t.FloatAt(n*len(data) + i)
	}
	return mat.NewDense(rows, cols, data)
}

// storeMatrix makes m the n-th of output i.
func storeMatrix(c *exec.KernelContext, i, n int, m mat.Matrix) {
	rows, cols := m.Dims()
	if n == 0 {
		outMatrices(c, i, m, rows, cols)
	}
	d := c.Slot(i)
	for k := range rows * cols {
		v := m.At(k/cols, k%cols)
		if d.DType == exec.Float32 {
			exec.Elems[float32](d)[n*rows*cols+k] = float32(v)
		} else {
			exec.Elems[float64](d)[n*rows*cols+k] = v
		}
	}
}

// outMatrices returns output i for results like m of the given size.
func outMatrices(c *exec.KernelContext, i int, m mat.Matrix, rows, cols int) *exec.Tensor {
	x := c.In(0)
	shape := append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...)
	if _, number := m.(*mat.VecDense); !number {
		shape = append(shape, rows, cols)
	}
	return c.Out(i, x.DType, shape...)
}

func checkSquare(m *mat.Dense) error {
	if r, c := m.Dims(); r != c {
		return fmt.Errorf("it is %d by %d, not square", r, c)
	}
	return nil
}

func cholesky(_ *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	if err := checkSquare(in[0]); err != nil {
		return nil, err
	}
	n, _ := in[0].Dims()
	// Only the lower triangle is read, as in TensorFlow.
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, in[0].At(i, j))
		}
	}
	l := mat.NewTriDense(n, mat.Lower, nil)
	var ch mat.Cholesky
	if ch.Factorize(s) {
		ch.LTo(l)
		return []mat.Matrix{l}, nil
	}
	// A matrix that is not positive definite has no factor.
	for i := range n {
		for j := range i + 1 {
			l.SetTri(i, j, math.NaN())
		}
	}
	return []mat.Matrix{l}, nil
}

func adjointOf(a *decompositionAttrs, m *mat.Dense) mat.Matrix {
	if a.adjoint {
		return m.T()
	}
	return m
}

func factor(m mat.Matrix) (*mat.LU, error) {
	var lu mat.LU
	lu.Factorize(m)
	if lu.Det() == 0 {
		return nil, fmt.Errorf("it is not invertible")
	}
	return &lu, nil
}

func inverse(a *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	n, _ := in[0].Dims()
	one := mat.NewDense(n, n, nil)
	for i := range n {
		one.Set(i, i, 1)
	}
	return solve(a, []*mat.Dense{in[0], one})
}

func solve(a *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	if err := checkSquare(in[0]); err != nil {
		return nil, err
	}
	lu, err := factor(adjointOf(a, in[0]))
	if err != nil {
		return nil, err
	}
	var x mat.Dense
	if err := lu.SolveTo(&x, false, in[1]); err != nil {
		if _, poor := err.(mat.Condition); !poor {
			return nil, err
		}
	}
	return []mat.Matrix{&x}, nil
}

func determinant(_ *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	if err := checkSquare(in[0]); err != nil {
		return nil, err
	}
	return []mat.Matrix{mat.NewVecDense(1, []float64{mat.Det(in[0])})}, nil
}

func logDeterminant(_ *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	if err := checkSquare(in[0]); err != nil {
		return nil, err
	}
	log, sign := mat.LogDet(in[0])
	if math.IsInf(log, -1) {
		sign = 0
	}
	return []mat.Matrix{mat.NewVecDense(1, []float64{sign}), mat.NewVecDense(1, []float64{log})}, nil
}

func triangularSolve(a *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	if err := checkSquare(in[0]); err != nil {
		return nil, err
	}
	n, _ := in[0].Dims()
	uplo, trans := blas.Upper, blas.NoTrans
	if a.lower {
		uplo = blas.Lower
	}
	if a.adjoint {
		trans = blas.Trans
	}
	raw := in[0].RawMatrix()
	x := mat.DenseCopyOf(in[1])
	blas64.Trsm(blas.Left, trans, 1, blas64.Triangular{N: n, Stride: raw.Stride, Data: raw.Data, Uplo: uplo, Diag: blas.NonUnit}, x.RawMatrix())
	return []mat.Matrix{x}, nil
}

// qr is computed with Householder reflections. Its signs are those of LAPACK,
// which TensorFlow's has as well.
func qr(a *decompositionAttrs, in []*mat.Dense) ([]mat.Matrix, error) {
	rows, cols := in[0].Dims()
	if rows < cols {
		return wideQR(in[0])
	}
	var f mat.QR
	f.Factorize(in[0])
	var q, r mat.Dense
	f.QTo(&q)
	f.RTo(&r)
	if a.full {
		return []mat.Matrix{&q, &r}, nil
	}
	return []mat.Matrix{q.Slice(0, rows, 0, cols), r.Slice(0, cols, 0, cols)}, nil
}

// wideQR factors the square part on the left and applies Q to the rest.
func wideQR(m *mat.Dense) ([]mat.Matrix, error) {
	rows, _ := m.Dims()
	var f mat.QR
	f.Factorize(m.Slice(0, rows, 0, rows))
	var q, r mat.Dense
	f.QTo(&q)
	r.Mul(q.T(), m)
	for i := range rows {
		for j := range i {
			r.Set(i, j, 0)
		}
	}
	return []mat.Matrix{&q, &r}, nil
}
