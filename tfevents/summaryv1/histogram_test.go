package summaryv1

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
)

func TestBucketLimits(t *testing.T) {
	if len(bucketLimits) != 1551 {
		t.Errorf("%d limits, want 1551", len(bucketLimits))
	}
	if !slices.IsSorted(bucketLimits) {
		t.Error("limits are not sorted")
	}
	for i, v := range bucketLimits {
		if mirror := bucketLimits[len(bucketLimits)-1-i]; v != -mirror {
			t.Errorf("limit %d is %v, its mirror %v", i, v, mirror)
		}
	}
}

// TestHistogramGolden compares with what TensorFlow's histogram summary made
// of the tensors [[6 9] [6 9]], [[12 18] ...] and [[18 27] ...].
func TestHistogramGolden(t *testing.T) {
	var want []*tfpb.Summary_Value
	for _, e := range fixtureEvents(t, "tf1_graph_session/events.out.tfevents.1700000000.goldenhost") {
		for _, v := range e.GetSummary().GetValue() {
			if v.GetTag() == "y_hist" {
				want = append(want, v)
			}
		}
	}
	if len(want) != 3 {
		t.Fatalf("fixture holds %d histograms, want 3", len(want))
	}
	for i, w := range want {
		a, b := float32(6*(i+1)), float32(9*(i+1))
		got, err := HistogramOf("y_hist", []float32{a, b, a, b})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w, got, protocmp.Transform()); diff != "" {
			t.Errorf("histogram %d (-TensorFlow +got):\n%s", i, diff)
		}
	}
}

func TestHistogramBuckets(t *testing.T) {
	most := math.MaxFloat64
	for _, tc := range []struct {
		name   string
		values []float64
		limits []float64
		counts []float64
	}{
		{"empty", nil, []float64{most}, []float64{0}},
		{"zero", []float64{0}, []float64{0, 1e-12, most}, []float64{0, 1, 0}},
		{"below the least limit", []float64{-1e-13}, []float64{-1e-12, 0, most}, []float64{0, 1, 0}},
		{"a limit belongs to the next bucket", []float64{1e-12}, []float64{1e-12, 1e-12 * 1.1, most}, []float64{0, 1, 0}},
		{"largest", []float64{most}, []float64{bucketLimits[1549], most}, []float64{0, 1}},
		{"least", []float64{-most}, []float64{-most, bucketLimits[1], most}, []float64{0, 1, 0}},
		{"neighbours", []float64{1.05e-12, 1.15e-12}, []float64{1e-12, 1e-12 * 1.1, 1e-12 * 1.1 * 1.1, most}, []float64{0, 1, 1, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var h Histogram
			for _, v := range tc.values {
				if err := h.Add(v); err != nil {
					t.Fatal(err)
				}
			}
			p := h.Proto()
			// Constant folding must not be more exact than the addition was.
			if !slices.EqualFunc(p.GetBucketLimit(), tc.limits, func(a, b float64) bool { return math.Abs(a-b) <= 1e-15*math.Abs(a) }) {
				t.Errorf("limits %v, want %v", p.GetBucketLimit(), tc.limits)
			}
			if !slices.Equal(p.GetBucket(), tc.counts) {
				t.Errorf("counts %v, want %v", p.GetBucket(), tc.counts)
			}
			if got := p.GetNum(); got != float64(len(tc.values)) {
				t.Errorf("num %v, want %d", got, len(tc.values))
			}
		})
	}
}

func TestHistogramStatistics(t *testing.T) {
	var h Histogram
	for _, v := range []float64{3, -1, 2} {
		if err := h.Add(v); err != nil {
			t.Fatal(err)
		}
	}
	p := h.Proto()
	if p.GetMin() != -1 || p.GetMax() != 3 || p.GetNum() != 3 || p.GetSum() != 4 || p.GetSumSquares() != 14 {
		t.Errorf("got %v", p)
	}
}

func TestHistogramRefusesNotFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		var h Histogram
		if err := h.Add(v); !errors.Is(err, summary.ErrNotFinite) {
			t.Errorf("Add(%v) = %v, want %v", v, err, summary.ErrNotFinite)
		}
		if h.Proto().GetNum() != 0 {
			t.Errorf("%v was counted", v)
		}
		if _, err := HistogramOf("weights", []float64{1, v}); !errors.Is(err, summary.ErrNotFinite) {
			t.Errorf("HistogramOf(%v): %v, want %v", v, err, summary.ErrNotFinite)
		}
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	for i := 0; b.Loop(); i++ {
		if err := h.Add(float64(i%1000) - 500); err != nil {
			b.Fatal(err)
		}
	}
}

func TestBuckets(t *testing.T) {
	sound := &tfpb.HistogramProto{Min: -1, Max: 2, Num: 4, Sum: 3, SumSquares: 5, BucketLimit: []float64{0, 1, 2}, Bucket: []float64{1, 1, 2}}
	want := fixtureEvents(t, "tensorboardX/events.out.tfevents.1700000500.goldenhost.sfx")[8].GetSummary().GetValue()[0]
	got, err := Buckets("hraw", sound)
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for name, h := range map[string]*tfpb.HistogramProto{
		"empty":          {},
		"unequal":        {BucketLimit: []float64{1, 2}, Bucket: []float64{1}},
		"not ascending":  {BucketLimit: []float64{2, 1}, Bucket: []float64{1, 1}},
		"limit is a NaN": {BucketLimit: []float64{1, math.NaN()}, Bucket: []float64{1, 1}},
	} {
		if _, err := Buckets(name, h); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// fixtureEvents returns the events of a file that another program wrote.
func fixtureEvents(t *testing.T, name string) []*tfpb.Event {
	t.Helper()
	return eventstest.Events(t, eventstest.ReadFile(t, "events/"+name))
}
