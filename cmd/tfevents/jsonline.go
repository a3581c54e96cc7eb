package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trainerd/trainerd/internal/jsonfloat"
	"github.com/trainerd/trainerd/internal/lazyregexp"
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
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil { // protojson varies its blanks
		return nil, err
	}
	line := signedZeros(compact.Bytes())
	if again, err := recordOf(line); err == nil && bytes.Equal(again, data) {
		return line, nil
	}
	raw, err := json.Marshal(rawLine{data})
	if err != nil {
		return nil, err
	}
	line = line[:len(line)-1] // without the closing brace
	if len(line) > 1 {
		line = append(line, ',')
	}
	return append(line, raw[1:]...), nil
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
	if bytes.Contains(line, []byte("NaN")) {
		plainNaNs(e.ProtoReflect())
	}
	return tfproto.Marshal(e), nil
}

// stringOrZero matches the strings of a line, to pass over them, and the numbers -0.
var stringOrZero = lazyregexp.New(`"(?:[^"\\]|\\.)*"|-0[,\]}]`)

// signedZeros returns a line of compact JSON whose zeros keep their signs in every reader.
func signedZeros(line []byte) []byte {
	lacks := func(end string) bool { return !bytes.Contains(line, []byte("-0"+end)) }
	if lacks(",") && lacks("]") && lacks("}") { // as nearly always: the expression is slow
		return line
	}
	return stringOrZero().ReplaceAllFunc(line, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return append([]byte(jsonfloat.NegativeZero), found[len("-0"):]...)
	})
}

// plainNaN is the NaN of C++ and NumPy; math.NaN has one bit more.
var plainNaN = math.Float64frombits(0x7ff8 << 48)

// plainNaNs makes the doubles of a message that are NaN those that TensorFlow would write.
func plainNaNs(m protoreflect.Message) {
	nan := protoreflect.ValueOfFloat64(plainNaN)
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch double := f.Kind() == protoreflect.DoubleKind; {
		case f.IsList() && (double || f.Message() != nil):
			for i := range v.List().Len() {
				switch one := v.List().Get(i); {
				case !double:
					plainNaNs(one.Message())
				case math.IsNaN(one.Float()):
					v.List().Set(i, nan)
				}
			}
		case double && math.IsNaN(v.Float()):
			m.Set(f, nan)
		case f.Message() != nil:
			plainNaNs(v.Message())
		}
		return true
	})
}
