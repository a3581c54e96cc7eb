package crossval

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// fit is the best strength of a kernel.
type fit struct {
	r2, strength float64
	lost         []float64 // by each row: what 1 lacks to R2 is their sum
}

// strengths are powers of ten.
const weakest, strongest, nextPower = -5.0, 2.0, 0.5

// leaveOut returns the strength with the smallest errors on groups left out.
func (s *sample) leaveOut(kernel *mat.SymDense) (fit, error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(s.centred(kernel), true) {
		return fit{}, errors.New("crossval: the kernel has no decomposition")
	}
	d := &decomposition{values: eigen.Values(nil)}
	eigen.VectorsTo(&d.vectors)
	d.turned.MulVec(d.vectors.T(), mat.NewVecDense(len(s.y), s.y))
	best := fit{r2: math.Inf(-1)}
	for power := weakest; power <= strongest; power += nextPower {
		strength := math.Pow(10, power)
		if f := s.fitLeftOut(d, strength); f.r2 > best.r2 {
			best = f
		}
	}
	return best, nil
}

// decomposition is that of a kernel, and the labels by its vectors.
type decomposition struct {
	values  []float64
	vectors mat.Dense
	turned  mat.VecDense
}

// centred takes the mean out of a kernel's rows and columns, as an intercept does,
// and gives the rows their weights.
func (s *sample) centred(k *mat.SymDense) *mat.SymDense {
	n := len(s.y)
	means := make([]float64, n)
	for i := range n {
		for j := range n {
			means[i] += k.At(i, j) * s.share(j)
		}
	}
	mean := 0.0
	for i := range n {
		mean += means[i] * s.share(i)
	}
	c := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			c.SetSym(i, j, (k.At(i, j)-means[i]-means[j]+mean)*s.roots[i]*s.roots[j])
		}
	}
	return c
}

// share is the part of a row in a weighted mean.
func (s *sample) share(i int) float64 { return s.roots[i] * s.roots[i] / float64(len(s.y)) }

// fitLeftOut predicts each group from the others.
func (s *sample) fitLeftOut(d *decomposition, strength float64) fit {
	n := len(s.y)
	shares := make([]float64, n)
	for k, v := range d.values {
		shares[k] = max(v, 0) / (max(v, 0) + strength)
	}
	missed := make([]float64, n) // by the model that has seen all
	for i := range n {
		row, predicted := d.vectors.RawRowView(i), 0.0
		for k, share := range shares {
			predicted += row[k] * share * d.turned.AtVec(k)
		}
		missed[i] = s.y[i] - predicted
	}
	lost := make([]float64, n)
	for _, group := range s.groups {
		s.leaveGroup(group, lost, missed, func(i, j int) float64 {
			a, b, sum := d.vectors.RawRowView(i), d.vectors.RawRowView(j), 0.0
			for k, share := range shares {
				sum += a[k] * b[k] * share
			}
			return sum
		})
	}
	floats.Scale(1/s.spread, lost)
	return fit{1 - floats.Sum(lost), strength, lost}
}

// byMean returns the sum of what the mean of the other groups misses each by.
func (s *sample) byMean() float64 {
	lost := make([]float64, len(s.y))
	for _, group := range s.groups {
		s.leaveGroup(group, lost, s.y, func(int, int) float64 { return 0 })
	}
	return floats.Sum(lost)
}

// leaveGroup sets the squared errors of the rows of a group that a model makes which
// has not seen them, from what one misses that has seen all: by the inverse of
// 1 - H of the group, H being what the labels count in the predictions, and the
// intercept's part of it.
func (s *sample) leaveGroup(group []int, squared, missed []float64, leverage func(i, j int) float64) {
	n := float64(len(s.y))
	if len(group) == 1 {
		i := group[0]
		e := missed[i] / max(1-leverage(i, i)-s.roots[i]*s.roots[i]/n, leastRest)
		squared[i] = e * e
		return
	}
	rest, seen := mat.NewSymDense(len(group), nil), mat.NewVecDense(len(group), nil)
	for a, i := range group {
		seen.SetVec(a, missed[i])
		for b, j := range group[:a+1] {
			rest.SetSym(a, b, -leverage(i, j)-s.roots[i]*s.roots[j]/n)
		}
		rest.SetSym(a, a, rest.At(a, a)+1+leastRest)
	}
	var left mat.VecDense
	var factors mat.Cholesky
	if !factors.Factorize(rest) || factors.SolveVecTo(&left, seen) != nil {
		left.CloneFromVec(seen) // a fit so near to all rows is not the best
		left.ScaleVec(1/leastRest, &left)
	}
	for a, i := range group {
		squared[i] = left.AtVec(a) * left.AtVec(a)
	}
}

// leastRest keeps what a row does not predict of itself above 0.
const leastRest = 1e-9
