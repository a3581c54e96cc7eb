package dataset

import "math"

// Moments are the statistics of one column over the training rows, without
// missing values.
type Moments struct {
	Rows, Missing int64
	// Mean and Variance are over the Rows minus Missing values; 0 for none.
	Mean, Variance float64
	// Min and Max are the smallest and the largest value; 0 for none.
	Min, Max float64
}

// Statistics describe the training rows.
type Statistics struct {
	Features []Moments // of each number of a raw row
	// Words has, of each feature that is a text, the number of rows with each word of its
	// vocabulary; nil if there are no texts.
	Words [][]int64
	// Label has the statistics of labels that are numbers.
	Label Moments
}

// Statistics reads all training rows, once.
func (d *Dataset) Statistics() (*Statistics, error) {
	if d.statistics != nil {
		return d.statistics, nil
	}
	s := &Statistics{Features: make([]Moments, d.Features)}
	words := newWordCounter(d.Schema.Features)
	err := d.eachTrain(func(x []float32, label int64) {
		for i, v := range x {
			s.Features[i].add(float64(v))
		}
		if words != nil {
			words.add(x)
		}
		if d.opts.Numbers {
			s.Label.add(float64(math.Float32frombits(uint32(label))))
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range s.Features {
		s.Features[i].finish()
	}
	s.Label.finish()
	if words != nil {
		s.Words = words.rows
	}
	d.statistics = s
	return s, nil
}

// add counts a value. Until finish, Variance holds the sum of the squared
// deviations from the mean (Welford, 1962).
func (m *Moments) add(v float64) {
	m.Rows++
	if math.IsNaN(v) {
		m.Missing++
		return
	}
	n := float64(m.Rows - m.Missing)
	if n == 1 {
		m.Min, m.Max = v, v
	}
	m.Min, m.Max = min(m.Min, v), max(m.Max, v)
	d := v - m.Mean
	m.Mean += d / n
	m.Variance += d * (v - m.Mean)
}

func (m *Moments) finish() {
	if n := m.Rows - m.Missing; n > 0 {
		m.Variance /= float64(n)
	}
}
