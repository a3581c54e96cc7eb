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

// scaling returns how each feature is scaled for a graph that does not scale
// them itself, by the statistics of the training examples.
func scaling(d *Dataset, s *source) ([]affine, error) {
	o := d.opts
	columns := make([]affine, s.width)
	for i := range columns {
		columns[i] = affine{divide: o.Scale}
	}
	switch o.Normalize {
	case NormalizeNone:
		return columns, nil
	case NormalizeStandard, NormalizeMinMax:
	default:
		return nil, &Error{File: s.name, Reason: fmt.Sprintf("the normalisation %q does not exist", o.Normalize), Hint: `use "standard", "minmax" or ""`}
	}
	all, err := d.Statistics()
	if err != nil {
		return nil, err
	}
	for i, m := range all.Features {
		columns[i].subtract, columns[i].divide = m.Scaling(o.Normalize)
	}
	return columns, nil
}

// Scaling returns the numbers that a normalisation subtracts from the values
// of a column and divides them by. A constant column is divided by 1, and so
// becomes 0.
func (m *Moments) Scaling(n Normalize) (subtract, divide float64) {
	switch n {
	case NormalizeStandard:
		return m.Mean, orOne(math.Sqrt(m.Variance))
	case NormalizeMinMax:
		return m.Min, orOne(m.Max - m.Min)
	}
	return 0, 1
}

// orOne keeps a constant column from being divided by 0.
func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// each calls f with the features and the label of each training example.
func each(s *source, train func(i int) bool, f func(x []float32, label int64)) error {
	x := make([]float32, 0, s.width)
	for i := range s.rows.count() {
		if !train(i) {
			continue
		}
		var err error
		if x, err = s.rows.features(x[:0], i); err != nil {
			return err
		}
		label, err := s.rows.label(i)
		if err != nil {
			return err
		}
		f(x, label)
	}
	return nil
}
