package graph

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// manifest is what TensorFlow said of a graph when it exported it.
type manifest struct {
	TrainOp     string         `json:"train_op"`
	Feeds       []string       `json:"feeds"`
	Ops         map[string]int `json:"ops"`
	Collections []string       `json:"collections"`
	HasSaver    bool           `json:"has_saver_def"`
}

var programs = []string{
	"conv", "embedding", "mlp_adam", "mlp_dropout", "queue_pipeline", "softmax_no_saver", "softmax_ref", "softmax_resource",
}

func readManifest(t *testing.T, name string) (m manifest) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../fixtures/graphs", name, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseExported(t *testing.T) {
	for _, name := range programs {
		t.Run(name, func(t *testing.T) {
			want := readManifest(t, name)
			g, err := Parse(exported(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Ops, g.Ops()); diff != "" {
				t.Errorf("ops: %s", diff)
			}
			if diff := cmp.Diff(want.Collections, g.Collections()); diff != "" {
				t.Errorf("collections: %s", diff)
			}
			if g.TrainOp() != want.TrainOp {
				t.Errorf("train op %q, want %q", g.TrainOp(), want.TrainOp)
			}
			var feeds []string
			for _, p := range g.Placeholders() {
				feeds = append(feeds, p.Name)
			}
			slices.Sort(feeds)
			if !slices.Equal(feeds, want.Feeds) {
				t.Errorf("placeholders %v, want %v", feeds, want.Feeds)
			}
			savers, err := g.Savers()
			if err != nil || (len(savers) == 1) != want.HasSaver {
				t.Errorf("%d savers, %v", len(savers), err)
			}
			if len(g.Initializers()) != len(g.Variables()) {
				t.Errorf("%d initializers for %d variables", len(g.Initializers()), len(g.Variables()))
			}
		})
	}
}

