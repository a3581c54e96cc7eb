package summaryv1

import (
	"fmt"
	"math"
	"slices"
	"sort"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// Histogram counts values in TensorFlow's buckets: 1551 of them, each a tenth
// wider than its neighbour towards zero. The zero Histogram is empty.
type Histogram struct {
	min, max, num   float64
	sum, sumSquares float64
	buckets         []float64 // counts, as in the message
}

// bucketLimits holds the upper limits, which do not belong to their buckets.
var bucketLimits = func() []float64 {
	var positive []float64
	for v := 1e-12; v < 1e20; v *= 1.1 {
		positive = append(positive, v)
	}
	positive = append(positive, math.MaxFloat64)
	var limits []float64
	for _, v := range slices.Backward(positive) {
		limits = append(limits, -v)
	}
	return append(append(limits, 0), positive...)
}()

// Add counts v. NaN and infinities are refused with ErrNotFinite, as
// TensorFlow's histogram summary refuses them.
func (h *Histogram) Add(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%w: %v cannot be counted in a histogram", summary.ErrNotFinite, v)
	}
	if h.buckets == nil {
		h.buckets = make([]float64, len(bucketLimits))
		h.min, h.max = math.MaxFloat64, -math.MaxFloat64
	}
	h.buckets[bucket(v)]++
	h.min = min(h.min, v)
	h.max = max(h.max, v)
	h.num++
	h.sum += v
	h.sumSquares += float64(v * v) // rounded before it is added, on every machine
	return nil
}

// bucket returns the index of the first limit above v.
func bucket(v float64) int {
	i := sort.Search(len(bucketLimits), func(i int) bool { return bucketLimits[i] > v })
	return min(i, len(bucketLimits)-1) // the largest double has no limit above it
}

// Proto returns the message that events carry. Buckets without values are
// merged with their empty neighbours.
func (h *Histogram) Proto() *tfpb.HistogramProto {
	p := &tfpb.HistogramProto{Min: h.min, Max: h.max, Num: h.num, Sum: h.sum, SumSquares: h.sumSquares}
	if h.buckets == nil {
		p.Min, p.Max = math.MaxFloat64, -math.MaxFloat64
		p.BucketLimit, p.Bucket = []float64{math.MaxFloat64}, []float64{0}
		return p
	}
	for i, n := range h.buckets {
		if n == 0 && i+1 < len(h.buckets) && h.buckets[i+1] == 0 {
			continue
		}
		p.BucketLimit = append(p.BucketLimit, bucketLimits[i])
		p.Bucket = append(p.Bucket, n)
	}
	return p
}

// Value returns the histogram in the style of TensorFlow 1.
func (h *Histogram) Value(tag string) *tfpb.Summary_Value {
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Histo{Histo: h.Proto()}}
}

// HistogramOf returns the histogram of values in the style of TensorFlow 1.
// NaN and infinities are refused with ErrNotFinite.
func HistogramOf[T summary.Number](tag string, values []T) (*tfpb.Summary_Value, error) {
	var h Histogram
	for i, v := range values {
		if err := h.Add(float64(v)); err != nil {
			return nil, fmt.Errorf("histogram %q, element %d: %w", tag, i, err)
		}
	}
	return h.Value(tag), nil
}

// Buckets returns a histogram of values that were counted elsewhere, in the
// style of TensorFlow 1. Limits are the upper bounds of the buckets,
// ascending.
func Buckets(tag string, h *tfpb.HistogramProto) (*tfpb.Summary_Value, error) {
	limits, counts := h.GetBucketLimit(), h.GetBucket()
	if len(limits) != len(counts) || len(limits) == 0 {
		return nil, fmt.Errorf("tfevents: histogram %q: %d limits for %d buckets", tag, len(limits), len(counts))
	}
	for i := 1; i < len(limits); i++ {
		if !(limits[i-1] <= limits[i]) {
			return nil, fmt.Errorf("tfevents: histogram %q: limit %v after %v", tag, limits[i], limits[i-1])
		}
	}
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_Histo{Histo: h}}, nil
}
