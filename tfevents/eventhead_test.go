package tfevents

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// TestHeadScanner reads the heads of events of every kind, one scanner after the other.
func TestHeadScanner(t *testing.T) {
	var h HeadScanner
	for _, tc := range []struct {
		e    *tfpb.Event
		want EventHead
	}{
		{&tfpb.Event{WallTime: 1, What: &tfpb.Event_FileVersion{FileVersion: "brain.Event:2"}, SourceMetadata: &tfpb.SourceMetadata{Writer: "w"}},
			EventHead{WallTime: 1, Kind: "file_version", Version: "brain.Event:2", Writer: "w"}},
		{&tfpb.Event{WallTime: 2, Step: 3, What: &tfpb.Event_Summary{Summary: summary.New(summaryv1.Scalar("loss", 1))}},
			EventHead{WallTime: 2, Step: 3, Kind: "summary"}},
		{&tfpb.Event{Step: 4, What: &tfpb.Event_Summary{Summary: summary.New(summary.Text("t", "text"))}}, EventHead{Step: 4, Kind: "summary"}},
		{&tfpb.Event{Step: 5, What: &tfpb.Event_SessionLog{SessionLog: &tfpb.SessionLog{Status: tfpb.SessionLog_CHECKPOINT}}},
			EventHead{Step: 5, Kind: "session_log", Session: tfpb.SessionLog_CHECKPOINT}},
		{&tfpb.Event{Step: -6, What: &tfpb.Event_GraphDef{GraphDef: []byte("g")}}, EventHead{Step: -6, Kind: "graph_def"}},
		{&tfpb.Event{WallTime: 7}, EventHead{WallTime: 7, Kind: "empty"}},
	} {
		data, err := proto.Marshal(tc.e)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Scan(data); got != tc.want || err != nil {
			t.Errorf("%v: got %+v, %v; want %+v", tc.e, got, err, tc.want)
		}
	}
	got, err := h.Scan([]byte{0x0a})
	if err == nil {
		t.Errorf("half an event: %+v and no error", got)
	}
	var placed *tfrecord.CorruptError
	if errors.As(err, &placed) {
		t.Errorf("the error names a place, which only the caller knows: %v", err)
	}
}
