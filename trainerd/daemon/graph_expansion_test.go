package daemon

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// TestCheckOfExpansion refuses, in the check as in the run, a graph whose functions
// call the next one twice each, and names what a user can see of it.
func TestCheckOfExpansion(t *testing.T) {
	b := graph.NewBuilder()
	w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_FLOAT, Initial: graph.Zeros(), Trainable: true})
	one := b.Const("one", literal.Float(1))
	b.Add(graph.NodeSpec{Op: "AssignAddVariableOp", Name: "raise", Inputs: []graph.Output{w.Handle(), one},
		Attrs: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_FLOAT)}})
	c := graphConfig(t, withDoublingCalls(t, modelFile(t, b), 24), `train_op = "raise"`, "[train]", "steps = 1")
	name := filepath.Join(filepath.Dir(c.Logdir), "job.toml")
	for what, err := range map[string]error{
		"check": Check(t.Context(), name, nil, io.Discard),
		"run":   Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard}),
	} {
		if err == nil || !strings.Contains(err.Error(), "node call") || !strings.Contains(err.Error(), "function f0 expands to 41943037 nodes") || strings.Contains(err.Error(), "Options") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// withDoublingCalls lets the train op wait for a call of functions that call the
// next one twice each.
func withDoublingCalls(t *testing.T, file string, deep int) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	meta := &tfpb.MetaGraphDef{}
	if err := proto.Unmarshal(content, meta); err != nil {
		t.Fatal(err)
	}
	def := meta.GraphDef
	for _, n := range def.Node {
		if n.Name == "raise" {
			n.Input = append(n.Input, "^call")
		}
	}
	def.Node = append(def.Node, callOf("call", "one", 0))
	def.Library = &tfpb.FunctionDefLibrary{}
	for i := range deep {
		ret, nodes := "right:output:0", []*tfpb.NodeDef{callOf("left", "a", i+1), callOf("right", "left:output:0", i+1)}
		if i == deep-1 {
			ret, nodes = "right:y:0", []*tfpb.NodeDef{{Name: "right", Op: "Neg", Input: []string{"a"}, Attr: map[string]*tfpb.AttrValue{"T": attr.Type(tfpb.DataType_DT_FLOAT)}}}
		}
		arg := func(name string) []*tfpb.OpDef_ArgDef {
			return []*tfpb.OpDef_ArgDef{{Name: name, Type: tfpb.DataType_DT_FLOAT}}
		}
		def.Library.Function = append(def.Library.Function, &tfpb.FunctionDef{
			Signature: &tfpb.OpDef{Name: fmt.Sprintf("f%d", i), InputArg: arg("a"), OutputArg: arg("out")},
			NodeDef:   nodes, Ret: map[string]string{"out": ret},
		})
	}
	if err := os.WriteFile(file, tfproto.Marshal(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// callOf is a node that calls the function fN.
func callOf(name, input string, n int) *tfpb.NodeDef {
	floats := &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: &tfpb.AttrValue_ListValue{Type: []tfpb.DataType{tfpb.DataType_DT_FLOAT}}}}
	f := &tfpb.AttrValue{Value: &tfpb.AttrValue_Func{Func: &tfpb.NameAttrList{Name: fmt.Sprintf("f%d", n)}}}
	return &tfpb.NodeDef{Name: name, Op: "PartitionedCall", Input: []string{input}, Attr: map[string]*tfpb.AttrValue{"Tin": floats, "Tout": floats, "f": f}}
}
