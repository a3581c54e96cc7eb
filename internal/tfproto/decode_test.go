package tfproto

import (
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
)

// graphFiles returns the graphs that TensorFlow has exported for its programs.
func graphFiles(t testing.TB) [][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "graphs", "programs", "*", "graph.meta"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no graphs among the fixtures (%v)", err)
	}
	var files [][]byte
	for _, name := range names {
		files = append(files, readFile(t, name))
	}
	return files
}

// checkUnmarshal compares what UnmarshalMetaGraph makes of bytes, or says of them,
// with proto.Unmarshal.
func checkUnmarshal(t *testing.T, b []byte) {
	t.Helper()
	want := &tfpb.MetaGraphDef{}
	wantErr := proto.Unmarshal(b, want)
	for _, unmarshal := range []func([]byte) (*tfpb.MetaGraphDef, error){UnmarshalMetaGraph, UnmarshalSharedMetaGraph} {
		got, err := unmarshal(b)
		switch {
		case (err == nil) != (wantErr == nil), err != nil && err.Error() != wantErr.Error():
			t.Errorf("error %v, want %v, for %x", err, wantErr, b)
		case err == nil && !proto.Equal(got, want):
			t.Errorf("differs from proto.Unmarshal for %x", b)
		}
	}
}

func TestUnmarshalMetaGraph(t *testing.T) {
	for _, b := range graphFiles(t) {
		if !decodeMetaGraph(b, &tfpb.MetaGraphDef{}, false) {
			t.Error("an exported graph was left to proto.Unmarshal")
		}
		checkUnmarshal(t, b)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		m := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Versions: &tfpb.VersionDef{Producer: 9}}}
		for range rng.IntN(4) {
			n := new(tfpb.NodeDef)
			fill(rng, n.ProtoReflect(), 4)
			m.GraphDef.Node = append(m.GraphDef.Node, n)
		}
		checkUnmarshal(t, Marshal(m))
	}
}

// TestUnmarshalMetaGraphDamaged cuts and changes a graph at every byte.
func TestUnmarshalMetaGraphDamaged(t *testing.T) {
	n := &tfpb.NodeDef{Name: "größe", Op: "Const", Input: []string{"a", "^b"}, Attr: map[string]*tfpb.AttrValue{
		"T":     {Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}},
		"shape": {Value: &tfpb.AttrValue_Shape{Shape: &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: -1}, {}, {Size: 300}}}}},
		"list": {Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{
			S: [][]byte{[]byte("loc:@a"), {}}, I: []int64{1, -1}, Type: []tfpb.DataType{tfpb.DataType_DT_INT32}, Shape: []*tfpb.TensorShapeProto{{UnknownRank: true}}}}},
		"value": {Value: &tfpb.AttrValue_Tensor{Tensor: &tfpb.TensorProto{
			Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{}, FloatVal: []float32{.5}, IntVal: []int32{-2}, TensorContent: []byte("abcd")}}},
		"i": {Value: &tfpb.AttrValue_I{I: -7}}, "f": {Value: &tfpb.AttrValue_F{F: 1}}, "b": {Value: &tfpb.AttrValue_B{B: true}}, "s": {Value: &tfpb.AttrValue_S{}},
	}}
	whole := Marshal(&tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{n, n}}})
	for i := range whole {
		checkUnmarshal(t, whole[:i])
		for _, change := range []byte{1, 2, 0x10, 0x80, 0xff} {
			changed := append([]byte(nil), whole...)
			changed[i] ^= change
			checkUnmarshal(t, changed)
		}
	}
	// A graph in two parts is their sum, and so is a node's shape.
	checkUnmarshal(t, append(whole, whole...))
	shape := []byte{0x3a, 4, 0x12, 2, 8, 1} // of an attribute
	entry := protowire.AppendBytes([]byte{0x0a, 1, 's', 0x12}, append(shape, shape...))
	node := protowire.AppendBytes([]byte{0x2a}, entry)
	graph := protowire.AppendBytes([]byte{0x0a}, node)
	checkUnmarshal(t, protowire.AppendBytes([]byte{0x12}, graph))
}

// TestUnmarshalSharedMetaGraph checks that equal attributes are one message only where
// that is asked for.
func TestUnmarshalSharedMetaGraph(t *testing.T) {
	g := &tfpb.GraphDef{}
	for i := range 8 {
		float := &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: tfpb.DataType_DT_FLOAT}}
		g.Node = append(g.Node, &tfpb.NodeDef{Name: string(rune('a' + i)), Op: "Neg", Attr: map[string]*tfpb.AttrValue{"T": float}})
	}
	b := Marshal(&tfpb.MetaGraphDef{GraphDef: g})
	same := func(m *tfpb.MetaGraphDef, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		n := m.GetGraphDef().GetNode()
		return n[0].GetAttr()["T"] == n[1].GetAttr()["T"]
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // each part of a graph has attributes of its own
	if same(UnmarshalMetaGraph(b)) {
		t.Error("UnmarshalMetaGraph shares attributes, which programs may change")
	}
	if !same(UnmarshalSharedMetaGraph(b)) {
		t.Error("UnmarshalSharedMetaGraph does not share attributes")
	}
	m, err := UnmarshalSharedMetaGraph(b)
	if err != nil {
		t.Fatal(err)
	}
	if delete(m.GraphDef.Node[0].Attr, "T"); m.GraphDef.Node[1].GetAttr()["T"] == nil { // as opdef.Strip does
		t.Error("nodes share what has their attributes")
	}
}

func FuzzUnmarshalMetaGraph(f *testing.F) {
	const maxSeed = 8 << 10
	for _, b := range graphFiles(f) {
		if len(b) <= maxSeed {
			f.Add(b)
		}
	}
	f.Fuzz(checkUnmarshal)
}
