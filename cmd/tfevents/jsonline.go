package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// rawKey is a member of a line that is not a field of the Event message: the
// record's own bytes, where the message alone would not give them back. If it is
// there, the other members are for the eye only.
const rawKey = "_raw"

// runKey is the member that names the run of an event, where several are
// printed together. It is not part of the record.
const runKey = "_run"

// withRun adds the name of a run to a line.
func withRun(line []byte, run string) []byte {
	if run == "." {
		return line
	}
	name, err := json.Marshal(run)
	if err != nil { // of a string, none
		return line
	}
	head := append([]byte(`{"`+runKey+`":`), name...)
	if len(line) > len("{}") {
		head = append(head, ',')
	}
	return append(head, line[1:]...)
}

type rawLine struct {
	Raw []byte `json:"_raw"`
}

// jsonLine returns a record as one line of JSON from which recordOf makes the
// same bytes again.
func jsonLine(data []byte) ([]byte, error) {
	e := new(tfpb.Event)
	if err := proto.Unmarshal(data, e); err != nil {
		return json.Marshal(rawLine{data})
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(e)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil { // protojson varies its blanks
		return nil, err
	}
	if again, err := recordOf(line.Bytes()); err == nil && bytes.Equal(again, data) {
		return line.Bytes(), nil
	}
	raw, err := json.Marshal(rawLine{data})
	if err != nil {
		return nil, err
	}
	line.Truncate(line.Len() - 1) // the closing brace
	if line.Len() > 1 {
		line.WriteByte(',')
	}
	line.Write(raw[1:])
	return line.Bytes(), nil
}

// recordOf returns the record that a line of JSON describes.
func recordOf(line []byte) ([]byte, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, err
	}
	if _, ok := members[runKey]; ok {
		delete(members, runKey)
		var err error
		if line, err = json.Marshal(members); err != nil {
			return nil, err
		}
	}
	if raw, ok := members[rawKey]; ok {
		var data []byte
		if err := json.Unmarshal(raw, &data); err != nil {
			return nil, fmt.Errorf("%s: %w", rawKey, err)
		}
		return data, nil
	}
	if members == nil {
		return nil, errors.New("null is not an event")
	}
	e := new(tfpb.Event)
	if err := protojson.Unmarshal(line, e); err != nil {
		return nil, err
	}
	return tfproto.Marshal(e), nil
}