func TestParsedDetails(t *testing.T) {
	g, err := Parse(exported(t, "mlp_adam"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Placeholder{
		{"x:0", float, MakeShape(-1, 64)},
		{"y:0", tfpb.DataType_DT_INT64, MakeShape(-1)},
	}
	if diff := cmp.Diff(want, g.Placeholders()); diff != "" {
		t.Errorf("placeholders: %s", diff)
	}
	var names []string
	for _, v := range g.TrainableVariables() {
		names = append(names, v.Name()+" "+v.DType.String()+" "+v.Shape.String())
	}
	if diff := cmp.Diff([]string{
		"hidden/kernel DT_FLOAT [64,128]", "hidden/bias DT_FLOAT [128]",
		"logits/kernel DT_FLOAT [128,10]", "logits/bias DT_FLOAT [10]",
	}, names); diff != "" {
		t.Errorf("trainable variables: %s", diff)
	}
	tensor, variable, ok := g.GlobalStep()
	if tensor != "global_step/Read/ReadVariableOp:0" || variable != "global_step" || !ok {
		t.Errorf("global step: %q, %q, %v", tensor, variable, ok)
	}
	if got := g.Summaries(); len(got) != 3 || g.SummaryOp() != "" {
		t.Errorf("summaries %v, merged %q", got, g.SummaryOp())
	}
	n, err := g.Node("hidden/kernel:0")
	if err != nil || n.GetOp() != "VariableV2" {
		t.Errorf("hidden/kernel:0 is %v, %v", n, err)
	}
	if _, err := g.Node("nowhere"); err == nil || err.Error() != "graph: there is no node nowhere" {
		t.Errorf("a node that is not there: %v", err)
	}
}

func TestQueueRunners(t *testing.T) {
	g, err := Parse(exported(t, "queue_pipeline"))
	if err != nil {
		t.Fatal(err)
	}
	runners, err := g.QueueRunners()
	if err != nil || len(runners) != 2 {
		t.Fatalf("%d runners, %v", len(runners), err)
	}
	if len(g.LocalInitializers()) != 1 { // of the epoch counter
		t.Errorf("local initializers %v", g.LocalInitializers())
	}
}

// TestGlobalStep covers where the step may be found, and where not.
func TestGlobalStep(t *testing.T) {
	tests := []struct {
		name   string
		change func(m *tfpb.MetaGraphDef)
		want   string
	}{
		{"collection", func(m *tfpb.MetaGraphDef) {}, "global_step/Read/ReadVariableOp:0"},
		{"by name", func(m *tfpb.MetaGraphDef) { delete(m.CollectionDef, GlobalStepKey) }, "global_step/Read/ReadVariableOp:0"},
		{"as a name", func(m *tfpb.MetaGraphDef) {
			m.CollectionDef[GlobalStepKey] = &tfpb.CollectionDef{Kind: &tfpb.CollectionDef_NodeList_{
				NodeList: &tfpb.CollectionDef_NodeList{Value: []string{"global_step:0"}}}}
		}, "global_step/Read/ReadVariableOp:0"},
		{"float", func(m *tfpb.MetaGraphDef) {
			for _, n := range m.GraphDef.Node {
				if n.Name == "global_step" {
					n.Attr["dtype"] = attr.Type(float)
				}
			}
		}, ""},
		{"no variables", func(m *tfpb.MetaGraphDef) { m.CollectionDef = nil }, ""},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			meta := exported(t, "softmax_resource")
			c.change(meta)
			g, err := Parse(meta)
			if err != nil {
				t.Fatal(err)
			}
			if got, _, ok := g.GlobalStep(); got != c.want || ok != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
}

// TestNamesOfNodesOfFunctions has what an optimizer and a summary in a branch of tf.cond leave in
// the collections: names of nodes that only a function has.
func TestNamesOfNodesOfFunctions(t *testing.T) {
	meta := exported(t, "softmax_resource")
	meta.GraphDef.Library = &tfpb.FunctionDefLibrary{Function: []*tfpb.FunctionDef{
		{NodeDef: []*tfpb.NodeDef{{Name: "Momentum", Op: "NoOp"}, {Name: "seen", Op: "ScalarSummary"}}},
	}}
	for key, name := range map[string]string{TrainOpKey: "Momentum", SummariesKey: "seen:0"} {
		list := meta.CollectionDef[key].GetNodeList()
		list.Value = append([]string{name}, list.Value...)
	}
	g, err := Parse(meta)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.TrainOp(); got != "train" || slices.Contains(g.Summaries(), "seen:0") {
		t.Errorf("train op %q, summaries %q", got, g.Summaries())
	}
	if _, err := g.Complete(); err != nil {
		t.Error(err)
	}
}

func TestParseErrors(t *testing.T) {
	node := func(m *tfpb.MetaGraphDef, name string) *tfpb.NodeDef {
		i := slices.IndexFunc(m.GraphDef.Node, func(n *tfpb.NodeDef) bool { return n.Name == name })
		return m.GraphDef.Node[i]
	}
	names := func(values ...string) *tfpb.CollectionDef {
		return &tfpb.CollectionDef{Kind: &tfpb.CollectionDef_NodeList_{NodeList: &tfpb.CollectionDef_NodeList{Value: values}}}
	}
	wire := func(values ...[]byte) *tfpb.CollectionDef {
		return &tfpb.CollectionDef{Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: values}}}
	}
	tests := []struct {
		name   string
		change func(m *tfpb.MetaGraphDef)
		want   Error // Message: a part of it
	}{
		{"empty", func(m *tfpb.MetaGraphDef) { m.GraphDef = nil }, Error{Message: "has no nodes"}},
		{"no name", func(m *tfpb.MetaGraphDef) { m.GraphDef.Node[3].Name = "" }, Error{Message: "node number 3"}},
		{"no op", func(m *tfpb.MetaGraphDef) { node(m, "MatMul").Op = "" }, Error{Node: "MatMul", Message: "no op"}},
		{"two of a name", func(m *tfpb.MetaGraphDef) { node(m, "x").Name = "y" },
			Error{Node: "y", Op: "Placeholder", Message: "two nodes"}},
		{"input gone", func(m *tfpb.MetaGraphDef) { node(m, "x").Name = "z" },
			Error{Node: "MatMul", Op: "MatMul", Message: "input 0: there is no node x"}},
		{"input unreadable", func(m *tfpb.MetaGraphDef) { node(m, "MatMul").Input[0] = "x:y" },
			Error{Node: "MatMul", Op: "MatMul", Message: `input 0: tensor name "x:y"`}},
		{"control input first", func(m *tfpb.MetaGraphDef) { node(m, "MatMul").Input[0] = "^x" },
			Error{Node: "MatMul", Op: "MatMul", Message: "input 1: MatMul/ReadVariableOp comes after a control input"}},
		{"train op gone", func(m *tfpb.MetaGraphDef) { m.CollectionDef[TrainOpKey] = names("nowhere") },
			Error{Collection: TrainOpKey, Message: "no node nowhere"}},
		{"not a variable", func(m *tfpb.MetaGraphDef) { m.CollectionDef[GlobalVariables] = wire([]byte{0xff}) },
			Error{Collection: GlobalVariables, Message: "not a VariableDef"}},
		{"variable gone", func(m *tfpb.MetaGraphDef) {
			def, _ := proto.Marshal(&tfpb.VariableDef{VariableName: "v:0"})
			m.CollectionDef[LocalVariables] = wire(def)
		}, Error{Collection: LocalVariables, Message: `variable "v:0" has no node`}},
		{"initializer gone", func(m *tfpb.MetaGraphDef) {
			def, _ := proto.Marshal(&tfpb.VariableDef{VariableName: "w:0", InitializerName: "i"})
			m.CollectionDef[GlobalVariables] = wire(def)
		}, Error{Collection: GlobalVariables, Message: "variable w: there is no node i"}},
		{"saver gone", func(m *tfpb.MetaGraphDef) { m.SaverDef.RestoreOpName = "r" },
			Error{Collection: SaversKey, Message: `no node "r"`}},
		{"not a saver", func(m *tfpb.MetaGraphDef) { m.SaverDef, m.CollectionDef[SaversKey] = nil, wire([]byte{1}) },
			Error{Collection: SaversKey, Message: "not a SaverDef"}},
		{"not a queue runner", func(m *tfpb.MetaGraphDef) { m.CollectionDef[QueueRunnersKey] = wire([]byte{1}) },
			Error{Collection: QueueRunnersKey, Message: "not a QueueRunnerDef"}},
		{"queue gone", func(m *tfpb.MetaGraphDef) {
			def, _ := proto.Marshal(&tfpb.QueueRunnerDef{QueueName: "q"})
			m.CollectionDef[QueueRunnersKey] = wire(def)
		}, Error{Collection: QueueRunnersKey, Message: `no node "q"`}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			meta := exported(t, "softmax_resource")
			c.change(meta)
			_, err := Parse(meta)
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if got.Node != c.want.Node || got.Op != c.want.Op || got.Collection != c.want.Collection ||
				!strings.Contains(got.Message, c.want.Message) {
				t.Errorf("got %+v, want %+v", *got, c.want)
			}
			if where := c.want.Node + c.want.Collection; !strings.Contains(err.Error(), where) {
				t.Errorf("error %q does not name %s", err, where)
			}
		})
	}
}

