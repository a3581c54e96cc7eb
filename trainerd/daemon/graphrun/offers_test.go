package graphrun

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// TestOffers has a graph whose step is a group: an op without a value is what makes a step,
// and one with a value is what can be fetched.
func TestOffers(t *testing.T) {
	node := func(name, op string, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs}
	}
	def := &tfpb.GraphDef{Node: []*tfpb.NodeDef{
		node("w", "VarHandleOp"), node("zero", "Const"), node("w/Assign", "AssignVariableOp", "w", "zero"), node("init", "NoOp", "^w/Assign"),
		node("grad", "Const"), node("sgd", "ResourceApplyGradientDescent", "w", "zero", "grad"), node("train", "NoOp", "^sgd"),
		node("old", "VariableV2"), node("count", "AssignAdd", "old", "grad"), node("loss", "Identity", "grad", "^count"), node("add", "AssignAdd", "old", "grad"),
		node("prefix", "Const"), node("save/Restore", "RestoreV2", "prefix"), node("save/Assign", "AssignVariableOp", "w", "save/Restore"),
		node("save/all", "NoOp", "^save/Assign"), node("save/Save", "SaveV2", "prefix", "grad"), node("lonely", "NoOp"),
	}}
	w, err := proto.Marshal(&tfpb.VariableDef{VariableName: "w:0", InitializerName: "w/Assign", SnapshotName: "w:0", IsResource: true})
	if err != nil {
		t.Fatal(err)
	}
	variables := &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{w}}}
	parsed, err := graph.Parse(&tfpb.MetaGraphDef{GraphDef: def, CollectionDef: map[string]*tfpb.CollectionDef{graph.GlobalVariables: {Kind: variables}}})
	if err != nil {
		t.Fatal(err)
	}
	g := &graphFile{Graph: parsed}
	if diff := cmp.Diff(g.steps(), []string{"train", "add"}); diff != "" {
		t.Errorf("steps (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(g.values(), []string{"loss", "add"}); diff != "" {
		t.Errorf("values (-got +want):\n%s", diff)
	}
	if got, want := suchAs([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}), ", such as b, c, d, e, f, g, h, i, among others"; got != want {
		t.Errorf("got %q", got)
	}
}
