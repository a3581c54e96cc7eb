package tfevents

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// TestDataServerView compares with what the fixtures say that TensorBoard's
// data server shows: each tag's last step.
func TestDataServerView(t *testing.T) {
	d := readInMemory(os.DirFS(filepath.Join(eventstest.Dir(), "events/tf1_filewriter")),
		Run{Files: []string{"events.out.tfevents.1699999990.goldenhost"}}, &RunOptions{Purge: PurgeDataServer})
	got := map[string]int64{}
	for _, s := range d.Series {
		class := strings.ToLower(strings.TrimPrefix(s.Metadata.GetDataClass().String(), "DATA_CLASS_"))
		got[class+"|"+s.Plugin()+"|"+s.Tag] = s.Points[len(s.Points)-1].Step
	}
	want := map[string]int64{
		"blob_sequence|audio|a/audio": 5, "blob_sequence|graph_tagged_run_metadata|run/21": 11,
		"blob_sequence|graphs|__run_graph__": 0, "blob_sequence|images|i/image/0": 4,
		"scalar|scalars|": 9007199254740993, "scalar|scalars|inf": 1, "scalar|scalars|train/loss": 1, "scalar|scalars|train/loss/b": 1,
		"tensor|histograms|h": 3, "tensor|text|s": 13,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// modern gives scalars the form of TensorFlow 2.
func modern(events []*tfpb.Event) []*tfpb.Event {
	for _, e := range events {
		v := e.GetSummary().GetValue()[0]
		e.GetSummary().Value[0] = summary.Scalar(v.GetTag(), float64(v.GetSimpleValue()))
	}
	return events
}

func TestDataServerGivesUpWithoutTime(t *testing.T) {
	for name, events := range map[string][]*tfpb.Event{
		"scalars": append(losses(1, 1, 2), losses(2, 3, 3)...),
		"tensors": modern(append(losses(1, 1, 2), losses(2, 3, 3)...)),
	} {
		events[1].WallTime = math.NaN()
		fsys, run := fstest.MapFS{"tfevents": eventsFile(t, events...)}, Run{Files: []string{"tfevents"}}
		d := readInMemory(fsys, run, &RunOptions{Purge: PurgeDataServer})
		if got := ranges(d.Lookup("loss")); got != "1-1@1" || len(d.Damage) != 1 {
			t.Errorf("%s: %s, damage %v", name, got, d.Damage)
		}
		checkIndex(t, fsys, run)
	}
}

// TestDataServerKeeps lists what TensorBoard's data server serves, and what it
// skips, as its /data/plugin pages answer.
func TestDataServerKeeps(t *testing.T) {
	text := func(plugin string, shape []int64, texts ...string) *tfpb.Summary_Value {
		v := summary.PluginTensor("t", plugin, nil, eventstest.Strings(eventstest.Shape(shape...)))
		for _, s := range texts {
			v.GetTensor().StringVal = append(v.GetTensor().StringVal, []byte(s))
		}
		return v
	}
	histo := func(limits, counts int) *tfpb.Summary_Value {
		h := &tfpb.HistogramProto{BucketLimit: make([]float64, limits), Bucket: make([]float64, counts)}
		return &tfpb.Summary_Value{Tag: "t", Value: &tfpb.Summary_Value_Histo{Histo: h}}
	}
	classed := func(class tfpb.DataClass, v *tfpb.Summary_Value) *tfpb.Summary_Value {
		v.Metadata = &tfpb.SummaryMetadata{DataClass: class, PluginData: &tfpb.SummaryMetadata_PluginData{PluginName: "own"}}
		return v
	}
	number := func(x *tfpb.TensorProto) *tfpb.Summary_Value {
		return &tfpb.Summary_Value{Tag: "t", Value: &tfpb.Summary_Value_Tensor{Tensor: x}}
	}
	image := &tfpb.Summary_Value{Tag: "t", Value: &tfpb.Summary_Value_Image{Image: new(tfpb.Summary_Image)}}
	for _, tc := range []struct {
		name   string
		values []*tfpb.Summary_Value // of steps 1, 2, ...
		want   string
	}{
		{"texts of any shape", []*tfpb.Summary_Value{text(summary.PluginText, nil, "a"), text(summary.PluginText, []int64{1, 1, 1}, "a")}, "1-2@0"},
		{"images in a row", []*tfpb.Summary_Value{text(summary.PluginImages, []int64{3}, "1", "1", "x"), text(summary.PluginImages, []int64{1, 3}, "1", "1", "x"), text(summary.PluginImages, nil, "x")}, "1-1@0"},
		{"clips with labels", []*tfpb.Summary_Value{text(summary.PluginAudio, []int64{1, 2}, "x", ""), text(summary.PluginAudio, []int64{1}, "x"), text(summary.PluginAudio, []int64{1, 1}, "x"), text(summary.PluginAudio, nil, "x")}, "1-2@0"},
		{"one model", []*tfpb.Summary_Value{text(summary.PluginKerasModel, nil, "x"), text(summary.PluginKerasModel, []int64{1, 1}, "x")}, "1-1@0"},
		{"histograms", []*tfpb.Summary_Value{histo(2, 2), histo(3, 2), summaryv1.Scalar("t", 1), image}, "1-1@0"},
		{"metadata alone", []*tfpb.Summary_Value{classed(tfpb.DataClass_DATA_CLASS_TENSOR, &tfpb.Summary_Value{Tag: "t"})}, "1-1@0"},
		{"old values in a class of tensors", []*tfpb.Summary_Value{classed(tfpb.DataClass_DATA_CLASS_TENSOR, summaryv1.Scalar("t", 1)), summaryv1.Scalar("t", 1)}, ""},
		{"numbers that are no scalars", []*tfpb.Summary_Value{
			classed(tfpb.DataClass_DATA_CLASS_SCALAR, summaryv1.Scalar("t", 1)),
			number(&tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: eventstest.Shape(1), FloatVal: []float32{1}}),
			number(&tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: eventstest.Shape(), DoubleVal: []float64{1}}),
			number(&tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: eventstest.Shape()}),
			image,
			number(&tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: eventstest.Shape(), FloatVal: []float32{1}}),
		}, "1-1@1 6-6@1"},
		{"no blobs", []*tfpb.Summary_Value{classed(tfpb.DataClass_DATA_CLASS_BLOB_SEQUENCE, summaryv1.Scalar("t", 1)), histo(1, 1)}, ""},
		{"of no class", []*tfpb.Summary_Value{classed(tfpb.DataClass_DATA_CLASS_UNKNOWN, number(&tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: eventstest.Shape()}))}, ""},
		{"one profile", []*tfpb.Summary_Value{text(summary.PluginRunMetadata, nil, "x")}, "1-1@0"},
		{"one graph of a run", []*tfpb.Summary_Value{text(summary.PluginRunMetadataGraph, nil, "x")}, "1-1@0"},
		{"old values in their class", []*tfpb.Summary_Value{classed(tfpb.DataClass_DATA_CLASS_SCALAR, summaryv1.Scalar("t", 1)), summaryv1.Scalar("t", 1)}, "1-2@1"},
	} {
		var events []*tfpb.Event
		for i, v := range tc.values {
			events = append(events, &tfpb.Event{WallTime: 1, Step: int64(i + 1), What: &tfpb.Event_Summary{Summary: summary.New(v)}})
		}
		fsys := fstest.MapFS{"tfevents": eventsFile(t, events...)}
		run, o := Run{Files: []string{"tfevents"}}, &RunOptions{Purge: PurgeDataServer}
		got := ""
		if s := readInMemory(fsys, run, o).Lookup("t"); s != nil {
			got = ranges(s)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if n, want := ReadRun(fsys, run, o).Lookup("t").Len(), len(readInMemory(fsys, run, o).Lookup("t").Points); n != want {
			t.Errorf("%s: %d points in the index, want %d", tc.name, n, want)
		}
	}
}

