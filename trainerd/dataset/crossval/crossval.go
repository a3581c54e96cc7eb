// Package crossval judges, before anything is trained, which kind of regression the
// rows of a small table bear: each row is predicted from all others.
//
// With a kernel K of n rows, centred, a ridge regression of strength s predicts
// H y with H = K (K + s)^-1, and the error that it makes on a row which it has not
// seen is (y_i - (H y)_i) / (1 - H_ii), without fitting it n times. One
// decomposition of K serves all strengths.
package crossval

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Judgement says how well rows are predicted that were left out: R2, at most 1, and
// 0 for what the mean of the others predicts.
type Judgement struct {
	// Linear is for the best weighted sum of the features, Smooth for one with a
	// smooth function of them added.
	Linear, Smooth float64
	// Uncertainty is the standard error of the difference of both.
	Uncertainty float64
	// Ridge is the strength of that weighted sum: what the squares of its weights
	// are multiplied with in the sum of squared errors, features and labels having
	// deviation 1.
	Ridge float64
}

// ErrTooFew says that there is nothing to judge: fewer than three rows, no feature,
// or labels that are all the same.
var ErrTooFew = errors.New("crossval: too few different rows")

// Regression judges rows of features that have deviation 1, or are 0 and 1. The time
// is that of the cube of the rows, the memory that of some squares.
func Regression(x *mat.Dense, labels []float64) (Judgement, error) {
	n, width := x.Dims()
	y, ok := standardized(labels)
	if n < 3 || width == 0 || !ok {
		return Judgement{}, ErrTooFew
	}
	sums := mat.NewSymDense(n, nil)
	sums.SymOuterK(1/float64(width), x)
	linear, err := leaveOneOut(sums, y)
	if err != nil {
		return Judgement{}, err
	}
	smooth := linear
	for _, reach := range []float64{0.5, 2} {
		s, err := leaveOneOut(smoothKernel(sums, reach), y)
		if err != nil {
			return Judgement{}, err
		}
		if s.r2 > smooth.r2 {
			smooth = s
		}
	}
	return Judgement{Linear: linear.r2, Smooth: smooth.r2, Uncertainty: uncertainty(linear, smooth),
		Ridge: linear.strength * float64(width)}, nil
}

// uncertainty returns the standard error of the difference of two fits, from that of
// the single rows.
func uncertainty(a, b fit) float64 {
	n := float64(len(a.lost))
	gains := make([]float64, len(a.lost))
	for i := range gains {
		gains[i] = (a.lost[i] - b.lost[i]) * n
	}
	return stat.StdDev(gains, nil) / math.Sqrt(n)
}

// standardized returns numbers with mean 0 and deviation 1.
func standardized(labels []float64) (y []float64, ok bool) {
	if len(labels) < 3 {
		return nil, false
	}
	mean, deviation := stat.PopMeanStdDev(labels, nil)
	if !(deviation > 0) || math.IsInf(deviation, 0) {
		return nil, false
	}
	y = slices.Clone(labels)
	for i := range y {
		y[i] = (y[i] - mean) / deviation
	}
	return y, true
}

// smoothKernel adds a function of the distance of two rows to their product: it
// falls with the square of the distance, by 1/e at so many times the usual one.
func smoothKernel(products *mat.SymDense, reach float64) *mat.SymDense {
	n := products.SymmetricDim()
	distance := func(i, j int) float64 { return products.At(i, i) + products.At(j, j) - 2*products.At(i, j) }
	var all []float64
	for i := range n {
		for j := range i {
			all = append(all, distance(i, j))
		}
	}
	slices.Sort(all)
	scale := reach * max(all[len(all)/2], math.SmallestNonzeroFloat32)
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, products.At(i, j)+math.Exp(-distance(i, j)/scale))
		}
	}
	return k
}

// fit is the best strength of a kernel.
type fit struct {
	r2, strength float64
	lost         []float64 // by each row: what 1 lacks to R2 is their sum
}

// leaveOneOut returns the strength with the smallest errors on rows left out.
func leaveOneOut(kernel *mat.SymDense, y []float64) (fit, error) {
	n := len(y)
	var eigen mat.EigenSym
	if !eigen.Factorize(centred(kernel), true) {
		return fit{}, errors.New("crossval: the kernel has no decomposition")
	}
	values := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	var turned mat.VecDense
	turned.MulVec(vectors.T(), mat.NewVecDense(n, y))
	best := fit{r2: math.Inf(-1)}
	for power := -5.0; power <= 2; power += 0.5 {
		strength := math.Pow(10, power)
		if f := fitLeftOut(&vectors, values, turned.RawVector().Data, y, strength); f.r2 > best.r2 {
			best = f
		}
	}
	return best, nil
}

// centred takes the mean out of a kernel's rows and columns, as an intercept does.
func centred(k *mat.SymDense) *mat.SymDense {
	n := k.SymmetricDim()
	means := make([]float64, n)
	for i := range n {
		for j := range n {
			means[i] += k.At(i, j) / float64(n)
		}
	}
	mean := stat.Mean(means, nil)
	c := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			c.SetSym(i, j, k.At(i, j)-means[i]-means[j]+mean)
		}
	}
	return c
}

// fitLeftOut predicts each row from the others.
func fitLeftOut(vectors *mat.Dense, values, turned, y []float64, strength float64) fit {
	n := len(y)
	shares := make([]float64, n)
	for k, v := range values {
		shares[k] = max(v, 0) / (max(v, 0) + strength)
	}
	lost, spread := make([]float64, n), 0.0
	for i := range n {
		row := vectors.RawRowView(i)
		predicted, leverage := 0.0, 1/float64(n)
		for k, s := range shares {
			predicted += row[k] * s * turned[k]
			leverage += row[k] * row[k] * s
		}
		missed := (y[i] - predicted) / max(1-leverage, 1e-9)
		lost[i] = missed * missed
		byMean := y[i] / (1 - 1/float64(n)) // what the mean of the others misses it by
		spread += byMean * byMean
	}
	floats.Scale(1/spread, lost)
	return fit{1 - floats.Sum(lost), strength, lost}
}
