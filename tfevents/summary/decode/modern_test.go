package decode

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
)

func TestModernHistogram(t *testing.T) {
	most := math.MaxFloat64
	for _, tc := range []struct {
		name string
		h    *tfpb.HistogramProto
		want []summary.Bucket
	}{
		{"empty", &tfpb.HistogramProto{BucketLimit: []float64{most}, Bucket: []float64{0}}, nil},
		{"outer ones are empty", &tfpb.HistogramProto{Min: 1, Max: 5, BucketLimit: []float64{0, 2, 4, 6, most}, Bucket: []float64{0, 1, 0, 2, 0}},
			[]summary.Bucket{{Left: 1, Right: 2, Count: 1}, {Left: 2, Right: 4, Count: 0}, {Left: 4, Right: 5, Count: 2}}},
		{"one bucket", &tfpb.HistogramProto{Min: 1, Max: 5, BucketLimit: []float64{most}, Bucket: []float64{3}}, []summary.Bucket{{Left: 1, Right: 5, Count: 3}}},
		{"limits missing", &tfpb.HistogramProto{Min: 1, Max: 5, BucketLimit: []float64{9}, Bucket: []float64{3, 4}}, []summary.Bucket{{Left: 1, Right: 5, Count: 3}}},
		{"NaN counts", &tfpb.HistogramProto{BucketLimit: []float64{9}, Bucket: []float64{math.NaN()}}, nil},
	} {
		if got := modernBuckets(tc.h); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestModernKeepsTheOriginal converts every fixture and looks that the events
// are what they were.
func TestModernKeepsTheOriginal(t *testing.T) {
	for _, name := range eventstest.EventsFiles(t) {
		if strings.Contains(name, "damaged") {
			continue
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range eventstest.Events(t, file) {
			before := tfproto.Marshal(e)
			for _, v := range Modern(e) {
				if v.GetTensor() == nil && v.GetTag() != "_hparams_/experiment" && v.GetMetadata().GetPluginData().GetPluginName() != summary.PluginHParams {
					t.Errorf("%s: %q has no tensor", name, v.GetTag())
				}
			}
			if !bytes.Equal(tfproto.Marshal(e), before) {
				t.Errorf("%s: event was changed", name)
			}
		}
	}
}

func TestFixtureMetadataClasses(t *testing.T) {
	file := eventstest.ReadFile(t, "events/tensorboardX/events.out.tfevents.1700000500.goldenhost.sfx")
	var v *tfpb.Summary_Value
	for _, e := range eventstest.Events(t, file) {
		for _, m := range Modern(e) {
			if m.GetTag() == "newstyle" {
				v = m
			}
		}
	}
	want := &tfpb.SummaryMetadata{
		PluginData:  &tfpb.SummaryMetadata_PluginData{PluginName: summary.PluginScalars},
		DisplayName: "D", SummaryDescription: "S", DataClass: tfpb.DataClass_DATA_CLASS_SCALAR,
	}
	if diff := cmp.Diff(want, v.GetMetadata(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestScalar(t *testing.T) {
	content := func(d tfpb.DataType, b ...byte) *tfpb.TensorProto {
		return &tfpb.TensorProto{Dtype: d, TensorShape: eventstest.Shape(), TensorContent: b}
	}
	for _, tc := range []struct {
		name string
		t    *tfpb.TensorProto
		want float64
		ok   bool
	}{
		{"float", content(tfpb.DataType_DT_FLOAT, 0, 0, 0xc0, 0x3f), 1.5, true},
		{"double", content(tfpb.DataType_DT_DOUBLE, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f), 1.5, true},
		{"half", content(tfpb.DataType_DT_HALF, 0, 0xbe), -1.5, true},
		{"least half", content(tfpb.DataType_DT_HALF, 1, 0), math.Ldexp(1, -24), true},
		{"infinite half", content(tfpb.DataType_DT_HALF, 0, 0xfc), math.Inf(-1), true},
		{"bfloat16", content(tfpb.DataType_DT_BFLOAT16, 0xc0, 0x3f), 1.5, true},
		{"int8", content(tfpb.DataType_DT_INT8, 0xff), -1, true},
		{"uint8", content(tfpb.DataType_DT_UINT8, 0xff), 255, true},
		{"int16", content(tfpb.DataType_DT_INT16, 0xff, 0xff), -1, true},
		{"int32", content(tfpb.DataType_DT_INT32, 0xfe, 0xff, 0xff, 0xff), -2, true},
		{"int64", content(tfpb.DataType_DT_INT64, 7, 0, 0, 0, 0, 0, 0, 0), 7, true},
		{"half_val", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_HALF, HalfVal: []int32{0xbe00}}, -1.5, true},
		{"bool_val", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_BOOL, BoolVal: []bool{true}}, 1, true},
		{"int_val in a vector of one", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: eventstest.Shape(1, 1), IntVal: []int32{3}}, 3, true},
		{"two elements", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: eventstest.Shape(2), FloatVal: []float32{1}}, 0, false},
		{"wrong size", content(tfpb.DataType_DT_FLOAT, 0, 0), 0, false},
		{"string", content(tfpb.DataType_DT_STRING), 0, false},
		{"huge shape", &tfpb.TensorProto{TensorShape: eventstest.Shape(math.MaxInt64, math.MaxInt64), FloatVal: []float32{1}}, 0, false},
		{"negative shape", &tfpb.TensorProto{TensorShape: eventstest.Shape(-1), FloatVal: []float32{1}}, 0, false},
	} {
		if got, ok := Scalar(summary.Tensor("t", tc.t)); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %v, %v; want %v, %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
	if _, ok := Scalar(new(tfpb.Summary_Value)); ok {
		t.Error("a value without value is a scalar")
	}
}

func TestScalarMetadata(t *testing.T) {
	for _, tag := range []string{"loss", "", "a/b ü"} {
		v := &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: 3}}
		if diff := cmp.Diff(ModernValue(v).GetMetadata(), ScalarMetadata(tag), protocmp.Transform()); diff != "" {
			t.Errorf("tag %q: %s", tag, diff)
		}
	}
}
