package dataset

import (
	"math"
	"slices"
)

// Spread says where most of some numbers are. A few that are far from all others hardly
// move it.
type Spread struct {
	Median float64
	// Deviation is what the standard deviation would be if the numbers were normally distributed:
	// 1.4826 times the median distance from the median. Where more than half are the same, it
	// is their mean distance that counts. It is never 0.
	Deviation float64
}

// LabelSpread returns the spread of the numbers that the training rows have as labels.
func (d *Dataset) LabelSpread() (Spread, error) {
	var labels []float64
	err := d.eachTrain(func(_ []float32, label int64) {
		labels = append(labels, float64(math.Float32frombits(uint32(label))))
	})
	if err != nil {
		return Spread{}, err
	}
	return spreadOf(labels), nil
}

// spreadOf returns the spread of some numbers, and puts them in order.
func spreadOf(all []float64) Spread {
	const normalMedian, normalMean = 1.4826, 1.2533 // by distances of a normal distribution
	if len(all) == 0 {
		return Spread{Deviation: 1}
	}
	s := Spread{Median: median(all)}
	sum := 0.0
	for i := range all {
		all[i] = math.Abs(all[i] - s.Median)
		sum += all[i]
	}
	s.Deviation = normalMedian * median(all)
	if s.Deviation == 0 {
		s.Deviation = normalMean * sum / float64(len(all))
	}
	s.Deviation = orOne(s.Deviation)
	return s
}

// median returns the number in the middle, or the mean of the two there, and puts all in
// order.
func median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}
