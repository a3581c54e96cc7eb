package cmat

import (
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

func random(n int) *Matrix {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	m := New(n, n)
	for i := range m.Data {
		m.Data[i] = complex(rng.NormFloat64(), rng.NormFloat64())
	}
	return m
}

func near(t *testing.T, what string, got, want *Matrix) {
	t.Helper()
	for i, v := range got.Data {
		if d := cmplx.Abs(v - want.Data[i]); !(d < 1e-11*(1+want.Norm1())) {
			t.Fatalf("%s, element %d is %v, want %v", what, i, v, want.Data[i])
		}
	}
}

func TestSchur(t *testing.T) {
	for n := 1; n < 9; n++ {
		m := random(n)
		upper, q, ok := m.Schur()
		if !ok {
			t.Fatalf("no triangle of %d rows", n)
		}
		near(t, "q times its adjoint", q.Mul(q.Adjoint()), Identity(n))
		near(t, "the product", q.Mul(upper).Mul(q.Adjoint()), m)
		for i := range n {
			for j := range i {
				if upper.At(i, j) != 0 {
					t.Errorf("element %d,%d is %v", i, j, upper.At(i, j))
				}
			}
		}
	}
}

func TestSchurOfCycle(t *testing.T) {
	m := New(3, 3)
	for i := range 3 {
		m.Set(i, (i+1)%3, 1)
	}
	upper, q, ok := m.Schur()
	if !ok {
		t.Fatal("no triangle")
	}
	near(t, "the product", q.Mul(upper).Mul(q.Adjoint()), m)
}

func TestFunctions(t *testing.T) {
	for n := 1; n < 9; n++ {
		m := random(n)
		root, err := m.Sqrt()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the square of the root", root.Mul(root), m)
		log, err := m.Log()
		if err != nil {
			t.Fatal(err)
		}
		exp, err := log.Exp()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the exponential of the logarithm", exp, m)
		inverse, err := m.Solve(Identity(n))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the product with the inverse", m.Mul(inverse), Identity(n))
	}
}

func TestSingular(t *testing.T) {
	if _, err := New(2, 2).Solve(Identity(2)); err != ErrSingular {
		t.Errorf("got %v, want %v", err, ErrSingular)
	}
}

// TestFactors multiplies the factors of matrices of all shapes.
func TestFactors(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {5, 5}, {7, 3}, {3, 7}, {4, 1}} {
		m := random(8).Columns(size[1])
		m = &Matrix{size[0], size[1], m.Data[:size[0]*size[1]]}
		q, r := m.QR()
		near(t, "q times its adjoint", q.Mul(q.Adjoint()), Identity(m.Rows))
		near(t, "q times r", q.Mul(r), m)
		low := m.Columns(1).Mul(m.Adjoint().Columns(1).Adjoint()) // of rank 1
		for _, m := range []*Matrix{m, low} {
			u, values, v := m.SVD()
			u, v = u.Complete(), v.Complete()
			near(t, "u times its adjoint", u.Mul(u.Adjoint()), Identity(m.Rows))
			near(t, "v times its adjoint", v.Mul(v.Adjoint()), Identity(m.Cols))
			s := New(m.Rows, m.Cols)
			for i, x := range values {
				s.Set(i, i, complex(x, 0))
			}
			near(t, "u times the values times v", u.Mul(s).Mul(v.Adjoint()), m)
		}
	}
}

func TestEigen(t *testing.T) {
	for n := 1; n < 9; n++ {
		m := random(n)
		values, v, err := m.Eigen()
		if err != nil {
			t.Fatal(err)
		}
		scaled := v.Clone()
		for i := range scaled.Data {
			scaled.Data[i] *= values[i%n]
		}
		near(t, "the products with the vectors", m.Mul(v), scaled)
		l, ok := m.Mul(m.Adjoint()).Cholesky()
		if !ok {
			t.Fatal("a product with the adjoint is not positive definite")
		}
		near(t, "the factor times its adjoint", l.Mul(l.Adjoint()), m.Mul(m.Adjoint()))
	}
}
