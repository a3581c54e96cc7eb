package tfevents

import (
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// EventHead is an event without its values.
type EventHead struct {
	WallTime float64
	Step     int64
	Kind     string // what it holds, by the name of the field; "empty" if nothing
	Version  string // the file_version, "" if the event holds something else
	Writer   string // next to a file_version, the program that wrote the file
	Session  tfpb.SessionLog_SessionStatus
}

// HeadScanner reads the heads of events, in the usual forms without decoding
// their values. The zero value is ready. It is not safe for concurrent use.
type HeadScanner struct{ scan eventScan }

// Scan returns the head of an encoded event. It fails if decoding the whole
// event would.
func (h *HeadScanner) Scan(data []byte) (EventHead, error) {
	if h.scan.parse(data) {
		return EventHead{WallTime: h.scan.wallTime, Step: h.scan.step, Kind: "summary"}, nil
	}
	e := new(tfpb.Event)
	if err := proto.Unmarshal(data, e); err != nil {
		return EventHead{}, err // the caller knows where the record is
	}
	return EventHead{
		WallTime: e.GetWallTime(), Step: e.GetStep(), Kind: kindOf(e), Version: e.GetFileVersion(),
		Writer: e.GetSourceMetadata().GetWriter(), Session: e.GetSessionLog().GetStatus(),
	}, nil
}

func kindOf(e *tfpb.Event) string {
	m := e.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("what")); f != nil {
		return string(f.Name())
	}
	return "empty"
}
