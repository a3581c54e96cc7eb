package summary

import (
	"errors"
	"fmt"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

// defaultBuckets is the number of buckets of [Histogram].
const defaultBuckets = 30

// Bucket is one bucket of a histogram in the style of TensorFlow 2.
type Bucket struct {
	Left, Right, Count float64
}

// Histogram returns the histogram of values in the style of TensorFlow 2: a
// number of buckets (0 means 30) of equal width from the smallest to the
// largest value. NaN and infinities are refused with ErrNotFinite.
func Histogram[T Number](tag string, values []T, buckets int) (*tfpb.Summary_Value, error) {
	if buckets <= 0 {
		buckets = defaultBuckets
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, v := range values {
		x := float64(v)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("histogram %q, element %d: %w: %v", tag, i, ErrNotFinite, x)
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	if len(values) == 0 {
		return Buckets(tag, make([]Bucket, buckets)), nil
	}
	// Halved where the range is wider than a double can say.
	scale := 1.0
	if math.IsInf(hi-lo, 0) {
		scale = 0.5
	}
	counts := make([]float64, buckets)
	width := (scale*hi - scale*lo) / float64(buckets)
	for _, v := range values {
		i := buckets - 1
		if width > 0 {
			i = min(i, int(math.Floor((scale*float64(v)-scale*lo)/width)))
		}
		counts[i]++
	}
	edges := linspace(lo, hi, buckets)
	out := make([]Bucket, buckets)
	for i := range out {
		out[i] = Bucket{Left: edges[i], Right: edges[i+1], Count: counts[i]}
	}
	return Buckets(tag, out), nil
}

// linspace returns the n+1 edges of n intervals of equal width.
func linspace(lo, hi float64, n int) []float64 {
	edges := make([]float64, n+1)
	delta := (hi - lo) / float64(n)
	for i := range edges {
		edges[i] = lo + float64(delta*float64(i))
		if math.IsInf(delta, 0) {
			part := float64(i) / float64(n)
			edges[i] = lo*(1-part) + hi*part
		}
	}
	edges[n] = hi
	return edges
}

// Buckets returns a histogram of values that were counted elsewhere, in the
// style of TensorFlow 2. Buckets must be in ascending order.
func Buckets(tag string, buckets []Bucket) *tfpb.Summary_Value {
	rows := make([]float64, 0, 3*len(buckets))
	for _, b := range buckets {
		rows = append(rows, b.Left, b.Right, b.Count)
	}
	return PluginTensor(tag, PluginHistograms, nil, doubleTensor(shapeProto(int64(len(buckets)), 3), rows))
}

// ErrNotFinite says that a histogram was given NaN or an infinity, which
// belongs in none of its buckets.
var ErrNotFinite = errors.New("tfevents: value is not finite")

// Number is any type that histograms count.
type Number interface {
	~float32 | ~float64 | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}
