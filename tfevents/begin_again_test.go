package tfevents

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
)

// beginFile is an events file without a START, of points "step value" of one tag at a time.
func beginFile(t *testing.T, at float64, tag string, points ...string) *fstest.MapFile {
	t.Helper()
	var b bytes.Buffer
	w := NewEventsWriter(&b, nil)
	for _, p := range points {
		var step int64
		var value float32
		if _, err := fmt.Sscan(p, &step, &value); err != nil {
			t.Fatal(err)
		}
		v := &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: value}}
		e := &tfpb.Event{WallTime: at, Step: step, What: &tfpb.Event_Summary{Summary: &tfpb.Summary{Value: []*tfpb.Summary_Value{v}}}}
		if err := w.WriteEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	return &fstest.MapFile{Data: b.Bytes()}
}

// Lightning writes hp_metric -1 at step 0 whenever it starts, also from a checkpoint: what
// was measured before that stays. A training that did begin again overtakes it with its
// next point.
func TestValueThatEachStartRepeats(t *testing.T) {
	before := []string{"0 -1", "15 0.2", "31 0.1"}
	for _, c := range []struct {
		name   string
		before []string
		then   []string
		want   []string
	}{
		{"resumed", before, []string{"0 -1", "47 0.05"}, []string{"0 -1", "15 0.2", "31 0.1", "47 0.05"}},
		{"resumed, nothing measured yet", before, []string{"0 -1"}, []string{"0 -1", "15 0.2", "31 0.1"}},
		{"begun again", before, []string{"0 -1", "15 0.3"}, []string{"0 -1", "15 0.3"}},
		{"begun again with another value", before, []string{"0 -2"}, []string{"0 -2"}},
		{"resumed at a later step", before, []string{"15 0.2"}, []string{"0 -1", "15 0.2"}},
		{"resumed after one measurement", before[:2], []string{"0 -1"}, before[:2]},
		{"its first value at another step", before, []string{"3 -1"}, []string{"0 -1", "3 -1"}},
		{"its first value after another", before, []string{"5 0.4", "0 -1"}, []string{"5 0.4", "0 -1"}},
	} {
		fsys := fstest.MapFS{
			"events.out.tfevents.1.h": beginFile(t, 1, "hp_metric", c.before...),
			"events.out.tfevents.2.h": beginFile(t, 2, "hp_metric", c.then...),
		}
		runs, err := FindRuns(fsys, ".")
		if err != nil {
			t.Fatal(err)
		}
		x := ReadRun(fsys, runs[0], nil)
		if got := pointTexts(x); !slices.Equal(got, c.want) || x.Purged != len(c.before)+len(c.then)-len(c.want) {
			t.Errorf("%s: got %v, %d dropped; want %v", c.name, got, x.Purged, c.want)
		}
		var merged bytes.Buffer
		if _, err := MergeRun(&merged, fsys, runs[0], nil); err != nil {
			t.Fatal(err)
		}
		one := fstest.MapFS{"events.out.tfevents.1.m": {Data: merged.Bytes()}}
		if got := pointTexts(ReadRun(one, Run{Name: ".", Files: []string{"events.out.tfevents.1.m"}}, nil)); !slices.Equal(got, c.want) {
			t.Errorf("%s: merged, got %v; want %v", c.name, got, c.want)
		}
	}
}

func pointTexts(x *RunData) (points []string) {
	for p, value := range x.Scalars(x.Series[0]) {
		points = append(points, fmt.Sprint(p.Step, " ", float32(value)))
	}
	return points
}

// A tag of one value, which each start writes, has it from the newest one.
func TestOnlyValueIsTheNewest(t *testing.T) {
	fsys := fstest.MapFS{
		"events.out.tfevents.1.h": beginFile(t, 1, "hp_metric", "0 -1"),
		"events.out.tfevents.2.h": beginFile(t, 2, "hp_metric", "0 -1"),
	}
	runs, err := FindRuns(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	x := ReadRun(fsys, runs[0], nil)
	for p := range x.Scalars(x.Series[0]) {
		if p.WallTime != 2 || x.Purged != 1 {
			t.Errorf("it is of time %v, and %d are dropped", p.WallTime, x.Purged)
		}
	}
}

// A value that names the plugin, or the class of the data, says what a series shows: a later one
// that says otherwise does not count.
func TestFirstDescriptionCounts(t *testing.T) {
	plugin := func(name string) *tfpb.SummaryMetadata {
		return &tfpb.SummaryMetadata{PluginData: &tfpb.SummaryMetadata_PluginData{PluginName: name}}
	}
	for want, first := range map[string]*tfpb.SummaryMetadata{"a": plugin("a"), "": {DataClass: tfpb.DataClass_DATA_CLASS_TENSOR}} {
		var b bytes.Buffer
		w := NewEventsWriter(&b, nil)
		for step, m := range []*tfpb.SummaryMetadata{first, plugin("b")} {
			tensor := &tfpb.Summary_Value_Tensor{Tensor: &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, FloatVal: []float32{1}}}
			v := &tfpb.Summary_Value{Tag: "x", Metadata: m, Value: tensor}
			e := &tfpb.Event{WallTime: 1, Step: int64(step), What: &tfpb.Event_Summary{Summary: &tfpb.Summary{Value: []*tfpb.Summary_Value{v}}}}
			if err := w.WriteEvent(e); err != nil {
				t.Fatal(err)
			}
		}
		fsys := fstest.MapFS{"events.out.tfevents.1.h": {Data: b.Bytes()}}
		x := ReadRun(fsys, Run{Name: ".", Files: []string{"events.out.tfevents.1.h"}}, nil)
		if got := x.Series[0].Plugin(); got != want {
			t.Errorf("the plugin is %q, want %q", got, want)
		}
	}
}
