package tfevents

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
)

// beginFile is an events file without a START, of points "step value" of one tag.
func beginFile(t *testing.T, tag string, points ...string) *fstest.MapFile {
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
		e := &tfpb.Event{WallTime: 1, Step: step, What: &tfpb.Event_Summary{Summary: &tfpb.Summary{Value: []*tfpb.Summary_Value{v}}}}
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
		name string
		then []string
		want []string
	}{
		{"resumed", []string{"0 -1", "47 0.05"}, []string{"0 -1", "15 0.2", "31 0.1", "47 0.05"}},
		{"resumed, nothing measured yet", []string{"0 -1"}, []string{"0 -1", "15 0.2", "31 0.1"}},
		{"begun again", []string{"0 -1", "15 0.3"}, []string{"0 -1", "15 0.3"}},
		{"begun again with another value", []string{"0 -2"}, []string{"0 -2"}},
		{"resumed at a later step", []string{"15 0.2"}, []string{"0 -1", "15 0.2"}},
	} {
		fsys := fstest.MapFS{
			"events.out.tfevents.1.h": beginFile(t, "hp_metric", before...),
			"events.out.tfevents.2.h": beginFile(t, "hp_metric", c.then...),
		}
		runs, err := FindRuns(fsys, ".")
		if err != nil {
			t.Fatal(err)
		}
		x := ReadRun(fsys, runs[0], nil)
		if got := pointTexts(x); !slices.Equal(got, c.want) || x.Purged != len(before)+len(c.then)-len(c.want) {
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
