// Package tfproto writes and reads protocol messages the way TensorFlow's C++
// and Python do, where Go's own encoders choose another of the legal forms.
//
// Binary ([Marshal]): Go's proto.Marshal puts the members of a oneof after
// all ordinary fields; TensorFlow's files have every field in the order of its
// number. The difference reaches the first record of every events file:
//
//	TensorFlow  Event{wall_time(1), step(2), file_version(3), source_metadata(10)}
//	Go          Event{wall_time(1), step(2), source_metadata(10), file_version(3)}
//
// Map entries are written in the order in which Python's protobuf writes them
// when asked for a deterministic encoding, as it is for the files that must be
// reproducible (.meta, saved_model.pb). That order is not the order of the keys:
//
//	strings  by their bytes, but a string before its own beginnings: "Tidx", "T", "_class"
//	numbers  from the greatest to the least, those below zero first
//
// Text ([MarshalText], [UnmarshalText]): what graph.pbtxt, checkpoint and
// projector_config.pbtxt hold, byte for byte as Python's text_format writes it.
// Go's prototext varies its white space on purpose and cannot be used for
// files that are compared.
package tfproto

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Marshal returns the encoding of m with its fields in the order of their
// numbers and map entries in Python's order. Unknown fields follow the known
// ones. Marshalling a message twice gives the same bytes.
//
// Marshal writes what it is given: it does not check that strings are UTF-8 or
// that required fields are set. Extensions, which no message of TensorFlow's
// has, are not put in order.
func Marshal(m proto.Message) []byte { return Append(nil, m) }

// Append appends the encoding of m to b. See [Marshal].
//
// Graphs are written by functions of their own, see graph.go. For other messages the
// generated encoder does the work; where the type has fields that it puts elsewhere
// than TensorFlow does, they are moved afterwards.
func Append(b []byte, m proto.Message) []byte {
	switch m := m.(type) {
	case *tfpb.MetaGraphDef:
		return appendMetaGraph(b, m)
	case *tfpb.GraphDef:
		return appendGraph(b, m)
	}
	return appendGenerated(b, m)
}

// Field returns the encoding of the message in a field of an encoded message,
// nil if it has no such field. It shares memory with encoded.
func Field(encoded []byte, number protowire.Number) []byte {
	for len(encoded) > 0 {
		n, wire, tag := protowire.ConsumeTag(encoded)
		if tag < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(n, wire, encoded[tag:])
		if size < 0 {
			return nil
		}
		if n == number && wire == protowire.BytesType {
			body, _ := protowire.ConsumeBytes(encoded[tag:])
			return body
		}
		encoded = encoded[tag+size:]
	}
	return nil
}
