package tfevents

import (
	"math"
	"testing"
	"testing/fstest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// TestFactsOfRun has what an index says of a run as a whole: when it began, and whether it
// has ended.
func TestFactsOfRun(t *testing.T) {
	stop := &tfpb.Event{WallTime: 9, What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_STOP}}}
	start := startAt(1)
	start.WallTime = 8
	version := &tfpb.Event{WallTime: 4, What: &tfpb.Event_FileVersion{FileVersion: fileVersion}}
	value, tensor := losses(1, 1, 1)[0], modern(losses(1, 1, 1))[0]
	value.WallTime, tensor.WallTime = 6, 6
	never := losses(1, 1, 1)[0]
	never.WallTime = math.Inf(-1)
	for _, tc := range []struct {
		name    string
		events  []*tfpb.Event
		began   float64
		stopped bool
	}{
		{"nothing", nil, math.Inf(1), false},
		{"values", []*tfpb.Event{value}, 6, false},
		{"values and a stop", []*tfpb.Event{value, stop}, 6, true},
		{"a stop and a version", []*tfpb.Event{stop, version}, 4, true},
		{"a stop and values", []*tfpb.Event{stop, value}, 6, false},
		{"a stop and a value of TensorFlow 2", []*tfpb.Event{stop, tensor}, 6, false},
		{"a stop and a start", []*tfpb.Event{stop, start}, 8, false},
		{"one at an infinite time", []*tfpb.Event{never, value}, 6, false},
		{"an early one in the middle", []*tfpb.Event{value, version, start}, 4, false},
	} {
		var file []byte
		for _, e := range tc.events {
			file = appendEventRecord(file, e)
		}
		x := ReadRun(fstest.MapFS{"e.tfevents": {Data: file}}, Run{Files: []string{"e.tfevents"}}, nil)
		if x.Began != tc.began || x.Stopped != tc.stopped || x.Events != len(tc.events) {
			t.Errorf("%s: %d events, began %v, stopped %v", tc.name, x.Events, x.Began, x.Stopped)
		}
	}
}

// TestMaxBlobs has sequences of images: of those in a row at one step the last counts.
func TestMaxBlobs(t *testing.T) {
	images := func(step int64, n int) *tfpb.Event {
		v := summary.PluginTensor("i", summary.PluginImages, nil, eventstest.Strings(eventstest.Shape(int64(n)), make([][]byte, n)...))
		return &tfpb.Event{WallTime: 1, Step: step, What: &tfpb.Event_Summary{Summary: summary.New(v)}}
	}
	imageOf1 := &tfpb.Event{WallTime: 1, What: &tfpb.Event_Summary{Summary: summary.New(imageV1("i", 1, 1))}}
	for _, tc := range []struct {
		events []*tfpb.Event
		want   int
	}{
		{[]*tfpb.Event{images(0, 3)}, 3},
		{[]*tfpb.Event{images(0, 1)}, 1},
		{[]*tfpb.Event{images(0, 3), {WallTime: 1, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar("i", 1))}}}, 3},
		{[]*tfpb.Event{imageOf1, imageOf1}, 3}, // its width and height are blobs, too
		{[]*tfpb.Event{images(0, 3), images(1, 2)}, 3},
		{[]*tfpb.Event{images(0, 3), images(1, 5), images(2, 2)}, 5},
		{[]*tfpb.Event{images(0, 7), images(0, 3)}, 3},
		{[]*tfpb.Event{images(0, 3), images(1, 7), images(1, 2), images(2, 4)}, 4},
	} {
		x := ReadRun(fstest.MapFS{"e.tfevents": eventsFile(t, tc.events...)}, Run{Files: []string{"e.tfevents"}}, nil)
		if got := x.Lookup("i").MaxBlobs(); got != tc.want {
			t.Errorf("%d blobs, want %d", got, tc.want)
		}
	}
}
