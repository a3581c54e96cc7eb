package inspect

import (
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"google.golang.org/protobuf/proto"
)

// FuzzObjects walks the graph of objects that any bytes may describe.
func FuzzObjects(f *testing.F) {
	for _, g := range []*tfpb.TrackableObjectGraph{
		{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{{}}},
		{Nodes: []*tfpb.TrackableObjectGraph_TrackableObject{
			{Children: []*tfpb.TrackableObjectGraph_TrackableObject_ObjectReference{{NodeId: 1, LocalName: "a"}, {NodeId: 0, LocalName: "self"}}},
			{Attributes: []*tfpb.TrackableObjectGraph_TrackableObject_SerializedTensor{{Name: "VARIABLE_VALUE", CheckpointKey: "a/.ATTRIBUTES/VARIABLE_VALUE"}}},
		}},
	} {
		b, err := proto.Marshal(g)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		graph := ckptfmt.WholePart(objectGraphKey, tfpb.DataType_DT_STRING, nil, nil)
		graph.Strings = func() ([][]byte, error) { return [][]byte{b}, nil }
		r, err := ckptfmt.NewPartsReader([]ckptfmt.Part{graph}, nil)
		if err != nil {
			t.Fatal(err)
		}
		root, err := Objects(r)
		if err == nil && root.Path != "" {
			t.Fatalf("the root is called %q", root.Path)
		}
	})
}
