package dataserver

import (
	"slices"

	"github.com/trainerd/trainerd/proto/tbdata"
)

// thin returns at most the given number of points at equal distances, including the first and the
// last.
func thin[T any](points []T, limit int) []T {
	if len(points) <= limit {
		return points
	}
	kept := make([]T, 0, limit)
	for i := range limit {
		kept = append(kept, points[spread(i, limit, len(points))])
	}
	return kept
}

// spread returns the index of the i-th of k points that are spread over n; the last of the n is
// always included.
func spread(i, k, n int) int {
	if k == 1 {
		return n - 1
	}
	return i * (n - 1) / (k - 1)
}

// thinScalars leaves at most the given number of points: the first, the last, and the lowest and
// the highest of each of as many stretches between them as there is room for, so that no peak of a
// curve is lost.
func thinScalars(d *tbdata.ScalarData, limit int) {
	n := len(d.Step)
	if n <= limit {
		return
	}
	kept := make([]int, 0, limit)
	stretches := (limit - 2) / 2
	if stretches < 1 {
		for i := range limit {
			kept = append(kept, spread(i, limit, n))
		}
	} else {
		kept = append(kept, 0)
		for i := range stretches {
			from, to := 1+i*(n-2)/stretches, 1+(i+1)*(n-2)/stretches
			kept = appendExtremes(kept, d.Value[from:to], from)
		}
		kept = append(kept, n-1)
	}
	for i, at := range kept { // which only grows
		d.Step[i], d.WallTime[i], d.Value[i] = d.Step[at], d.WallTime[at], d.Value[at]
	}
	d.Step, d.WallTime, d.Value = d.Step[:len(kept)], d.WallTime[:len(kept)], d.Value[:len(kept)]
}

// appendExtremes appends the indexes of the lowest and the highest value, in order; the first value
// has the index from. A NaN counts as an extreme.
func appendExtremes(kept []int, values []float32, from int) []int {
	low, high := 0, 0
	if nan := slices.IndexFunc(values, func(v float32) bool { return v != v }); nan >= 0 {
		low, high = nan, nan
	}
	for i, v := range values {
		if v < values[low] {
			low = i
		}
		if v > values[high] || values[high] != values[high] && v == v {
			high = i
		}
	}
	if low == high {
		return append(kept, from+low)
	}
	return append(kept, from+min(low, high), from+max(low, high))
}
