package crossval

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// rowsOf returns n rows of normal numbers, and the labels that f gives them.
func rowsOf(n, width int, f func(x []float64, r *rand.Rand) float64) (*mat.Dense, []float64) {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := mat.NewDense(n, width, nil), make([]float64, n)
	for i := range n {
		row := x.RawRowView(i)
		for j := range row {
			row[j] = r.NormFloat64()
		}
		y[i] = f(row, r)
	}
	return x, y
}

func TestRegression(t *testing.T) {
	for _, c := range []struct {
		name                   string
		rows, width            int
		f                      func(x []float64, r *rand.Rand) float64
		linear, atMost, smooth float64 // the least of both, the most of the linear one
	}{
		{"a weighted sum", 60, 4, func(x []float64, r *rand.Rand) float64 { return 3*x[0] - x[1] + 7 + 0.1*r.NormFloat64() }, 0.95, 1, 0.95},
		{"a bend", 200, 2, func(x []float64, r *rand.Rand) float64 { return x[0]*x[0] + 0.1*r.NormFloat64() }, -0.2, 0.2, 0.8},
		{"two features together", 200, 2, func(x []float64, r *rand.Rand) float64 { return x[0] * x[1] }, -0.2, 0.2, 0.7},
		{"noise", 40, 10, func(x []float64, r *rand.Rand) float64 { return r.NormFloat64() }, -0.2, 0.15, -0.2},
		{"more features than rows", 30, 60, func(x []float64, r *rand.Rand) float64 { return x[0] + x[1] + 5*x[2] + r.NormFloat64() }, -0.2, 1, -0.2},
	} {
		x, y := rowsOf(c.rows, c.width, c.f)
		j, err := Regression(x, y)
		if err != nil || j.Linear < c.linear || j.Linear > c.atMost || j.Smooth < c.smooth || j.Smooth < j.Linear || !(j.Ridge > 0) {
			t.Errorf("%s: %+v, %v; want linear %v to %v, smooth from %v", c.name, j, err, c.linear, c.atMost, c.smooth)
		}
	}
}

// TestLeftOutByHand leaves the rows out one by one and fits the others, as the
// formula says without doing so.
func TestLeftOutByHand(t *testing.T) {
	const strength = 0.7
	x, y := rowsOf(12, 3, func(x []float64, r *rand.Rand) float64 { return x[0] - 2*x[2] + r.NormFloat64() })
	errorSum, spread := 0.0, 0.0
	for out := range y {
		predicted, mean := ridge(x, y, out, strength)
		errorSum += (y[out] - predicted) * (y[out] - predicted)
		spread += (y[out] - mean) * (y[out] - mean)
	}
	y, _ = standardized(y)
	k := mat.NewSymDense(12, nil)
	k.SymOuterK(1, x)
	var eigen mat.EigenSym
	if !eigen.Factorize(centred(k), true) {
		t.Fatal("no decomposition")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	var turned mat.VecDense
	turned.MulVec(vectors.T(), mat.NewVecDense(12, y))
	got := fitLeftOut(&vectors, eigen.Values(nil), turned.RawVector().Data, y, strength).r2
	if want := 1 - errorSum/spread; math.Abs(got-want) > 1e-9 {
		t.Errorf("R2 %v, by leaving rows out %v", got, want)
	}
}

// ridge fits all rows but one, with an intercept, and predicts that one.
func ridge(x *mat.Dense, y []float64, out int, strength float64) (predicted, mean float64) {
	n, width := x.Dims()
	normal, right := mat.NewDense(width+1, width+1, nil), mat.NewVecDense(width+1, nil)
	row := func(i int) []float64 { return append([]float64{1}, x.RawRowView(i)...) }
	for i := range n {
		if i == out {
			continue
		}
		for a, va := range row(i) {
			right.SetVec(a, right.AtVec(a)+va*y[i])
			for b, vb := range row(i) {
				normal.Set(a, b, normal.At(a, b)+va*vb)
			}
		}
		mean += y[i] / float64(n-1)
	}
	for a := 1; a <= width; a++ {
		normal.Set(a, a, normal.At(a, a)+strength)
	}
	var w mat.VecDense
	if err := w.SolveVec(normal, right); err != nil {
		panic(err)
	}
	return mat.Dot(&w, mat.NewVecDense(width+1, row(out))), mean
}

func TestTooFew(t *testing.T) {
	for name, c := range map[string]struct {
		x *mat.Dense
		y []float64
	}{
		"two rows":          {mat.NewDense(2, 1, nil), []float64{1, 2}},
		"labels of a kind":  {mat.NewDense(4, 1, nil), []float64{1, 1, 1, 1}},
		"a label that is ∞": {mat.NewDense(3, 1, nil), []float64{1, 2, math.Inf(1)}},
	} {
		if _, err := Regression(c.x, c.y); !errors.Is(err, ErrTooFew) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if j, err := Regression(mat.NewDense(5, 2, nil), []float64{1, 2, 3, 4, 5}); err != nil || j.Linear > 0.01 {
		t.Errorf("features that are all the same: %+v, %v", j, err)
	}
}