func TestCompleteExported(t *testing.T) {
	for _, name := range programs {
		t.Run(name, func(t *testing.T) {
			meta := exported(t, name)
			before := proto.CloneOf(meta)
			full, err := Complete(meta)
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(meta, before) {
				t.Error("Complete changed its input")
			}
			g, err := Parse(full)
			if err != nil {
				t.Fatal(err)
			}
			if g.InitOp() == "" || g.LocalInitOp() == "" || g.ReadyOp() == "" || g.SummaryOp() == "" || full.SaverDef == nil {
				t.Errorf("init %q, local init %q, ready %q, summary %q, saver %v",
					g.InitOp(), g.LocalInitOp(), g.ReadyOp(), g.SummaryOp(), full.SaverDef)
			}
			init, _ := g.Node(g.InitOp())
			if len(init.GetInput()) != len(g.Variables()) {
				t.Errorf("%s sets %d of %d variables", g.InitOp(), len(init.GetInput()), len(g.Variables()))
			}
			n := len(before.GraphDef.Node)
			if diff := cmp.Diff(before.GraphDef.Node, full.GraphDef.Node[:n], protocmp.Transform()); diff != "" {
				t.Errorf("nodes that were there changed:\n%s", diff)
			}
			again, err := Complete(full)
			if err != nil || !proto.Equal(full, again) {
				t.Errorf("completing what is complete changes it, or fails: %v", err)
			}
		})
	}
}

