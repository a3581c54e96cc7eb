package cmat

import (
	"errors"
	"math"
	"math/cmplx"
)

var errSchur = errors.New("its eigenvalues do not converge")

// pade13 are the coefficients of the diagonal Padé approximant of the
// exponential, of degree 13 (Higham 2005).
var pade13 = [...]float64{
	64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
	670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
}

// expNorm is the largest norm that the approximant is good for.
const expNorm = 5.371920351148152

// Exp returns the exponential of m: it is halved until it is small, and the
// result squared as often.
func (m *Matrix) Exp() (*Matrix, error) {
	norm := m.Norm1()
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return nil, errors.New("it is not finite")
	}
	halvings := 0
	if norm > expNorm {
		halvings = int(math.Ceil(math.Log2(norm / expNorm)))
	}
	a := m.Combine(complex(math.Ldexp(1, -halvings), 0), m, 0)
	square, power := a.Mul(a), Identity(m.Rows)
	even, odd := New(m.Rows, m.Cols), New(m.Rows, m.Cols)
	for k := 0; k < len(pade13); k += 2 {
		even = even.Combine(1, power, complex(pade13[k], 0))
		odd = odd.Combine(1, power, complex(pade13[k+1], 0))
		power = power.Mul(square)
	}
	odd = a.Mul(odd)
	out, err := even.Combine(1, odd, -1).Solve(even.Combine(1, odd, 1))
	if err != nil {
		return nil, err
	}
	for range halvings {
		out = out.Mul(out)
	}
	return out, nil
}

// Sqrt returns the principal square root of m.
func (m *Matrix) Sqrt() (*Matrix, error) {
	t, q, ok := m.Schur()
	if !ok {
		return nil, errSchur
	}
	return q.Mul(t.sqrtTriangle()).Mul(q.Adjoint()), nil
}

// sqrtTriangle is the root of an upper triangle, column by column (Björck and
// Hammarling 1983).
func (m *Matrix) sqrtTriangle() *Matrix {
	r := New(m.Rows, m.Cols)
	for j := range m.Rows {
		r.Set(j, j, cmplx.Sqrt(m.At(j, j)))
		for i := j - 1; i >= 0; i-- {
			sum := m.At(i, j)
			for k := i + 1; k < j; k++ {
				sum -= r.At(i, k) * r.At(k, j)
			}
			if below := r.At(i, i) + r.At(j, j); below != 0 {
				sum /= below
			}
			r.Set(i, j, sum)
		}
	}
	return r
}

// Log returns the principal logarithm of m: roots are taken until it is nearly
// one, where the logarithm is an integral of rational functions.
func (m *Matrix) Log() (*Matrix, error) {
	t, q, ok := m.Schur()
	if !ok {
		return nil, errSchur
	}
	one, roots := Identity(m.Rows), 0
	const near, most = 0.25, 100
	for t.Combine(1, one, -1).Norm1() > near && roots < most {
		t = t.sqrtTriangle()
		roots++
	}
	x, sum := t.Combine(1, one, -1), New(m.Rows, m.Cols)
	for k, node := range legendreNodes {
		for _, s := range []float64{-node, node} {
			part, err := one.Combine(1, x, complex((1+s)/2, 0)).Solve(x)
			if err != nil {
				return nil, err
			}
			sum = sum.Combine(1, part, complex(legendreWeights[k]/2, 0))
		}
	}
	sum = sum.Combine(complex(math.Ldexp(1, roots), 0), sum, 0)
	return q.Mul(sum).Mul(q.Adjoint()), nil
}

// The quadrature of Gauss and Legendre with sixteen nodes, of which these are
// the positive ones.
var (
	legendreNodes = [...]float64{
		0.0950125098376374, 0.2816035507792589, 0.4580167776572274, 0.6178762444026438,
		0.7554044083550030, 0.8656312023878318, 0.9445750230732326, 0.9894009349916499,
	}
	legendreWeights = [...]float64{
		0.1894506104550685, 0.1826034150449236, 0.1691565193950025, 0.1495959888165767,
		0.1246289712555339, 0.0951585116824928, 0.0622535239386479, 0.0271524594117541,
	}
)
