package checkpoint

import (
	"bytes"
	"testing"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestEncodedMetaGraph encodes a MetaGraph once, and another one that takes its place.
func TestEncodedMetaGraph(t *testing.T) {
	named := func(name string) *tfpb.MetaGraphDef {
		return &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{Name: name, Op: "NoOp"}}}}
	}
	s := &Saver{MetaGraph: named("a")}
	first, again := s.EncodedMetaGraph(), s.EncodedMetaGraph()
	if !bytes.Equal(first, tfproto.Marshal(s.MetaGraph)) || &first[0] != &again[0] {
		t.Errorf("%q, then %q: want the same bytes of %v", first, again, s.MetaGraph)
	}
	s.MetaGraph = named("b")
	if got := s.EncodedMetaGraph(); !bytes.Equal(got, tfproto.Marshal(s.MetaGraph)) {
		t.Errorf("%q is not %v", got, s.MetaGraph)
	}
	if got := new(Saver).EncodedMetaGraph(); got != nil {
		t.Errorf("%q without a MetaGraph", got)
	}
}
