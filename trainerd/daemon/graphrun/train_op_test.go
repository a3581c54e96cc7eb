package graphrun

import (
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// TestTrainOp has graphs as programs build them around their optimizers: the collection
// train_op names what applies gradients, and the step of the program is often more.
func TestTrainOp(t *testing.T) {
	node := func(name, op string, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs}
	}
	common := []*tfpb.NodeDef{
		node("w", "VarHandleOp"), node("v", "VarHandleOp"), node("s", "VarHandleOp"), node("one", "Const"),
		node("sgd", "ResourceApplyGradientDescent", "w", "one", "one"), node("adam", "ResourceApplyAdam", "v", "one"),
	}
	average, count := node("average", "AssignSubVariableOp", "v", "one"), node("count", "AssignAddVariableOp", "s", "one", "^sgd")
	tests := []struct {
		name        string
		named       []string
		want, among string
		nodes       []*tfpb.NodeDef
	}{
		{"alone", []string{"sgd"}, "sgd", "", nil},
		{"none", nil, "", "", nil},
		{"twice", []string{"sgd", "sgd"}, "sgd", "", nil},
		{"a node of a function", []string{"inner"}, "", "", nil},
		{"averages in a group", []string{"sgd"}, "train", "", []*tfpb.NodeDef{average, node("train", "NoOp", "^sgd", "^average")}},
		{"a loss after all", []string{"sgd"}, "train", "", []*tfpb.NodeDef{average, node("train", "Identity", "one", "^sgd", "^average")}},
		{"a loss that is only read", []string{"sgd"}, "sgd", "", []*tfpb.NodeDef{node("loss", "Identity", "one", "^sgd")}},
		{"what averages alone", []string{"sgd"}, "sgd", "", []*tfpb.NodeDef{average}},
		{"a restore after it", []string{"sgd"}, "sgd", "",
			[]*tfpb.NodeDef{node("old", "RestoreV2", "one", "^sgd"), node("back", "AssignVariableOp", "w", "old"), node("restore", "NoOp", "^back")}},
		{"its own counter", []string{"sgd"}, "count", "", []*tfpb.NodeDef{count}},
		{"groups in groups", []string{"sgd"}, "all", "",
			[]*tfpb.NodeDef{average, count, node("train", "NoOp", "^sgd", "^average"), node("all", "NoOp", "^train", "^count")}},
		{"a group and less", []string{"sgd"}, "all", "", []*tfpb.NodeDef{average, count, node("some", "NoOp", "^sgd", "^average"), node("all", "NoOp", "^average", "^count")}},
		{"two ways", []string{"sgd"}, "", "left right", []*tfpb.NodeDef{average, node("left", "NoOp", "^sgd", "^average"), node("right", "NoOp", "^sgd", "^adam")}},
		{"two optimizers", []string{"sgd", "adam"}, "train", "", []*tfpb.NodeDef{node("train", "NoOp", "^sgd", "^adam")}},
		{"two optimizers apart", []string{"sgd", "adam:0"}, "", "sgd adam", nil},
		{"one after the other", []string{"sgd", "both"}, "both", "", []*tfpb.NodeDef{node("both", "ResourceApplyAdam", "v", "one", "^sgd")}},
		{"what a program adds itself", []string{"sgd", "train"}, "train", "", []*tfpb.NodeDef{node("train", "Identity", "one", "^sgd")}},
	}
	library := &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{{NodeDef: []*tfpb.NodeDef{node("inner", "NoOp")}}}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			collections := map[string]*tfpb.CollectionDef{
				graph.TrainOpKey: {Kind: &tfpb.CollectionDef_NodeList_{NodeList: &tfpb.CollectionDef_NodeList{Value: test.named}}},
			}
			def := &tfpb.GraphDef{Node: slices.Concat(common, test.nodes), Library: library}
			parsed, err := graph.Parse(&tfpb.MetaGraphDef{GraphDef: def, CollectionDef: collections})
			if err != nil {
				t.Fatal(err)
			}
			g := &graphFile{Graph: parsed}
			got, among := g.trainOp()
			if got != test.want || strings.Join(among, " ") != test.among {
				t.Errorf("got %q, or one of %q; want %q, or one of %q", got, among, test.want, test.among)
			}
		})
	}
}
