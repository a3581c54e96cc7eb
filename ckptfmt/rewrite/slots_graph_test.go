package rewrite

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
)

// graphOf builds a graph of nodes "name op input ...", and a save op of values by name.
func graphOf(nodes []string, saved ...string) *tfpb.MetaGraphDef {
	g := &tfpb.GraphDef{}
	for _, text := range nodes {
		f := strings.Fields(text)
		g.Node = append(g.Node, &tfpb.NodeDef{Name: f[0], Op: f[1], Input: f[2:]})
	}
	names := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{int64(len(saved))}}
	save := &tfpb.NodeDef{Name: "save", Op: "SaveV2", Input: []string{"prefix", "names", "slices"}}
	for _, s := range saved {
		name, value, _ := strings.Cut(s, "=")
		names.Strings = append(names.Strings, []byte(name))
		save.Input = append(save.Input, value)
	}
	value := map[string]*tfpb.AttrValue{"value": {Value: &tfpb.AttrValue_Tensor{Tensor: names.Proto()}}}
	g.Node = append(g.Node, &tfpb.NodeDef{Name: "names", Op: "Const", Attr: value}, save)
	return &tfpb.MetaGraphDef{GraphDef: g}
}

// A program may give an optimizer any name. The graph shows which variables are its
// slots; averages, other variables below a variable's name and the learning rate are none.
func TestDropOptimizerByGraph(t *testing.T) {
	saved := []string{"lr=lr/read", "v=v", "v/rate=v/rate", "w=w/read:0", "w/average=w/average/read", "w/gen=w/gen/read", "w/gen_1=w/gen_1/read"}
	meta := graphOf([]string{
		"w VarHandleOp", "w/gen VarHandleOp", "w/gen_1 VarHandleOp", "w/average VarHandleOp", "lr VarHandleOp",
		"w/read ReadVariableOp w", "w/gen/read ReadVariableOp w/gen", "w/gen_1/copy ReadVariableOp w/gen_1", "w/gen_1/read Identity w/gen_1/copy",
		"w/average/read ReadVariableOp w/average", "lr/read ReadVariableOp lr", "grad Const",
		"train/w ResourceApplyAdam w w/gen w/gen_1 grad grad lr/read grad grad grad grad ^grad",
		"v VariableV2", "v/rate VariableV2", "train/v SparseApplyMomentum v v/rate:0 lr/read grad grad grad",
		"circle Identity circle", "damaged SaveV2", "average AssignVariableOp w/average w/read",
	}, saved...)
	var all []string
	for _, s := range saved {
		name, _, _ := strings.Cut(s, "=")
		all = append(all, name)
	}
	s := sourceOf(t, all, nil)
	if err := s.DropOptimizer(); err != nil {
		t.Fatal(err)
	}
	if got := left(s); !slices.Equal(got, all) {
		t.Errorf("without a graph: %q", got)
	}
	if err := metagraph.Write(layout.MetaName(s.name), meta, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.DropOptimizer(); err != nil {
		t.Fatal(err)
	}
	if got, want := left(s), []string{"lr", "v", "w", "w/average"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
