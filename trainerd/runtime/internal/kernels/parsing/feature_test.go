package parsing

import (
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// randomFeature encodes a feature in one of the ways that protocol buffers allow: lists
// packed or not, in pieces, after those of another kind, among unknown fields.
func randomFeature(r *rand.Rand) []byte {
	var b []byte
	for range r.IntN(4) {
		kind := protowire.Number(1 + r.IntN(3))
		b = protowire.AppendTag(b, kind, protowire.BytesType)
		b = protowire.AppendBytes(b, randomList(r, kind))
		if r.IntN(4) == 0 {
			b = protowire.AppendTag(b, 9, protowire.VarintType)
			b = protowire.AppendVarint(b, r.Uint64())
		}
	}
	return b
}

func randomList(r *rand.Rand, kind protowire.Number) (b []byte) {
	for range r.IntN(5) {
		switch {
		case kind == 1:
			b = protowire.AppendTag(b, 1, protowire.BytesType)
			b = protowire.AppendString(b, "some text"[:r.IntN(9)])
		case kind == 2 && r.IntN(2) == 0:
			b = protowire.AppendTag(b, 1, protowire.Fixed32Type)
			b = protowire.AppendFixed32(b, r.Uint32()>>2)
		case kind == 2:
			b = protowire.AppendTag(b, 1, protowire.BytesType)
			b = protowire.AppendBytes(b, protowire.AppendFixed32(protowire.AppendFixed32(nil, r.Uint32()>>2), 0))
		case r.IntN(2) == 0:
			b = protowire.AppendTag(b, 1, protowire.VarintType)
			b = protowire.AppendVarint(b, r.Uint64()>>r.IntN(64))
		default:
			b = protowire.AppendTag(b, 1, protowire.BytesType)
			b = protowire.AppendBytes(b, protowire.AppendVarint(protowire.AppendVarint(nil, r.Uint64()>>r.IntN(64)), 3))
		}
	}
	return b
}

// TestFeatures compares the values of features with those that the protocol buffer
// library reads. Examples may have a feature twice, and each part of a message in pieces.
func TestFeatures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "", "a longer name"}
	for range 3000 {
		var data []byte
		for range 1 + r.IntN(2) {
			var features []byte
			for range r.IntN(5) {
				entry := protowire.AppendTag(nil, 1, protowire.BytesType)
				entry = protowire.AppendString(entry, names[r.IntN(len(names))])
				for range 1 + r.IntN(2) {
					entry = protowire.AppendTag(entry, 2, protowire.BytesType)
					entry = protowire.AppendBytes(entry, randomFeature(r))
				}
				features = protowire.AppendTag(features, 1, protowire.BytesType)
				features = protowire.AppendBytes(features, entry)
			}
			data = protowire.AppendTag(data, 1, protowire.BytesType)
			data = protowire.AppendBytes(data, features)
		}
		checkFeaturesOf(t, data)
		if cut := data[:r.IntN(len(data))]; proto.Unmarshal(cut, &tfpb.Example{}) == nil {
			checkFeaturesOf(t, cut)
		}
	}
}

func checkFeaturesOf(t *testing.T, data []byte) {
	t.Helper()
	var want tfpb.Example
	if err := proto.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got := map[string]feature{}
	if err := eachEntry(data, 1, func(key, value []byte) error {
		f, err := featureOf(value)
		got[string(key)] = f
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want.GetFeatures().GetFeature()) {
		t.Fatalf("%d features, want %d", len(got), len(want.GetFeatures().GetFeature()))
	}
	for name, w := range want.GetFeatures().GetFeature() {
		f := got[name]
		d := exec.NewTensor(max(f.dtype, exec.Float32), []int{f.n})
		if err := f.copyTo(d, 0); err != nil {
			t.Fatal(err)
		}
		same := true
		switch w.GetKind().(type) {
		case nil:
			same = f.dtype == exec.NoType && f.n == 0
		case *tfpb.Feature_FloatList:
			same = f.dtype == exec.Float32 && slices.Equal(exec.Elems[float32](d), w.GetFloatList().GetValue())
		case *tfpb.Feature_Int64List:
			same = f.dtype == exec.Int64 && slices.Equal(exec.Elems[int64](d), w.GetInt64List().GetValue())
		case *tfpb.Feature_BytesList:
			same = f.dtype == exec.String && slices.EqualFunc(d.Strings, w.GetBytesList().GetValue(), func(a, b []byte) bool { return string(a) == string(b) })
		}
		if !same {
			t.Fatalf("feature %q of %x: %v %v, want %v", name, data, f.dtype, d, w)
		}
	}
}

// FuzzFeatures reads any bytes as features: without a panic, and with the number of
// values that was counted.
func FuzzFeatures(f *testing.F) {
	f.Add([]byte{0x12, 6, 0x0a, 4, 0, 0, 0x80, 0x3f})
	f.Add([]byte{0x1a, 4, 0x0a, 2, 0xff, 0x80})
	f.Fuzz(func(t *testing.T, data []byte) {
		one, err := featureOf(data)
		if err != nil || one.dtype == exec.NoType {
			return
		}
		one.copyTo(exec.NewTensor(one.dtype, []int{one.n}), 0)
	})
}
