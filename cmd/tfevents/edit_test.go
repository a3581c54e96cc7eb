package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

func TestThinning(t *testing.T) {
	spikes := make([]float64, 100)
	spikes[37], spikes[71] = 5, -5
	spikes[50] = math.NaN()
	for _, tc := range []struct {
		name        string
		every, most int
		values      []float64
		want        []int
	}{
		{"every", 4, 0, make([]float64, 10), []int{0, 4, 8, 9}},
		{"every, more than there are", 40, 0, make([]float64, 2), []int{0, 1}},
		{"one", 0, 1, make([]float64, 9), []int{8}},
		{"two", 0, 2, make([]float64, 9), []int{0, 8}},
		{"enough", 0, 3, make([]float64, 3), []int{0, 1, 2}},
		{"extremes", 0, 4, spikes, []int{0, 37, 71, 99}},
		{"extremes of stretches", 0, 6, spikes, []int{0, 1, 37, 51, 71, 99}},
	} {
		thin := &thinner{every: tc.every, most: tc.most, tags: make(map[string]*thinned)}
		for _, v := range tc.values {
			thin.add("tag", v, true)
		}
		var got []int
		for i := range tc.values {
			if thin.keeps("tag") {
				got = append(got, i)
			}
		}
		if tc.name == "extremes of stretches" {
			// Where all are equal, any may stand for the lowest.
			if len(got) > tc.most || !thin.tags["tag"].kept[37] || !thin.tags["tag"].kept[71] {
				t.Errorf("%s: kept %v", tc.name, got)
			}
		} else if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestCutMetadata cuts away the only value that says what its tag is.
func TestCutMetadata(t *testing.T) {
	e := &edits{first: 2, last: math.MaxInt64}
	r := e.newRun()
	var left []*tfpb.Summary_Value
	for step := range int64(5) {
		v := summary.Scalar("loss", float64(step))
		if step > 0 {
			v.Metadata = nil
		}
		event := &tfpb.Event{Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}}
		data, keep, err := r.apply(tfproto.Marshal(event))
		if err != nil {
			t.Fatal(err)
		}
		if keep {
			got := new(tfpb.Event)
			if err := proto.Unmarshal(data, got); err != nil {
				t.Fatal(err)
			}
			left = append(left, got.GetSummary().Value...)
		}
	}
	if len(left) != 3 || left[0].GetMetadata().GetPluginData().GetPluginName() != summary.PluginScalars || left[1].Metadata != nil {
		t.Errorf("left are %v", left)
	}
}

func TestRescaleKeepsForm(t *testing.T) {
	double := summary.Scalar("loss", 0)
	double.Value = &tfpb.Summary_Value_Tensor{Tensor: &tfpb.TensorProto{
		Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: &tfpb.TensorShapeProto{}, DoubleVal: []float64{0.1},
	}}
	for _, v := range []*tfpb.Summary_Value{summaryv1.Scalar("loss", 0.5), summary.Scalar("loss", 0.5), double} {
		before, _ := decode.Scalar(v)
		dtype := v.GetTensor().GetDtype()
		scale, err := parseNumbers("scale", []string{"lo.*=3"})
		if err != nil {
			t.Fatal(err)
		}
		r := (&edits{scales: scale}).newRun()
		r.isStep(v)
		if !r.rescale(v) {
			t.Fatalf("%v is not changed", v)
		}
		if x, ok := decode.Scalar(v); !ok || x != before*3 || v.GetTensor().GetDtype() != dtype {
			t.Errorf("%v, want 3 times %v", v, before)
		}
	}
}
