package tfproto

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"

	tfpb "github.com/trainerd/trainerd/proto"
)

func TestMarshalGolden(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			if got := Marshal(g.message(t)); !bytes.Equal(got, g.binary) {
				t.Errorf("differs from TensorFlow's bytes at offset %d\n got %x\nwant %x",
					firstDifference(got, g.binary), got, g.binary)
			}
		})
	}
}

func TestAppendKeepsPrefix(t *testing.T) {
	m := goldenNamed(t, "Event-summary").message(t)
	got := Append([]byte("prefix"), m)
	if want := append([]byte("prefix"), Marshal(m)...); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

func TestMarshalOrder(t *testing.T) {
	tests := []struct {
		name string
		m    proto.Message
		want string
	}{
		{"oneof in the middle", &tfpb.Event{Step: 2, What: &tfpb.Event_FileVersion{FileVersion: "v"},
			SourceMetadata: &tfpb.SourceMetadata{Writer: "w"}}, "10021a0176" + "52030a0177"},
		{"declared out of order", &tfpb.Summary_Value{NodeName: "n", Tag: "t",
			Value:    &tfpb.Summary_Value_SimpleValue{SimpleValue: 1},
			Metadata: &tfpb.SummaryMetadata{}}, "0a0174" + "150000803f" + "3a016e" + "4a00"},
		{"zero oneof member", &tfpb.TensorSliceProto_Extent{Start: 1,
			HasLengthHack: &tfpb.TensorSliceProto_Extent_Length{}}, "0801" + "1000"},
		{"empty", &tfpb.Event{}, ""},
		{"typed nil", (*tfpb.Event)(nil), ""},
		{"not UTF-8", &tfpb.Event{What: &tfpb.Event_FileVersion{FileVersion: "\xff"},
			SourceMetadata: &tfpb.SourceMetadata{Writer: "w"}}, "1a01ff" + "52030a0177"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := hex.EncodeToString(Marshal(tt.m)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMarshalUnknownFields(t *testing.T) {
	m := &tfpb.Event{Step: 1, What: &tfpb.Event_FileVersion{FileVersion: "v"}, SourceMetadata: &tfpb.SourceMetadata{}}
	// Field 4 is known, but not as a number.
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), 7)
	unknown = protowire.AppendVarint(protowire.AppendTag(unknown, 1000, protowire.VarintType), 8)
	m.ProtoReflect().SetUnknown(unknown)
	want, err := hex.DecodeString("1001" + "1a0176" + "5200" + "2007" + "c03e08")
	if err != nil {
		t.Fatal(err)
	}
	if got := Marshal(m); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	m.ProtoReflect().SetUnknown(protoreflect.RawFields{0xff})
	want = append(want[:len(want)-len(unknown)], 0xff)
	if got := Marshal(m); !bytes.Equal(got, want) {
		t.Errorf("with bytes that are no field: got %x, want %x", got, want)
	}
}

// TestMarshalEveryType fills every message type with random values and compares
// the fast encoder with the plain one and with what the decoder makes of it.
func TestMarshalEveryType(t *testing.T) {
	forEveryType(t, 20, checkMarshal)
}

// TestMarshalGraphs does the same with graphs, for which the types are too deep.
func TestMarshalGraphs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		n := new(tfpb.NodeDef)
		fill(rng, n.ProtoReflect(), 6)
		checkMarshal(t, &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{n}}})
	}
}

// forEveryType calls check with n random messages of every type of TensorFlow's.
func forEveryType(t *testing.T, n int, check func(*testing.T, proto.Message)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	types := 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		if !strings.HasPrefix(string(mt.Descriptor().FullName()), "trainerd.") {
			return true
		}
		types++
		for range n {
			m := mt.New()
			fill(rng, m, 3)
			check(t, m.Interface())
		}
		return !t.Failed()
	})
	if types < 150 {
		t.Errorf("only %d message types are registered", types)
	}
}

func checkMarshal(t *testing.T, m proto.Message) {
	t.Helper()
	got := Marshal(m)
	if want := appendMessage(nil, m.ProtoReflect()); !bytes.Equal(got, want) {
		t.Errorf("%T: encoders disagree at offset %d\n fast %x\nplain %x", m, firstDifference(got, want), got, want)
		return
	}
	back := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(got, back); err != nil {
		t.Errorf("%T: %v", m, err)
		return
	}
	if !proto.Equal(m, back) {
		t.Errorf("%T: read back differently (-want +got):\n%s", m, cmp.Diff(m, back, protocmp.Transform()))
	}
}

func firstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// fill sets about half of the fields of m at random.
func fill(rng *rand.Rand, m protoreflect.Message, depth int) {
	for _, fd := range fieldsInOrder(m.Descriptor()) {
		if rng.IntN(2) == 0 || depth == 0 && fd.Message() != nil {
			continue
		}
		switch {
		case fd.IsMap():
			for range rng.IntN(4) {
				v := m.Mutable(fd).Map().NewValue()
				m.Mutable(fd).Map().Set(randomValue(rng, fd.MapKey(), protoreflect.Value{}, depth).MapKey(),
					randomValue(rng, fd.MapValue(), v, depth))
			}
		case fd.IsList():
			list := m.Mutable(fd).List()
			for range rng.IntN(4) {
				list.Append(randomValue(rng, fd, list.NewElement(), depth))
			}
		default:
			m.Set(fd, randomValue(rng, fd, m.NewField(fd), depth))
		}
	}
}

func randomValue(rng *rand.Rand, fd protoreflect.FieldDescriptor, empty protoreflect.Value, depth int) protoreflect.Value {
	bits := rng.Uint64() >> rng.IntN(64)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(bits%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(bits))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(bits))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(bits))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(bits))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(bits)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(quiet(math.Float32frombits(uint32(bits))))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(math.Float64frombits(bits))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(randomText(rng))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(randomText(rng) + "\xff\x00")[rng.IntN(3):])
	}
	fill(rng, empty.Message(), depth-1)
	return empty
}

// quiet keeps signalling NaNs away from the plain encoder, which cannot keep them.
func quiet(f float32) float32 {
	if f != f {
		return float32(math.NaN())
	}
	return f
}

func randomText(rng *rand.Rand) string {
	alphabet := []rune("az09 \t\n\"'\\\x00\x7f\u0085é漢\U0001f600")
	// Now and then longer than a one-byte length prefix can say.
	text := make([]rune, rng.IntN(10)*rng.IntN(20))
	for i := range text {
		text[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(text)
}

func TestField(t *testing.T) {
	graph := &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: "a", Op: "NoOp"}}}
	meta := Marshal(&tfpb.MetaGraphDef{
		MetaInfoDef: &tfpb.MetaGraphDef_MetaInfoDef{MetaGraphVersion: "v"},
		GraphDef:    graph, SaverDef: &tfpb.SaverDef{FilenameTensorName: "save/Const"},
	})
	if got := Field(meta, 2); !bytes.Equal(got, Marshal(graph)) {
		t.Errorf("got %q", got)
	}
	for name, b := range map[string][]byte{"no such field": meta, "torn": meta[:len(meta)-1], "no tag": {0xff}} {
		if got := Field(b, 7); got != nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func FuzzMarshal(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g.binary)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []proto.Message{&tfpb.Event{}, &tfpb.MetaGraphDef{}, &tfpb.TrackableObjectGraph{}} {
			if proto.Unmarshal(data, m) != nil {
				continue
			}
			b := Marshal(m)
			back := m.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(b, back); err != nil {
				t.Fatalf("%T: %v", m, err)
			}
			if !proto.Equal(m, back) {
				t.Fatalf("%T: read back differently", m)
			}
			if again := Marshal(back); !bytes.Equal(again, b) {
				t.Fatalf("%T: not stable:\n%x\n%x", m, b, again)
			}
		}
	})
}

func BenchmarkMarshal(b *testing.B) {
	histogram := &tfpb.Event{WallTime: 1, Step: 2, What: &tfpb.Event_Summary{Summary: &tfpb.Summary{}}}
	for range 10 {
		v := &tfpb.Summary_Value{Tag: "layer/weights", Metadata: &tfpb.SummaryMetadata{DisplayName: "w"}}
		v.Value = &tfpb.Summary_Value_Histo{Histo: &tfpb.HistogramProto{BucketLimit: make([]float64, 100), Bucket: make([]float64, 100)}}
		histogram.GetSummary().Value = append(histogram.GetSummary().Value, v)
	}
	scalar := &tfpb.Event{WallTime: 1, Step: 2, What: &tfpb.Event_Summary{Summary: &tfpb.Summary{
		Value: []*tfpb.Summary_Value{{Tag: "loss", Value: &tfpb.Summary_Value_SimpleValue{SimpleValue: 0.5}}}}}}
	benchmarks := []struct {
		name string
		m    proto.Message
	}{
		{"scalar", scalar},
		{"histograms", histogram},
		{"graph", goldenNamed(b, "GraphDef-program").message(b)},
		{"metagraph", goldenNamed(b, "MetaGraphDef-program").message(b)},
	}
	for _, bb := range benchmarks {
		b.Run(bb.name+"/fast", func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = Append(buf[:0], bb.m)
			}
			b.SetBytes(int64(len(buf)))
		})
		b.Run(bb.name+"/plain", func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = appendMessage(buf[:0], bb.m.ProtoReflect())
			}
			b.SetBytes(int64(len(buf)))
		})
	}
}
