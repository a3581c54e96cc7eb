package tfexample

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestExample(t *testing.T) {
	e := New(map[string]*tfpb.Feature{
		"b": Strings("x", "", "\xff"), "a": Floats(1.5, -2), "c": Int64s(-1, 300), "none": Int64s(), "unset": {},
	})
	// From TensorFlow's deterministic encoding of the same features.
	const want = "0a520a110a0161120c120a0a080000c03f000000c00a0f0a0162120a0a080a01780a000a01ff0a150a016312101a0e0a0cffffffffffffffffff01ac020a0a0a046e6f6e6512021a000a090a05756e7365741200"
	data := Marshal(e)
	if got := hex.EncodeToString(data); got != want {
		t.Errorf("got\n %s, want\n %s", got, want)
	}
	back, err := Unmarshal(data)
	if diff := cmp.Diff(e, back, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := Unmarshal([]byte("no example")); err == nil || !strings.Contains(err.Error(), "Example") {
		t.Errorf("damaged data: %v", err)
	}
}

// An Example has the context of a SequenceExample under the number of its own features.
func TestSequenceExample(t *testing.T) {
	data, err := proto.Marshal(&tfpb.SequenceExample{
		Context:      &tfpb.Features{Feature: map[string]*tfpb.Feature{"id": Strings("a")}},
		FeatureLists: &tfpb.FeatureLists{FeatureList: map[string]*tfpb.FeatureList{"frames": {Feature: []*tfpb.Feature{Int64s(1)}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unmarshal(data); !errors.Is(err, ErrSequenceExample) {
		t.Errorf("a SequenceExample: %v", err)
	}
	if _, err := Unmarshal(append(Marshal(New(nil)), 0x1a, 0x00)); err != nil {
		t.Errorf("a field that is not known: %v", err)
	}
}

// FuzzExample decodes any record as an Example, and what it encodes to again.
func FuzzExample(f *testing.F) {
	f.Add(Marshal(New(map[string]*tfpb.Feature{
		"label": Int64s(-1, 7), "x": Floats(1, 2), "name": Strings("a", ""),
	})))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer membound.Check(t, len(b), 256)()
		e, err := Unmarshal(b)
		if err != nil {
			return
		}
		data := Marshal(e)
		again, err := Unmarshal(data)
		if err != nil || !proto.Equal(e, again) || !bytes.Equal(data, Marshal(again)) {
			t.Fatalf("an Example does not survive being written: %v", err)
		}
	})
}
