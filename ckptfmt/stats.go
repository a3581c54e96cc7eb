package ckptfmt

import "math"

// Stats describes the numbers of a tensor. Min, Max and Mean are those of the
// finite numbers, NaN when there are none; Norm is the root of the sum of
// their squares.
type Stats struct {
	Count, Zeros, NaN, Inf int
	Min, Max, Mean, Norm   float64
}

// StatsOf computes the statistics of a tensor of numbers. It is an error
// matching [ErrType] when t holds none.
func StatsOf(t *Tensor) (Stats, error) {
	n, err := NumbersOf(t)
	if err != nil {
		return Stats{}, err
	}
	s := Stats{Count: n.Len(), Min: math.NaN(), Max: math.NaN(), Mean: math.NaN()}
	finite := 0
	var mean, scale, squares float64
	for i := range s.Count {
		v := n.At(i)
		switch {
		case math.IsNaN(v):
			s.NaN++
			continue
		case math.IsInf(v, 0):
			s.Inf++
			continue
		case v == 0:
			s.Zeros++
		}
		if finite == 0 {
			s.Min, s.Max = v, v
		}
		finite++
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		mean += v/float64(finite) - mean/float64(finite) // the sum could overflow
		scale, squares = addSquare(scale, squares, math.Abs(v))
	}
	if finite > 0 {
		s.Mean = mean
	}
	s.Norm = scale * math.Sqrt(squares)
	return s, nil
}

// addSquare adds a square to scale²·squares without overflow.
func addSquare(scale, squares, v float64) (float64, float64) {
	switch {
	case v == 0:
		return scale, squares
	case v > scale:
		r := scale / v
		return v, 1 + squares*r*r
	}
	r := v / scale
	return scale, squares + r*r
}
