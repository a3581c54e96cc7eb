package tfevents

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// TestScanOfStrayBytes has events with bytes that do not belong there, at each depth: the scan
// leaves them to the general decoder.
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
	var extra []byte
	stray := func(b []byte, with bool) []byte {
		if with {
			return slices.Concat(b, extra)
		}
		return b
	}
	for n := range 5 * 4 {
		depth := n % 5                                                             // of what has them: 0 for nothing, the event, the summary, the value, the tensor
		extra = [][]byte{{0x08}, {0x80}, {0x80, 0xe2, 0x09, 1}, {0x0b, 0x0c}}[n/5] // no content, no key, an unknown field, a group
		values := [][]byte{simple, append(wrap(tagField, []byte("loss")), wrap(tensorField, stray(tensor, depth == 4))...)}
		for _, value := range values {
			s := stray(wrap(valueField, stray(value, depth == 3)), depth == 2)
			b := stray(wrap(summaryField, s), depth == 1)
			var scan eventScan
			if got := scan.parse(b); got != (depth == 0) && !(depth == 4 && bytes.Equal(value, simple)) {
				t.Errorf("%x at depth %d: the scan understands it: %v", extra, depth, got)
			}
		}
	}
}

// TestScanLeavesUnusual has values that mean more than a scan keeps of them: what is there
// twice is merged by the general decoder, and some messages hold themselves.
func TestScanLeavesUnusual(t *testing.T) {
	wrap := func(number protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), slices.Concat(parts...))
	}
	const variantVal, tensorsOfVariant = 15, 3
	nested := func(levels int) []byte {
		var tensor []byte
		for range levels {
			tensor = wrap(variantVal, wrap(tensorsOfVariant, tensor))
		}
		return wrap(fieldTensor, tensor)
	}
	one := wrap(fieldTensor, wrap(5, []byte{0, 0, 128, 63}))
	for _, tc := range []struct {
		name  string
		value []byte
		want  bool
	}{
		{"a tensor", one, true},
		{"a tensor twice", slices.Concat(one, one), false},
		{"metadata twice", slices.Concat(wrap(fieldMetadata), wrap(fieldMetadata)), false},
		{"a tensor in a tensor", nested(3), true},
		{"tensors in tensors", nested(maxScanDepth), false},
	} {
		var scan eventScan
		b := wrap(fieldSummary, wrap(1, wrap(fieldTag, []byte("loss")), tc.value))
		if got := scan.parse(b); got != tc.want {
			t.Errorf("%s: the scan understands it: %v", tc.name, got)
		}
		if err := proto.Unmarshal(b, new(tfpb.Event)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestNumberOfUnusualEvent has a scalar in an event that only the general decoder understands:
// the index holds its number as that of any other.
func TestNumberOfUnusualEvent(t *testing.T) {
	b, err := proto.Marshal(losses(7, 1, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, 0xf8, 0x07, 1) // a field that no event has
	x := ReadRun(fstest.MapFS{"e.tfevents": {Data: tfrecord.Append(nil, b)}}, Run{Files: []string{"e.tfevents"}}, nil)
	p, _, _ := x.Lookup("loss").FirstLast()
	if v, ok := p.Scalar(); !ok || v != 7 {
		t.Errorf("the number is %v, %v", v, ok)
	}
}

// TestScanOfDamagedEvents has events of many kinds that are cut, and have a changed byte,
// everywhere: what the scan understands of them is what the general decoder does.
func TestScanOfDamagedEvents(t *testing.T) {
	histogram, err := summary.Histogram("h", []float64{1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	old, err := summaryv1.HistogramOf("h", []float64{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []*tfpb.Summary_Value{
		summaryv1.Scalar("loss", 1), summary.Scalar("loss", 1), summary.Describe(summary.Scalar("loss", 1), "name", "text"),
		summary.Text("t", "text"), histogram, old, imageV1("i", 1, 0),
		summary.Tensor("t", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, FloatVal: []float32{1, 2}, TensorShape: eventstest.Shape(2)}),
		summary.Tensor("t", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT64, Int64Val: []int64{1, 1 << 40}, TensorShape: eventstest.Shape(2)}),
		summary.Tensor("t", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorContent: []byte{0, 0, 128, 63}}),
		summary.Tensor("t", &tfpb.TensorProto{FloatVal: []float32{1}}),
		// Lengths that are also keys, and a number that begins with one.
		scalarBits("a", 0x3f80_0015), scalarBits("abc", 0x3f80_0015), scalarBits("abcdefghij", 0), scalarBits(strings.Repeat("x", 33), 0),
	} {
		wall := math.Float64frombits(0x3ff0_0000_0000_0000 | keyWallTime)
		whole, err := proto.Marshal(&tfpb.Event{WallTime: wall, Step: 300, What: &tfpb.Event_Summary{Summary: summary.New(v)}})
		if err != nil {
			t.Fatal(err)
		}
		checkDamaged(t, whole)
		for i, c := range whole {
			checkDamaged(t, whole[:i])
			for _, other := range []byte{0, 1, 0x7f, 0x80, 0xff, c - 1, c + 1, c + 4, c + 8, c + 10, c + 12, c ^ 2, c ^ 8, c ^ 0x80} {
				damaged := slices.Clone(whole)
				damaged[i] = other
				checkDamaged(t, damaged)
			}
		}
	}
}

// scalarBits returns a scalar of the bits of a number.
func scalarBits(tag string, bits uint32) *tfpb.Summary_Value {
	return &tfpb.Summary_Value{Tag: tag, Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: math.Float32frombits(bits)}}
}

func checkDamaged(t *testing.T, b []byte) {
	t.Helper()
	var scan eventScan
	if !scan.parse(b) {
		return
	}
	checkScan(t, b, &scan)
	for i := range scan.values {
		v := &scan.values[i]
		if v.form == formOther {
			continue
		}
		got := float64(math.Float32frombits(v.number))
		if want, ok := decode.Scalar(v.message()); !ok || got != want && !math.IsNaN(want) {
			t.Fatalf("%x: the scan has the number %v, the decoder %v, %v", b, got, want, ok)
		}
	}
}
