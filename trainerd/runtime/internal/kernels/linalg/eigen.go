package linalg

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Eigenvalues, computed as Eigen does, for the signs of the vectors.
var eigenOps = exec.OpTable{
	"SelfAdjointEigV2": {Types: exec.Floats, Build: buildEigen},
}

// buildEigen builds the op on symmetric matrices, reading only the lower
// triangle.
func buildEigen(b *exec.OpConstruction) (exec.Kernel, error) {
	vectors := b.Bool("compute_v")
	precision := 0x1p-52
	if b.DType("T") == exec.Float32 {
		precision = 0x1p-23
	}
	return func(c *exec.KernelContext) error {
		if n, _, ok := noMatrices(c); ok {
			outBatch(c, 0, n)
			outBatch(c, 1, n, n)
		}
		if err := eachSquare(c, func(n int, m *mat.Dense) error {
			values, q, err := eigen(m, precision)
			if err != nil {
				return c.Invalid("matrix %d: %v", n, err)
			}
			storeVector(c, 0, n, values)
			if vectors {
				storeMatrix(c, 1, n, q)
			}
			return nil
		}); err != nil {
			return err
		}
		if !vectors {
			elem.Zero(c.Out(1, c.In(0).DType))
		}
		return nil
	}, nil
}

// eachSquare calls f for every matrix of a batch of square ones.
func eachSquare(c *exec.KernelContext, f func(n int, m *mat.Dense) error) error {
	x := c.In(0)
	if len(x.Shape) < 2 || x.Dim(-1) != x.Dim(-2) {
		return c.Invalid("%s holds no square matrices", x.Describe())
	}
	return eachMatrix(c, f)
}

// noMatrices reports whether input 0 is a batch without elements, and the size
// of its matrices.
func noMatrices(c *exec.KernelContext) (rows, cols int, ok bool) {
	x := c.In(0)
	if len(x.Shape) < 2 || x.NumElements() > 0 {
		return 0, 0, false
	}
	return x.Dim(-2), x.Dim(-1), true
}

// outBatch makes output i zeros of the given shape for each matrix of input 0.
func outBatch(c *exec.KernelContext, i int, dims ...int) {
	x := c.In(0)
	elem.Zero(c.Out(i, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...), dims...)...))
}

// eachMatrix calls f for every matrix of a batch, for none when there are no
// elements.
func eachMatrix(c *exec.KernelContext, f func(n int, m *mat.Dense) error) error {
	x := c.In(0)
	if len(x.Shape) < 2 {
		return c.Invalid("%s holds no matrix", x.Describe())
	}
	if x.NumElements() == 0 {
		return nil
	}
	for n := range exec.NumElements(x.Shape[:len(x.Shape)-2]) {
		if err := f(n, matrixAt(x, n)); err != nil {
			return err
		}
	}
	return nil
}

// storeVector makes v the n-th of output i.
func storeVector(c *exec.KernelContext, i, n int, v []float64) {
	x := c.In(0)
	if n == 0 {
		c.Out(i, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...), len(v))...)
	}
	d := c.Slot(i)
	for k, e := range v {
		elem.SetNumber(d, n*len(v)+k, e)
	}
}

// eigen makes a symmetric matrix tridiagonal with reflections, then diagonal
// with rotations. Values ascend; the vectors, the columns of q, have the signs
// that this way gives them, as TensorFlow's have
// after as many steps: the precision is that of the type.
func eigen(m *mat.Dense, precision float64) (values []float64, q *mat.Dense, err error) {
	n, _ := m.Dims()
	scale := 0.0
	for i := range n {
		for j := range i + 1 {
			v := m.At(i, j)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, nil, fmt.Errorf("it is not finite")
			}
			scale = max(scale, math.Abs(v))
		}
	}
	if scale == 0 {
		scale = 1
	}
	t := newTridiagonal(m, scale)
	if !t.diagonalize(precision) {
		return nil, nil, fmt.Errorf("its eigenvalues do not converge")
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return elem.CompareReals(t.diag[i], t.diag[j]) })
	values, q = make([]float64, n), mat.NewDense(n, n, nil)
	for to, from := range order {
		values[to] = t.diag[from] * scale
		for r := range n {
			q.Set(r, to, t.q.At(r, from))
		}
	}
	return values, q, nil
}

// tridiagonal is q times a symmetric matrix of two diagonals, times q
// transposed.
type tridiagonal struct {
	diag, sub []float64
	q         *mat.Dense
}

