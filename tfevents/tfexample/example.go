// Package tfexample makes and reads tf.train.Example messages, the usual content
// of TFRecord files with training data.
//
//	e := tfexample.New(map[string]*tfpb.Feature{"label": tfexample.Int64s(3)})
//	err := w.Write(tfexample.Marshal(e))
//
// The functions have no state.
package tfexample

import (
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// New returns a tf.train.Example, the usual content of TFRecord files
// with training data.
func New(features map[string]*tfpb.Feature) *tfpb.Example {
	return &tfpb.Example{Features: &tfpb.Features{Feature: features}}
}

// Bytes returns a feature of byte strings.
func Bytes(v ...[]byte) *tfpb.Feature {
	return &tfpb.Feature{Kind: &tfpb.Feature_BytesList{BytesList: &tfpb.BytesList{Value: v}}}
}

// Strings returns a feature of byte strings.
func Strings(v ...string) *tfpb.Feature {
	list := make([][]byte, len(v))
	for i, s := range v {
		list[i] = []byte(s)
	}
	return Bytes(list...)
}

// Floats returns a feature of floats.
func Floats(v ...float32) *tfpb.Feature {
	return &tfpb.Feature{Kind: &tfpb.Feature_FloatList{FloatList: &tfpb.FloatList{Value: v}}}
}

// Int64s returns a feature of integers.
func Int64s(v ...int64) *tfpb.Feature {
	return &tfpb.Feature{Kind: &tfpb.Feature_Int64List{Int64List: &tfpb.Int64List{Value: v}}}
}

// Marshal encodes e with its features sorted by name, TensorFlow's
// deterministic encoding.
func Marshal(e *tfpb.Example) []byte { return tfproto.Marshal(e) }

// ErrSequenceExample is the error for a tf.train.SequenceExample: as an Example it would have its
// context alone, without its feature lists.
var ErrSequenceExample = errors.New("tfevents: record is a SequenceExample, not an Example")

// Unmarshal decodes the data of a record.
func Unmarshal(data []byte) (*tfpb.Example, error) {
	e := new(tfpb.Example)
	if err := proto.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("tfevents: record is not an Example: %w", err)
	}
	if isSequence(e.ProtoReflect().GetUnknown()) {
		return nil, ErrSequenceExample
	}
	return e, nil
}

// isSequence reports whether fields that an Example does not have are those of a SequenceExample.
func isSequence(fields []byte) bool {
	const featureLists = 2
	number, kind, n := protowire.ConsumeTag(fields)
	return n > 0 && number == featureLists && kind == protowire.BytesType
}