func TestDataServerPassesOverInfiniteTime(t *testing.T) {
	for _, sign := range []int{-1, 1} {
		events := append(losses(1, 1, 3), losses(2, 2, 2)...)
		events[3].WallTime = math.Inf(sign)
		fsys, run := fstest.MapFS{"tfevents": eventsFile(t, events...)}, Run{Files: []string{"tfevents"}}
		d := readInMemory(fsys, run, &RunOptions{Purge: PurgeDataServer})
		if got := ranges(d.Lookup("loss")); got != "1-3@1" || len(d.Damage) != 0 {
			t.Errorf("%s, damage %v", got, d.Damage)
		}
		checkIndex(t, fsys, run)
		modern(events)
		checkIndex(t, fstest.MapFS{"tfevents": eventsFile(t, events...)}, run)
	}
}

func TestPythonKeeps(t *testing.T) {
	named := func(plugin string) *tfpb.Summary_Value {
		v := summary.PluginTensor("t", plugin, nil, nil)
		v.Value = nil
		return v
	}
	for _, tc := range []struct {
		name   string
		values []*tfpb.Summary_Value
		want   int
	}{
		{"metadata alone", []*tfpb.Summary_Value{named(summary.PluginHistograms), summaryv1.Scalar("t", 1), named("")}, 1},
		{"hyperparameters", []*tfpb.Summary_Value{named(summary.PluginHParams), named("")}, 2},
	} {
		fsys := fstest.MapFS{"tfevents": eventsFile(t, &tfpb.Event{WallTime: 1, What: &tfpb.Event_Summary{Summary: summary.New(tc.values...)}})}
		run, o := Run{Files: []string{"tfevents"}}, &RunOptions{Purge: PurgePython}
		if n := len(readInMemory(fsys, run, o).Lookup("t").Points); n != tc.want {
			t.Errorf("%s: %d points, want %d", tc.name, n, tc.want)
		}
		if n := ReadRun(fsys, run, o).Lookup("t").Len(); n != tc.want {
			t.Errorf("%s: %d points in the index, want %d", tc.name, n, tc.want)
		}
	}
}
