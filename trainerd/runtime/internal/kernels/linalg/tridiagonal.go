package linalg

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// eigen makes a symmetric matrix tridiagonal with reflections, then diagonal
// with rotations. Values ascend; the vectors, the columns of q, which is nil where
// they are not asked for, have the signs that this way gives them, as TensorFlow's
// have after as many steps: the precision is that of the type.
func eigen(m *mat.Dense, precision float64, vectors bool) (values []float64, q *mat.Dense, err error) {
	n, _ := m.Dims()
	scale := 0.0
	for i := range n {
		for _, v := range m.RawRowView(i)[:i+1] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, nil, fmt.Errorf("it is not finite")
			}
			scale = max(scale, math.Abs(v))
		}
	}
	if scale == 0 {
		scale = 1
	}
	rows, values, err := newTridiagonal(m, scale, vectors).sorted(precision)
	if err != nil {
		return nil, nil, err
	}
	for i := range values {
		values[i] *= scale
	}
	if vectors {
		q = mat.NewDense(n, n, nil)
		for to, row := range rows {
			q.SetCol(to, row)
		}
	}
	return values, q, nil
}

// sorted makes t diagonal, and returns what is on its diagonal in ascending order with the
// rows of q for them.
func (t *tridiagonal) sorted(precision float64) (rows [][]float64, values []float64, err error) {
	if !t.diagonalize(precision) {
		return nil, nil, fmt.Errorf("its eigenvalues do not converge")
	}
	order := make([]int, len(t.diag))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return elem.CompareReals(t.diag[i], t.diag[j]) })
	for _, from := range order {
		values = append(values, t.diag[from])
		if t.q != nil {
			rows = append(rows, t.q[from])
		}
	}
	return rows, values, nil
}

// tridiagonal is q transposed, times a symmetric matrix of two diagonals, times q.
type tridiagonal struct {
	diag, sub []float64
	q         [][]float64 // its rows, none where the vectors are not asked for
	spare     []float64   // a row
}

// newTridiagonal reflects the columns of the lower triangle of m/scale.
func newTridiagonal(m *mat.Dense, scale float64, vectors bool) *tridiagonal {
	n, _ := m.Dims()
	a := squareRows(n)
	for i := range n {
		for j, v := range m.RawRowView(i)[:i+1] {
			a[i][j], a[j][i] = v/scale, v/scale
		}
	}
	t := &tridiagonal{diag: make([]float64, n), sub: make([]float64, max(0, n-1)), spare: make([]float64, n)}
	if vectors {
		t.q = unitRows(n)
	}
	v, w := make([]float64, n), make([]float64, n)
	for k := range n - 1 {
		u := v[:n-k-1]
		tau, beta := reflection(a, k, u)
		t.sub[k] = beta
		reflect(a[k+1:], k+1, u, w[:len(u)], tau)
		t.collect(k+1, u, tau)
	}
	for i := range n {
		t.diag[i] = a[i][i]
	}
	return t
}

func squareRows(n int) [][]float64 {
	all, rows := make([]float64, n*n), make([][]float64, n)
	for i := range rows {
		rows[i] = all[i*n:][:n:n]
	}
	return rows
}

// unitRows are the rows of an identity.
func unitRows(n int) [][]float64 {
	rows := squareRows(n)
	for i, row := range rows {
		row[i] = 1
	}
	return rows
}

// collect multiplies q by a reflection of the rows from one on.
func (t *tridiagonal) collect(from int, v []float64, tau float64) {
	if t.q == nil {
		return
	}
	sums := t.spare
	clear(sums)
	for i, e := range v {
		vec.AddScaled(sums, t.q[from+i], e)
	}
	vec.MulScalar(sums, sums, tau)
	for i, e := range v {
		vec.AddScaled(t.q[from+i], sums, -e)
	}
}

// reflection makes v, which begins with 1, and returns tau such that 1-tau*v*v' makes
// what is below the diagonal of column k a multiple beta of the first axis.
func reflection(a [][]float64, k int, v []float64) (tau, beta float64) {
	rest := 0.0
	for i := range v {
		v[i] = a[k+1+i][k]
		if i > 0 {
			rest += v[i] * v[i]
		}
	}
	head := v[0]
	if rest <= 0x1p-1022 {
		clear(v)
		v[0] = 1
		return 0, head
	}
	beta = math.Sqrt(head*head + rest)
	if head >= 0 {
		beta = -beta
	}
	for i := range v {
		v[i] /= head - beta
	}
	v[0] = 1
	return (beta - head) / beta, beta
}

// reflect applies the reflection to both sides of the rows, from a column on. The two
// halves of the matrix stay the same bits, so its rows serve as its columns.
func reflect(rows [][]float64, from int, v, w []float64, tau float64) {
	clear(w)
	for j, e := range v {
		vec.AddScaled(w, rows[j][from:], e)
	}
	half := 0.0
	for i, e := range v {
		w[i] *= tau
		half += w[i] * e
	}
	vec.AddScaled(w, v, -0.5*tau*half)
	for i, row := range rows {
		vec.SubScaled(row[from:], w, v, v[i], w[i])
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
		t.rotate(k, c, s)
	}
}

// rotate turns rows k and k+1 of q.
func (t *tridiagonal) rotate(k int, c, s float64) {
	if t.q == nil {
		return
	}
	vec.Rotate(t.q[k], t.q[k+1], c, s)
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
