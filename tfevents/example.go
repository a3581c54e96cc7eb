package tfevents

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// NewExample returns a tf.train.Example, the usual content of TFRecord files
// with training data.
func NewExample(features map[string]*tfpb.Feature) *tfpb.Example {
	return &tfpb.Example{Features: &tfpb.Features{Feature: features}}
}

// BytesFeature returns a feature of byte strings.
func BytesFeature(v ...[]byte) *tfpb.Feature {
	return &tfpb.Feature{Kind: &tfpb.Feature_BytesList{BytesList: &tfpb.BytesList{Value: v}}}
}

// StringFeature returns a feature of byte strings.
func StringFeature(v ...string) *tfpb.Feature {
	list := make([][]byte, len(v))
	for i, s := range v {
		list[i] = []byte(s)
	}
	return BytesFeature(list...)
}

// FloatFeature returns a feature of floats.
func FloatFeature(v ...float32) *tfpb.Feature {
	return &tfpb.Feature{Kind: &tfpb.Feature_FloatList{FloatList: &tfpb.FloatList{Value: v}}}
}

// Int64Feature returns a feature of integers.
func Int64Feature(v ...int64) *tfpb.Feature {
	return &tfpb.Feature{Kind: &tfpb.Feature_Int64List{Int64List: &tfpb.Int64List{Value: v}}}
}

// MarshalExample encodes e with its features sorted by name: what TensorFlow
// calls the deterministic encoding.
func MarshalExample(e *tfpb.Example) []byte { return tfproto.Marshal(e) }

// UnmarshalExample decodes the data of a record.
func UnmarshalExample(data []byte) (*tfpb.Example, error) {
	e := new(tfpb.Example)
	if err := proto.Unmarshal(data, e); err != nil {
		return nil, fmt.Errorf("tfevents: record holds no Example: %w", err)
	}
	return e, nil
}
