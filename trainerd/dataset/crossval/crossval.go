// Package crossval estimates, before anything is trained, which kind of model suits the rows of a
// small table: each row is predicted from all others. A class label becomes a number for each
// class: 1 for that of the row, 0 for the others.
//
// With a kernel K of n rows, centred, a ridge regression of strength s predicts
// H y with H = K (K + s)^-1, and its error on a row that it has not seen is (y_i -
// (H y)_i) / (1 - H_ii), without fitting it n times. One decomposition of K serves
// all strengths.
package crossval

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Judgement says how well left-out rows are predicted: R2, at most 1, and 0 for
// predicting the mean of the others.
type Judgement struct {
	// Linear is for the best weighted sum of the features, Smooth for such a sum
	// plus a smooth function of them.
	Linear, Smooth float64
	// Uncertainty is the standard error of the difference of both.
	Uncertainty float64
	// Ridge is the strength that a weighted sum should have: what the squares of its weights
	// are multiplied with in the sum of squared errors, features and labels having
	// deviation 1. It is 1 unless another one is clearly better.
	Ridge float64
}

// Rows are the rows to judge: features that have deviation 1, or are 0 and 1, and
// the number or class to predict.
type Rows struct {
	Features *mat.Dense
	Labels   []float64
	// Classes is the number of classes, which are labels from 0 up; 0 for
	// numbers.
	Classes int
	// Weights says how much each row counts; nil for all the same.
	Weights []float64
	// Groups numbers the groups of rows that are left out together, as they will be
	// when the model is used; nil for each row by itself.
	Groups []uint32
}

// ErrTooFew says that there is too little to judge: fewer than three rows that
// count, a single group, no feature, or labels that are all the same.
var ErrTooFew = errors.New("crossval: too few different rows")

// usualRidge is the strength of a weighted sum unless another one is clearly better.
// The best one for few rows is often so by chance: on 60 splits of each of 19 small
// tables, taking it predicted new rows worse, by up to 0.05 in R2, and never better
// by more than 0.003.
const usualRidge = 1.0

// Judge judges rows. The time is that of the cube of the rows, the memory that
// of some squares.
func Judge(r Rows) (Judgement, error) {
	_, width := r.Features.Dims()
	s, ok := newSample(r)
	if width == 0 || !ok {
		return Judgement{}, ErrTooFew
	}
	sums := mat.NewSymDense(len(s.roots), nil)
	sums.SymOuterK(1/float64(width), s.x)
	linear, err := s.leaveOut(sums, usualRidge/float64(width))
	if err != nil {
		return Judgement{}, err
	}
	smooth := linear
	for _, reach := range []float64{0.5, 2} {
		f, err := s.leaveOut(smoothKernel(sums, reach), 0)
		if err != nil {
			return Judgement{}, err
		}
		if f.r2 > smooth.r2 {
			smooth = f
		}
	}
	return Judgement{Linear: linear.r2, Smooth: smooth.r2, Uncertainty: s.uncertainty(linear, smooth),
		Ridge: linear.steady * float64(width)}, nil
}

// sample is the rows that count.
type sample struct {
	x      *mat.Dense
	y      *mat.Dense // a column for the number, or one for each class: with mean 0, times the roots
	roots  []float64  // of the weights, whose mean is 1
	groups [][]int    // the rows of each
	spread float64    // what the mean misses, each group being left out
}

func newSample(r Rows) (s *sample, ok bool) {
	n, _ := r.Features.Dims()
	s = &sample{}
	var weights []float64
	var taken []int
	for i := range n {
		if weight := r.weight(i); weight > 0 { // else it has no part in the training
			taken, weights = append(taken, i), append(weights, weight)
		}
	}
	s.groups = r.groupsOf(taken)
	if len(taken) < 3 || len(s.groups) < 2 {
		return nil, false
	}
	s.roots = rootsOf(weights)
	s.y = mat.NewDense(len(taken), max(1, r.Classes), nil)
	for c := range max(1, r.Classes) {
		labels := make([]float64, len(taken))
		for place, i := range taken {
			labels[place] = r.column(i, c)
		}
		if !s.setColumn(c, labels, weights, r.Classes == 0) {
			return nil, false
		}
	}
	s.x, s.spread = pick(r.Features, taken), s.byMean()
	return s, s.spread > 0
}

// column returns what is to be predicted of a row: the number, or 1 for its class.
func (r *Rows) column(i, class int) float64 {
	switch {
	case r.Classes == 0:
		return r.Labels[i]
	case int(r.Labels[i]) == class:
		return 1
	}
	return 0
}

func (r *Rows) weight(i int) float64 {
	if r.Weights == nil {
		return 1
	}
	return r.Weights[i]
}

// groupsOf returns the places of each group among some rows.
func (r *Rows) groupsOf(rows []int) (groups [][]int) {
	numbers := make(map[uint32]int)
	for place, i := range rows {
		group := len(groups)
		if r.Groups != nil {
			if known, ok := numbers[r.Groups[i]]; ok {
				group = known
			}
			numbers[r.Groups[i]] = group
		}
		if group == len(groups) {
			groups = append(groups, nil)
		}
		groups[group] = append(groups[group], place)
	}
	return groups
}

// pick returns some rows.
func pick(x *mat.Dense, rows []int) *mat.Dense {
	_, width := x.Dims()
	if width == 0 {
		return x
	}
	picked := mat.NewDense(len(rows), width, nil)
	for to, from := range rows {
		picked.SetRow(to, x.RawRowView(from))
	}
	return picked
}

// rootsOf returns the roots of weights that are brought to mean 1.
func rootsOf(weights []float64) []float64 {
	usual := stat.Mean(weights, nil)
	roots := make([]float64, len(weights))
	for i, w := range weights {
		roots[i] = math.Sqrt(w / usual)
	}
	return roots
}

// setColumn sets what is to be predicted, with mean 0, and deviation 1 if that is
// wanted. There must be something to predict.
func (s *sample) setColumn(c int, labels, weights []float64, scale bool) (ok bool) {
	mean, deviation := stat.PopMeanStdDev(labels, weights)
	if !scale {
		deviation = 1
	}
	if !(deviation > 0) || math.IsInf(deviation, 0) {
		return false
	}
	for i, label := range labels {
		s.y.Set(i, c, (label-mean)/deviation*s.roots[i])
	}
	return true
}

// uncertainty returns the standard error of the difference of two fits, from that of
// the single groups.
func (s *sample) uncertainty(a, b fit) float64 {
	n := float64(len(s.groups))
	gains := make([]float64, len(s.groups))
	for g, rows := range s.groups {
		for _, i := range rows {
			gains[g] += (a.lost[i] - b.lost[i]) * n
		}
	}
	return stat.StdDev(gains, nil) / math.Sqrt(n)
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
