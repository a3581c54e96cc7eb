package dataset

import (
	"fmt"
	"math"
)

// affine maps v to (v - subtract) / divide.
type affine struct{ subtract, divide float64 }

func (a affine) apply(v float32) float32 {
	return float32((float64(v) - a.subtract) / a.divide)
}

// scaling returns how each feature is scaled, by the statistics of the training
// examples: those for which train is true.
func scaling(s *source, train func(i int) bool, o Options) ([]affine, error) {
	columns := make([]affine, s.width)
	for i := range columns {
		columns[i] = affine{divide: o.Scale}
	}
	switch o.Normalize {
	case NormalizeNone:
		return columns, nil
	case NormalizeStandard:
		return columns, standardise(s, train, columns)
	case NormalizeMinMax:
		return columns, minMax(s, train, columns)
	}
	return nil, &Error{File: s.name, Reason: fmt.Sprintf("the normalisation %q does not exist", o.Normalize), Hint: `use "standard", "minmax" or ""`}
}

// each calls f with the features of each training example.
func each(s *source, train func(i int) bool, f func(x []float32)) error {
	x := make([]float32, 0, s.width)
	for i := range s.rows.count() {
		if !train(i) {
			continue
		}
		var err error
		if x, err = s.rows.features(x[:0], i); err != nil {
			return err
		}
		f(x)
	}
	return nil
}

// standardise makes columns subtract the mean and divide by the standard
// deviation of the training rows.
func standardise(s *source, train func(i int) bool, columns []affine) error {
	means, squares, n := make([]float64, s.width), make([]float64, s.width), 0.0
	err := each(s, train, func(x []float32) {
		n++
		for c, v := range x {
			means[c] += float64(v)
		}
	})
	if err != nil {
		return err
	}
	for c := range means {
		means[c] /= n
	}
	err = each(s, train, func(x []float32) {
		for c, v := range x {
			d := float64(v) - means[c]
			squares[c] += d * d
		}
	})
	for c := range columns {
		columns[c] = affine{subtract: means[c], divide: orOne(math.Sqrt(squares[c] / n))}
	}
	return err
}

// minMax makes columns map the range of the training rows to [0, 1].
func minMax(s *source, train func(i int) bool, columns []affine) error {
	low, high := make([]float64, s.width), make([]float64, s.width)
	for c := range low {
		low[c], high[c] = math.Inf(1), math.Inf(-1)
	}
	err := each(s, train, func(x []float32) {
		for c, v := range x {
			low[c], high[c] = min(low[c], float64(v)), max(high[c], float64(v))
		}
	})
	for c := range columns {
		columns[c] = affine{subtract: low[c], divide: orOne(high[c] - low[c])}
	}
	return err
}

// orOne keeps a constant column from being divided by 0.
func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}
