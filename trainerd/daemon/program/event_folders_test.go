package program

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestEventFolders has writers whose folder is a constant, is passed on, is only known to who
// feeds it, and is that of a tensor which reads itself: such a graph is damaged, and must not
// hold up who looks at it.
func TestEventFolders(t *testing.T) {
	const text = `
		node { name: "w" op: "SummaryWriter" }
		node { name: "dir" op: "Const" attr { key: "value" value { tensor { dtype: DT_STRING string_val: "curves" } } } }
		node { name: "same" op: "Identity" input: "dir" }
		node { name: "fed" op: "Placeholder" }
		node { name: "self" op: "Identity" input: "self" }
		node { name: "a" op: "CreateSummaryFileWriter" input: "w" input: "dir" }
		node { name: "b" op: "CreateSummaryFileWriter" input: "w" input: "same:0" }
		node { name: "c" op: "CreateSummaryFileWriter" input: "w" input: "fed" }
		node { name: "d" op: "CreateSummaryFileWriter" input: "w" input: "self" }`
	def := &tfpb.GraphDef{}
	if err := prototext.Unmarshal([]byte(text), def); err != nil {
		t.Fatal(err)
	}
	p := &Program{Meta: &tfpb.MetaGraphDef{GraphDef: def}, Dir: "/models"}
	if _, err := p.Graph(); err != nil {
		t.Fatal(err)
	}
	if got := p.EventFolders(); !slices.Equal(got, []string{"/models/curves", "/models/curves"}) {
		t.Errorf("%q", got)
	}
}
