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
	steady       float64   // the usual strength, or this one if that is worse by more than chance
	lost         []float64 // by each row: what 1 lacks to R2 is their sum
}

// strengths are powers of ten.
const weakest, strongest, nextPower = -5.0, 2.0, 0.5

// leaveOut returns the strength with the smallest errors on groups left out. The
// usual one is compared with it; 0 for none.
func (s *sample) leaveOut(kernel *mat.SymDense, usual float64) (fit, error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(s.centred(kernel), true) {
		return fit{}, errors.New("crossval: the kernel has no decomposition")
	}
	d := &decomposition{values: eigen.Values(nil)}
	eigen.VectorsTo(&d.vectors)
	d.turned.Mul(d.vectors.T(), s.y)
	best := fit{r2: math.Inf(-1)}
	for power := weakest; power <= strongest; power += nextPower {
		strength := math.Pow(10, power)
		if f := s.fitLeftOut(d, strength); f.r2 > best.r2 {
			best = f
		}
	}
	best.steady = best.strength
	if usual == 0 {
		return best, nil
	}
	if f := s.fitLeftOut(d, usual); best.r2-f.r2 <= s.uncertainty(f, best) {
		best.steady = usual
	}
	return best, nil
}

// decomposition is that of a kernel, and the labels by its vectors.
type decomposition struct {
	values  []float64
	vectors mat.Dense
	turned  mat.Dense
}

// centred takes the mean out of a kernel's rows and columns, as an intercept does,
// and gives the rows their weights.
func (s *sample) centred(k *mat.SymDense) *mat.SymDense {
	n := len(s.roots)
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
func (s *sample) share(i int) float64 { return s.roots[i] * s.roots[i] / float64(len(s.roots)) }

// fitLeftOut predicts each group from the others.
func (s *sample) fitLeftOut(d *decomposition, strength float64) fit {
	shares := make([]float64, len(d.values))
	for k, v := range d.values {
		shares[k] = max(v, 0) / (max(v, 0) + strength)
	}
	var missed mat.Dense // by the model that has seen all
	missed.Apply(func(k, _ int, v float64) float64 { return v * shares[k] }, &d.turned)
	missed.Mul(&d.vectors, mat.DenseCopyOf(&missed))
	missed.Sub(s.y, &missed)
	lost := make([]float64, len(s.roots))
	for _, group := range s.groups {
		s.leaveGroup(group, lost, &missed, func(i, j int) float64 {
			a, b, sum := d.vectors.RawRowView(i), d.vectors.RawRowView(j), 0.0
			for k, share := range shares {
				sum += a[k] * b[k] * share
			}
			return sum
		})
	}
	floats.Scale(1/s.spread, lost)
	return fit{r2: 1 - floats.Sum(lost), strength: strength, lost: lost}
}

// byMean returns the sum of what the mean of the other groups misses each by.
func (s *sample) byMean() float64 {
	lost := make([]float64, len(s.roots))
	for _, group := range s.groups {
		s.leaveGroup(group, lost, s.y, func(int, int) float64 { return 0 })
	}
	return floats.Sum(lost)
}

// leaveGroup sets the squared errors of the rows of a group that a model makes which
// has not seen them, from what one misses that has seen all: by the inverse of
// 1 - H of the group, H being what the labels count in the predictions, and the
// intercept's part of it.
func (s *sample) leaveGroup(group []int, squared []float64, missed *mat.Dense, leverage func(i, j int) float64) {
	n := float64(len(s.roots))
	if len(group) == 1 {
		i := group[0]
		rest := max(1-leverage(i, i)-s.roots[i]*s.roots[i]/n, leastRest)
		squared[i] = squares(missed.RawRowView(i)) / (rest * rest)
		return
	}
	_, columns := missed.Dims()
	rest, seen := mat.NewSymDense(len(group), nil), mat.NewDense(len(group), columns, nil)
	for a, i := range group {
		seen.SetRow(a, missed.RawRowView(i))
		for b, j := range group[:a+1] {
			rest.SetSym(a, b, -leverage(i, j)-s.roots[i]*s.roots[j]/n)
		}
		rest.SetSym(a, a, rest.At(a, a)+1+leastRest)
	}
	var left mat.Dense
	var factors mat.Cholesky
	if !factors.Factorize(rest) || factors.SolveTo(&left, seen) != nil {
		left.Scale(1/leastRest, seen) // a fit so near to all rows is not the best
	}
	for a, i := range group {
		squared[i] = squares(left.RawRowView(a))
	}
}

func squares(values []float64) float64 { return floats.Dot(values, values) }

// leastRest keeps what a row does not predict of itself above 0.
const leastRest = 1e-9