// TestCompletedSaver compares the saver that Complete adds to a graph exported
// without one with TensorFlow's own for the same program.
func TestCompletedSaver(t *testing.T) {
	want := exported(t, "softmax_ref")
	got, err := Complete(exported(t, "softmax_no_saver"))
	if err != nil {
		t.Fatal(err)
	}
	wantNodes, gotNodes := comparable(want, "save/"), comparable(got, "save/")
	for _, nodes := range []map[string]*tfpb.NodeDef{wantNodes, gotNodes} {
		for _, n := range nodes {
			delete(n.Attr, attrShapes) // TensorFlow infers more than is read back
		}
	}
	if diff := cmp.Diff(wantNodes, gotNodes, protocmp.Transform()); diff != "" {
		t.Errorf("savers differ (- TensorFlow, + ours):\n%s", diff)
	}
}

func TestCompleteErrors(t *testing.T) {
	if _, err := Complete(&tfpb.MetaGraphDef{}); err == nil {
		t.Error("an empty MetaGraphDef was completed")
	}
	meta := exported(t, "softmax_no_saver")
	def, _ := proto.Marshal(&tfpb.VariableDef{VariableName: "w:0"})
	meta.CollectionDef[GlobalVariables].GetBytesList().Value = [][]byte{def}
	if _, err := Complete(meta); err == nil || !strings.Contains(err.Error(), "variable w: it has no initializer") {
		t.Errorf("got %v", err)
	}
}

func TestSavedAs(t *testing.T) {
	v := &Variable{Def: &tfpb.VariableDef{SaveSliceInfoDef: &tfpb.SaveSliceInfoDef{
		FullName: "w", FullShape: []int64{10, 4}, VarOffset: []int64{5, 0}, VarShape: []int64{3, 4},
	}}}
	if key, slice := v.savedAs(); key != "w" || slice != "10 4 5,3:0,4" {
		t.Errorf("saved as %q, %q", key, slice)
	}
}

// FuzzComplete: whatever is read must not panic, and what is completed must
// pass the checks itself.
func FuzzComplete(f *testing.F) {
	small, _, _, _ := softmax()
	small.AddSaver()
	small.ScalarSummary("s", "s", small.Const("c", literal.Float(1)))
	meta, err := small.MetaGraph()
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []*tfpb.MetaGraphDef{meta, exported(f, "softmax_no_saver")} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		meta := &tfpb.MetaGraphDef{}
		if proto.Unmarshal(data, meta) != nil {
			return
		}
		full, err := Complete(meta)
		if err != nil {
			return
		}
		if _, err := Parse(full); err != nil {
			t.Errorf("a completed graph does not parse: %v", err)
		}
	})
}

// TestCompleteOpensWriters: the local init op opens the summary writers, whether the
// program made one or not.
func TestCompleteOpensWriters(t *testing.T) {
	for _, own := range []string{"", "own"} {
		meta := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{}, CollectionDef: map[string]*tfpb.CollectionDef{}}
		for key, name := range map[string]string{LocalInitOpKey: own, summaryWriters: "open"} {
			if name != "" {
				meta.GraphDef.Node = append(meta.GraphDef.Node, &tfpb.NodeDef{Name: name, Op: "NoOp"})
				meta.CollectionDef[key] = &tfpb.CollectionDef{Kind: &tfpb.CollectionDef_NodeList_{NodeList: &tfpb.CollectionDef_NodeList{Value: []string{name}}}}
			}
		}
		full, err := Complete(meta)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Complete(full); err != nil || !proto.Equal(full, again) {
			t.Errorf("completing what is complete changes it, or fails: %v", err)
		}
		g, err := Parse(full)
		if err != nil {
			t.Fatal(err)
		}
		init, err := g.Node(g.LocalInitOp())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(init.GetInput(), "^open") || own != "" && !slices.Contains(init.GetInput(), "^own") {
			t.Errorf("the local init op of a program with %q runs %q", own, init.GetInput())
		}
		if n := len(g.Names(LocalInitOpKey)); n != 1 {
			t.Errorf("%d local init ops", n)
		}
	}
}
