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

func TestJudge(t *testing.T) {
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
		j, err := Judge(Rows{Features: x, Labels: y})
		if err != nil || j.Linear < c.linear || j.Linear > c.atMost || j.Smooth < c.smooth || j.Smooth < j.Linear || !(j.Ridge > 0) {
			t.Errorf("%s: %+v, %v; want linear %v to %v, smooth from %v", c.name, j, err, c.linear, c.atMost, c.smooth)
		}
	}
}

// TestLeftOutByHand leaves the groups out one by one and fits the other rows, as the
// formula says without doing so.
func TestLeftOutByHand(t *testing.T) {
	const strength, n = 0.7, 14
	x, y := rowsOf(n, 3, func(x []float64, r *rand.Rand) float64 { return x[0] - 2*x[2] + r.NormFloat64() })
	weights := []float64{1, 2, 0.5, 1, 3, 1, 1, 0.1, 2, 2, 1, 0, 1, 4}
	groups := []uint32{7, 3, 7, 1, 2, 2, 7, 9, 3, 1, 1, 5, 5, 8}
	for name, r := range map[string]Rows{
		"rows":             {Features: x, Labels: y},
		"weights":          {Features: x, Labels: y, Weights: weights},
		"groups":           {Features: x, Labels: y, Groups: groups},
		"groups, weighted": {Features: x, Labels: y, Groups: groups, Weights: weights},
	} {
		s, ok := newSample(r)
		if !ok {
			t.Fatalf("%s: no sample", name)
		}
		k := mat.NewSymDense(len(s.roots), nil)
		k.SymOuterK(1, s.x)
		d := new(decomposition)
		var eigen mat.EigenSym
		if !eigen.Factorize(s.centred(k), true) {
			t.Fatal("no decomposition")
		}
		d.values = eigen.Values(nil)
		eigen.VectorsTo(&d.vectors)
		d.turned.Mul(d.vectors.T(), s.y)
		got := s.fitLeftOut(d, strength).r2
		if want := leftOut(r, strength); math.Abs(got-want) > 1e-7 {
			t.Errorf("%s: R2 %v, by leaving them out %v", name, got, want)
		}
	}
}

// leftOut returns R2 of rows of groups that are left out one after the other.
func leftOut(r Rows, strength float64) float64 {
	errorSum, spread, sum, count := 0.0, 0.0, 0.0, 0.0
	for i := range r.Labels {
		if r.weight(i) > 0 {
			sum, count = sum+r.weight(i), count+1
		}
	}
	for out := range r.Labels {
		predicted, mean := ridge(r, out, strength*sum/count)
		errorSum += r.weight(out) * math.Pow(r.Labels[out]-predicted, 2)
		spread += r.weight(out) * math.Pow(r.Labels[out]-mean, 2)
	}
	return 1 - errorSum/spread
}

// ridge fits all rows that are not of the group of one, with an intercept, and
// predicts that one.
func ridge(r Rows, out int, strength float64) (predicted, mean float64) {
	n, width := r.Features.Dims()
	normal, right := mat.NewDense(width+1, width+1, nil), mat.NewVecDense(width+1, nil)
	row := func(i int) []float64 { return append([]float64{1}, r.Features.RawRowView(i)...) }
	sum := 0.0
	for i := range n {
		if i == out || r.Groups != nil && r.Groups[i] == r.Groups[out] {
			continue
		}
		w := r.weight(i)
		for a, va := range row(i) {
			right.SetVec(a, right.AtVec(a)+w*va*r.Labels[i])
			for b, vb := range row(i) {
				normal.Set(a, b, normal.At(a, b)+w*va*vb)
			}
		}
		mean, sum = mean+w*r.Labels[i], sum+w
	}
	for a := 1; a <= width; a++ {
		normal.Set(a, a, normal.At(a, a)+strength)
	}
	var w mat.VecDense
	if err := w.SolveVec(normal, right); err != nil {
		panic(err)
	}
	return mat.Dot(&w, mat.NewVecDense(width+1, row(out))), mean / sum
}

// TestClasses judges classes that a line divides, and a circle.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name   string
		class  func(x []float64, r *rand.Rand) float64
		smooth bool
	}{
		{"by a line, with noise", func(x []float64, r *rand.Rand) float64 { return step(x[0] + 0.5*x[1] + r.NormFloat64()) }, false},
		{"by a circle", func(x []float64, r *rand.Rand) float64 { return step(x[0]*x[0] + x[1]*x[1] - 1.4) }, true},
	} {
		x, y := rowsOf(240, 3, c.class)
		j, err := Judge(Rows{Features: x, Labels: y, Classes: 3})
		gain := j.Smooth > j.Linear+max(0.02, j.Uncertainty)
		if err != nil || gain != c.smooth || !c.smooth && j.Linear < 0.1 {
			t.Errorf("%s: %+v, %v", c.name, j, err)
		}
	}
}

func step(v float64) float64 {
	if v > 0 {
		return 1
	}
	return 0
}

// TestGroupsAreLeftOutWhole: what tells a group from others predicts its rows only
// as long as some of them are seen.
func TestGroupsAreLeftOutWhole(t *testing.T) {
	const groups, each = 12, 6
	r := rand.New(rand.NewPCG(5, 6))
	rows := Rows{Features: mat.NewDense(groups*each, groups, nil)}
	for g := range groups {
		level := 5 * r.NormFloat64()
		for i := range each {
			rows.Features.Set(g*each+i, g, 1)
			rows.Labels = append(rows.Labels, level+r.NormFloat64())
			rows.Groups = append(rows.Groups, uint32(g))
		}
	}
	whole, err := Judge(rows)
	if err != nil || whole.Linear > 0.1 {
		t.Errorf("groups left out whole: %+v, %v; want nothing to be predicted", whole, err)
	}
	rows.Groups = nil
	if single, err := Judge(rows); err != nil || single.Linear < 0.8 {
		t.Errorf("rows left out: %+v, %v; want 0.8", single, err)
	}
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
		if _, err := Judge(Rows{Features: c.x, Labels: c.y}); !errors.Is(err, ErrTooFew) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if j, err := Judge(Rows{Features: mat.NewDense(5, 2, nil), Labels: []float64{1, 2, 3, 4, 5}}); err != nil || j.Linear > 0.01 {
		t.Errorf("features that are all the same: %+v, %v", j, err)
	}
}

// TestRidge takes the usual strength unless rows show that another is better.
func TestRidge(t *testing.T) {
	for _, c := range []struct {
		name              string
		rows, width       int
		noise, from, upTo float64
	}{
		{"a sum with noise", 30, 3, 1, usualRidge, usualRidge},
		{"a sum without noise", 40, 3, 0, 0, 0.01},
		{"more features than rows bear", 90, 80, 4, 5, math.Inf(1)},
	} {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 1))
			x, y := mat.NewDense(c.rows, c.width, nil), make([]float64, c.rows)
			for i := range y {
				for k := range c.width {
					x.Set(i, k, r.NormFloat64())
				}
				y[i] = x.At(i, 0) + x.At(i, 1) + c.noise*r.NormFloat64()
			}
			j, err := Judge(Rows{Features: x, Labels: y})
			if err != nil || j.Ridge < c.from*0.999 || j.Ridge > c.upTo*1.001 {
				t.Errorf("%s, seed %d: %v, %v; want %v to %v", c.name, seed, j.Ridge, err, c.from, c.upTo)
			}
		}
	}
}
