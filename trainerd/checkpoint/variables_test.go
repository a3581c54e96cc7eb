package checkpoint

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// What a graph's saver saves is what is in the checkpoint that TensorFlow wrote
// with it; without a saver it is the global variables.
func TestKeysOfTensorFlowGraphs(t *testing.T) {
	for _, name := range []string{"softmax_ref", "softmax_resource", "softmax_no_saver", "mlp_adam", "mlp_dropout", "embedding", "conv", "queue_pipeline"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("..", "..", "fixtures", "graphs", name)
			meta, err := metagraph.Read(filepath.Join(dir, "graph.meta"))
			sessiontest.MustNoErr(t, err)
			saved, err := graph.Collections{Meta: meta}.SavedVariables(nil)
			sessiontest.MustNoErr(t, err)
			var got []string
			for _, v := range saved {
				got = append(got, v.Key)
				if v.Name != v.Key {
					t.Errorf("key %s is variable %s; want the same", v.Key, v.Name)
				}
			}
			slices.Sort(got)
			indexes := sessiontest.Files(t, filepath.Join(dir, "final"), "*.index")
			want := keys(t, filepath.Join(dir, "final", strings.TrimSuffix(indexes[0], ".index")))
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("keys (-got +want):\n%s", diff)
			}
		})
	}
}

func node(name, op string, inputs ...string) *tfpb.NodeDef {
	return &tfpb.NodeDef{Name: name, Op: op, Input: inputs}
}

func stringsNode(name string, v ...string) *tfpb.NodeDef {
	n := node(name, "Const")
	n.Attr = map[string]*tfpb.AttrValue{"value": {Value: &tfpb.AttrValue_Tensor{Tensor: sessiontest.Vector(v...).Proto()}}}
	return n
}

// savingGraph is a graph as tf.train.Saver makes it, of a renamed variable and
// of one in two parts, in two shards.
func savingGraph() *tfpb.MetaGraphDef {
	w1 := node("w/part_1", "VarHandleOp")
	w1.Attr = map[string]*tfpb.AttrValue{"shared_name": {Value: &tfpb.AttrValue_S{S: []byte("w/part_1/shared")}}}
	return &tfpb.MetaGraphDef{
		SaverDef: &tfpb.SaverDef{FilenameTensorName: "save/Const:0", SaveTensorName: "save/Identity:0", RestoreOpName: "save/restore_all"},
		GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{
			node("b", "VariableV2"), node("w/part_0", "VariableV2"), node("w/part_0/read", "Identity", "w/part_0"), w1,
			node("read", "ReadVariableOp", "w/part_1"), node("save/Const", "PlaceholderWithDefault"),
			stringsNode("names0", "renamed", "w"), stringsNode("slices0", "", "4 2 0,1:-"),
			stringsNode("names1", "w"), stringsNode("slices1", "4 2 1,3:-"),
			node("save/SaveV2", "SaveV2", "save/Const", "names0", "slices0", "b", "w/part_0/read:0"),
			node("save/SaveV2_1", "SaveV2", "save/Const", "names1", "slices1", "read", "^save/SaveV2"),
			node("save/Identity", "Identity", "save/Const", "^save/SaveV2", "^save/SaveV2_1"),
		}},
	}
}

