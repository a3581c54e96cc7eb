package tfevents

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
)

// TestScanOfStrayBytes has events with one byte too many, at each depth: the scan leaves to
// the general decoder what that refuses.
func TestScanOfStrayBytes(t *testing.T) {
	wrap := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	simple, err := proto.Marshal(summaryv1.Scalar("loss", 1))
	if err != nil {
		t.Fatal(err)
	}
	tensor, err := proto.Marshal(summary.Scalar("loss", 1).GetTensor())
	if err != nil {
		t.Fatal(err)
	}
	const summaryField, valueField, tagField, tensorField = 5, 1, 1, 8
	stray := func(b []byte, with bool) []byte {
		if with {
			return append(b[:len(b):len(b)], 0x08) // a tag without what it is of
		}
		return b
	}
	for depth, what := range []string{"nothing", "the event", "the summary", "the value", "the tensor"} {
		values := [][]byte{simple, append(wrap(tagField, []byte("loss")), wrap(tensorField, stray(tensor, depth == 4))...)}
		for _, value := range values {
			s := stray(wrap(valueField, stray(value, depth == 3)), depth == 2)
			b := stray(wrap(summaryField, s), depth == 1)
			var scan eventScan
			valid := proto.Unmarshal(b, new(tfpb.Event)) == nil
			if got := scan.parse(b); got != valid {
				t.Errorf("a stray byte in %s: the scan understands it: %v; the decoder: %v", what, got, valid)
			}
		}
	}
}