// newTridiagonal reflects the columns of the lower triangle of m/scale.
func newTridiagonal(m *mat.Dense, scale float64) *tridiagonal {
	n, _ := m.Dims()
	a := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range i + 1 {
			a.Set(i, j, m.At(i, j)/scale)
			a.Set(j, i, m.At(i, j)/scale)
		}
	}
	t := &tridiagonal{diag: make([]float64, n), sub: make([]float64, max(0, n-1)), q: mat.NewDense(n, n, nil)}
	for i := range n {
		t.q.Set(i, i, 1)
	}
	for k := range n - 1 {
		v, tau, beta := reflection(a, k)
		t.sub[k] = beta
		reflect(a, v, tau, k+1)
		// q is multiplied from the right by each reflection in turn.
		for r := range n {
			sum := 0.0
			for i, e := range v {
				sum += t.q.At(r, k+1+i) * e
			}
			for i, e := range v {
				t.q.Set(r, k+1+i, t.q.At(r, k+1+i)-tau*sum*e)
			}
		}
	}
	for i := range n {
		t.diag[i] = a.At(i, i)
	}
	return t
}

// reflection returns v, beginning with 1, and tau such that 1-tau*v*v' makes
// what is below the diagonal of column k a multiple beta of the first axis.
func reflection(a *mat.Dense, k int) (v []float64, tau, beta float64) {
	n, _ := a.Dims()
	v = make([]float64, n-k-1)
	head, rest := a.At(k+1, k), 0.0
	for i := range v {
		v[i] = a.At(k+1+i, k)
		if i > 0 {
			rest += v[i] * v[i]
		}
	}
	if rest <= 0x1p-1022 {
		clear(v)
		v[0] = 1
		return v, 0, head
	}
	beta = math.Sqrt(head*head + rest)
	if head >= 0 {
		beta = -beta
	}
	for i := range v {
		v[i] /= head - beta
	}
	v[0] = 1
	return v, (beta - head) / beta, beta
}

// reflect applies the reflection to both sides of the matrix from row and
// column at on.
func reflect(a *mat.Dense, v []float64, tau float64, at int) {
	w := make([]float64, len(v))
	half := 0.0
	for i := range v {
		for j, e := range v {
			w[i] += a.At(at+i, at+j) * e
		}
		w[i] *= tau
		half += w[i] * v[i]
	}
	half *= -0.5 * tau
	for i := range w {
		w[i] += half * v[i]
	}
	for i := range v {
		for j := range v {
			a.Set(at+i, at+j, a.At(at+i, at+j)-v[i]*w[j]-w[i]*v[j])
		}
	}
}

// diagonalize rotates until nothing is left next to the diagonal.
func (t *tridiagonal) diagonalize(precision float64) bool {
	const most = 30 // steps for each row
	end, steps := len(t.diag)-1, 0
	for end > 0 {
		for i := range end {
			if v := t.sub[i] / precision; math.Abs(t.sub[i]) < 0x1p-1022 || v*v <= math.Abs(t.diag[i])+math.Abs(t.diag[i+1]) {
				t.sub[i] = 0
			}
		}
		for end > 0 && t.sub[end-1] == 0 {
			end--
		}
		if end == 0 {
			return true
		}
		if steps++; steps > most*len(t.diag) {
			return false
		}
		start := end - 1
		for start > 0 && t.sub[start-1] != 0 {
			start--
		}
		t.step(start, end)
	}
	return true
}

// shift returns the eigenvalue of the last two rows that is closer to the last.
func (t *tridiagonal) shift(end int) float64 {
	mu, e := t.diag[end], t.sub[end-1]
	td := (t.diag[end-1] - mu) / 2
	switch {
	case td == 0:
		return mu - math.Abs(e)
	case e == 0:
		return mu
	}
	h := math.Copysign(math.Hypot(td, e), td)
	if e*e == 0 {
		return mu - e/((td+h)/e)
	}
	return mu - e*e/(td+h)
}

// step is one implicit QR step on rows start to end.
func (t *tridiagonal) step(start, end int) {
	x, z := t.diag[start]-t.shift(end), t.sub[start]
	for k := start; k < end && z != 0; k++ {
		c, s := givens(x, z)
		d, e, f := t.diag[k], t.sub[k], t.diag[k+1]
		sd, sf := s*d+c*e, s*e+c*f
		t.diag[k] = c*(c*d-s*e) - s*(c*e-s*f)
		t.diag[k+1] = s*sd + c*sf
		t.sub[k] = c*sd - s*sf
		if k > start {
			t.sub[k-1] = c*t.sub[k-1] - s*z
		}
		x = t.sub[k]
		if k < end-1 {
			z = -s * t.sub[k+1]
			t.sub[k+1] *= c
		}
		for r := range t.diag {
			a, b := t.q.At(r, k), t.q.At(r, k+1)
			t.q.Set(r, k, c*a-s*b)
			t.q.Set(r, k+1, s*a+c*b)
		}
	}
}

// givens returns the cosine and sine that turn (p, q) to the first axis.
func givens(p, q float64) (c, s float64) {
	switch {
	case q == 0:
		return math.Copysign(1, p), 0
	case p == 0:
		return 0, -math.Copysign(1, q)
	case math.Abs(p) > math.Abs(q):
		t := q / p
		c = math.Copysign(1/math.Sqrt(1+t*t), p)
		return c, -t * c
	}
	t := p / q
	s = -math.Copysign(1/math.Sqrt(1+t*t), q)
	return -t * s, s
}