func TestPartitionedVariables(t *testing.T) {
	matrix := func(rows int64, v ...float32) *ckptfmt.Tensor {
		m, err := ckptfmt.FromValues([]int64{rows, 2}, v)
		sessiontest.MustNoErr(t, err)
		return m
	}
	model := func() *sessiontest.Session {
		return sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
			"b": sessiontest.Vector[float32](0), "w/part_0": matrix(1, 0, 0), "w/part_1/shared": matrix(3, 0, 0, 0, 0, 0, 0), "local": sessiontest.Vector[float32](0)})
	}
	sess := model()
	sess.Set("b", sessiontest.Vector[float32](9))
	sess.Set("w/part_0", matrix(1, 1, 2))
	sess.Set("w/part_1/shared", matrix(3, 3, 4, 5, 6, 7, 8))
	prefix := save(t, &Saver{MetaGraph: savingGraph()}, sess, filepath.Join(t.TempDir(), "m"), 1)

	r, err := ckptfmt.OpenBundle(prefix, nil)
	sessiontest.MustNoErr(t, err)
	defer r.Close()
	if diff := cmp.Diff(keys(t, prefix), []string{"renamed", "w"}); diff != "" {
		t.Errorf("keys (-got +want):\n%s", diff)
	}
	whole, err := r.Lookup("w")
	sessiontest.MustNoErr(t, err)
	if diff := cmp.Diff(whole, matrix(4, 1, 2, 3, 4, 5, 6, 7, 8)); diff != "" {
		t.Errorf("w (-got +want):\n%s", diff)
	}
	other := model()
	sessiontest.MustNoErr(t, (&Saver{MetaGraph: savingGraph()}).Restore(t.Context(), other, prefix))
	for _, name := range []string{"b", "w/part_0", "w/part_1/shared"} {
		if diff := cmp.Diff(other.Get(name), sess.Get(name)); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}
	other = model()
	report, err := (&WarmStart{Checkpoint: prefix, Saver: &Saver{MetaGraph: savingGraph()}}).Apply(t.Context(), other)
	if err != nil || len(report.Restored) != 3 || len(report.Reshaped) > 0 {
		t.Errorf("warm start: %v; reshaped %v; %v", report, report.Reshaped, err)
	}
	if diff := cmp.Diff(other.Get("w/part_1/shared"), sess.Get("w/part_1/shared")); diff != "" {
		t.Errorf("a part after a warm start (-got +want):\n%s", diff)
	}
}

// A part whose value has another shape than its slice fails the save.
func TestPartOfAnotherShape(t *testing.T) {
	sess := sessiontest.SessionOf(map[string]*ckptfmt.Tensor{
		"b": sessiontest.Vector[float32](0), "w/part_0": sessiontest.Vector[float32](1, 2, 3), "w/part_1/shared": sessiontest.Vector[float32](4)})
	dir := t.TempDir()
	if _, err := (&Saver{MetaGraph: savingGraph()}).Save(t.Context(), sess, filepath.Join(dir, "m"), 1); err == nil {
		t.Errorf("saved: %v", sessiontest.Files(t, dir, "*"))
	}
}

func TestSaveOpsThatAreNotVariables(t *testing.T) {
	tests := []struct {
		name   string
		change func(g *tfpb.MetaGraphDef)
		want   string
		byOps  bool
	}{
		{"a table", func(g *tfpb.MetaGraphDef) { find(g, "read").Op = "LookupTableExportV2" }, "", true},
		{"names computed", func(g *tfpb.MetaGraphDef) { find(g, "names0").Op = "StringJoin" }, "", true},
		{"node missing", func(g *tfpb.MetaGraphDef) { find(g, "read").Input = []string{"nowhere"} }, "", true},
		{"no inputs", func(g *tfpb.MetaGraphDef) { find(g, "save/SaveV2").Input = nil }, "has 0 inputs", false},
		{"too few names", func(g *tfpb.MetaGraphDef) { find(g, "save/SaveV2").Input[1] = "names1" }, "1 names and 2 slices for 2 tensors", false},
		{"bad slice", func(g *tfpb.MetaGraphDef) { find(g, "save/SaveV2_1").Input[2] = "names1" }, "slice", false},
		{"identity without input", func(g *tfpb.MetaGraphDef) { find(g, "read").Input = nil }, "has no input", false},
		{"cycle", func(g *tfpb.MetaGraphDef) { find(g, "read").Input = []string{"read"} }, "reads itself", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := proto.Clone(savingGraph()).(*tfpb.MetaGraphDef)
			tt.change(g)
			_, err := graph.Collections{Meta: g}.SavedVariables(nil)
			if got := errors.Is(err, graph.ErrSavedByOps); got != tt.byOps || !tt.byOps && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v; want %q, by ops: %v", err, tt.want, tt.byOps)
			}
		})
	}
}

func find(g *tfpb.MetaGraphDef, name string) *tfpb.NodeDef {
	i := slices.IndexFunc(g.GraphDef.Node, func(n *tfpb.NodeDef) bool { return n.Name == name })
	return g.GraphDef.Node[i]
}
