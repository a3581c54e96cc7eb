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

// CheckScale returns an error for a column, of the file called name, whose numbers a
// model cannot scale: their variance, or for [NormalizeMinMax] their range, is too
// large or too small for a float32.
func (d *Dataset) CheckScale(name string, n Normalize) error {
	s, err := d.Statistics()
	if err != nil {
		return err
	}
	at := 0
	for i := range d.Schema.Features {
		f := &d.Schema.Features[i]
		m := &s.Features[at]
		at += f.Size()
		if n == NormalizeNone || f.HasWords() {
			continue
		}
		if e := m.checkScale(n); e != nil {
			e.Hint += ", or leave it out (data.drop)"
			return f.locate(name, e)
		}
	}
	if !d.opts.Numbers {
		return nil
	}
	if e := s.Label.checkScale(NormalizeStandard); e != nil {
		return d.Schema.Label.locate(name, e)
	}
	return nil
}

// checkScale says what is wrong with a column as a normalisation needs it.
func (m *Moments) checkScale(n Normalize) *Error {
	const least, most = 0x1p-126, math.MaxFloat32 // with all digits
	_, by := m.Scaling(n)
	held := by
	if n == NormalizeStandard {
		held = by * by
	}
	if held >= least && held <= most {
		return nil
	}
	return &Error{Reason: fmt.Sprintf("the numbers spread by %.2g, which is out of the range that a float32 can scale, 1e-19 to 1e+19", by),
		Hint: fmt.Sprintf("multiply the column by 1e%+d", -int(math.Round(math.Log10(by))))}
}

// locate places what is wrong with a column.
func (f *Feature) locate(file string, e *Error) *Error {
	e.File, e.Column, e.Name = file, f.Column+1, f.Name
	return e
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
