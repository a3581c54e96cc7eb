package graph

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

const float = tfpb.DataType_DT_FLOAT

// exported reads a MetaGraphDef that TensorFlow exported.
func exported(t testing.TB, name string) *tfpb.MetaGraphDef {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../fixtures/graphs", name, "graph.meta"))
	if err != nil {
		t.Fatal(err)
	}
	meta := &tfpb.MetaGraphDef{}
	if err := proto.Unmarshal(data, meta); err != nil {
		t.Fatal(err)
	}
	return meta
}

// comparable returns the nodes whose names have the prefix, by name, without
// the attributes in which TensorFlow notes how a graph came about, and without
// those that are younger than the op and at their default.
func comparable(meta *tfpb.MetaGraphDef, prefix string) map[string]*tfpb.NodeDef {
	nodes := map[string]*tfpb.NodeDef{}
	for _, n := range meta.GetGraphDef().GetNode() {
		if !strings.HasPrefix(n.GetName(), prefix) {
			continue
		}
		n = proto.CloneOf(n)
		n.Device = ""
		for _, attr := range []string{attrColocation, "_has_manual_control_dependencies", "allowed_devices", "debug_name", "grad_a", "grad_b"} {
			delete(n.Attr, attr)
		}
		nodes[n.GetName()] = n
	}
	return nodes
}

// softmax builds the variables and the input of the fixture softmax_resource.
func softmax() (b *Builder, step, w, bias *Variable) {
	b = NewBuilder()
	initial := TruncatedNormal(0, .1, Seeds{7, 1})
	step = b.GlobalStep()
	b.Placeholder("x", float, MakeShape(-1, 64))
	b.Placeholder("y", tfpb.DataType_DT_INT64, MakeShape(-1))
	w = b.Variable(VariableSpec{Name: "w", DType: float, Shape: MakeShape(64, 10), Initial: initial, Trainable: true})
	bias = b.Variable(VariableSpec{Name: "b", DType: float, Shape: MakeShape(10), Initial: Zeros(), Trainable: true})
	return b, step, w, bias
}

// TestAgainstTensorFlow compares what the Builder adds with what TensorFlow
// exported for the same program.
func TestAgainstTensorFlow(t *testing.T) {
	want := exported(t, "softmax_resource")
	b, _, _, _ := softmax()
	b.AddSaver()
	got, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"x", "y", "global_step", "w", "b/", "save/"} {
		t.Run(prefix, func(t *testing.T) {
			nodes := comparable(got, prefix)
			if len(nodes) == 0 {
				t.Fatal("no nodes")
			}
			if diff := cmp.Diff(comparable(want, prefix), nodes, protocmp.Transform()); diff != "" {
				t.Errorf("nodes differ (- TensorFlow, + ours):\n%s", diff)
			}
		})
	}
	for _, collection := range []string{GlobalVariables, TrainableVariables, GlobalStepKey} {
		if diff := cmp.Diff(want.CollectionDef[collection], got.CollectionDef[collection], protocmp.Transform()); diff != "" {
			t.Errorf("collection %s differs (- TensorFlow, + ours):\n%s", collection, diff)
		}
	}
	if diff := cmp.Diff(want.SaverDef, got.SaverDef, protocmp.Transform(), protocmp.IgnoreFields(&tfpb.SaverDef{}, "max_to_keep")); diff != "" {
		t.Errorf("SaverDef differs (- TensorFlow, + ours):\n%s", diff)
	}
}

func TestBuilderErrors(t *testing.T) {
	tests := []struct {
		name  string
		build func(b *Builder)
		want  string
	}{
		{"nothing", func(b *Builder) {}, "no nodes"},
		{"name", func(b *Builder) { b.Group("a b") }, `node "a b" (NoOp): not a name`},
		{"twice", func(b *Builder) { b.Group("a"); b.Group("a/") }, "node a (NoOp): there is a node of this name"},
		{"no input", func(b *Builder) { b.Relu("r", Output{}) }, "node r (Relu): input 0 is missing"},
		{"matmul", func(b *Builder) {
			b.MatMul("m", b.Placeholder("x", float, MakeShape(-1, 3)), b.Placeholder("y", float, MakeShape(4, 2)), false, false)
		}, "node m (MatMul): shapes [?,3] and [4,2] have different inner dimensions"},
		{"add", func(b *Builder) {
			b.Scope("s", func() {
				b.AddV2("a", b.Placeholder("x", float, MakeShape(3)), b.Placeholder("y", float, MakeShape(4)))
			})
		}, "node s/a (AddV2): shapes [3] and [4] cannot be broadcast"},
		{"types", func(b *Builder) {
			b.Mul("m", b.Const("x", literal.Float(1)), b.Const("y", literal.Int32(1)))
		}, "node m (Mul): inputs of types DT_FLOAT and DT_INT32"},
		{"add nothing", func(b *Builder) { b.AddN("a") }, "node a (AddN): no inputs"},
		{"pack nothing", func(b *Builder) { b.Pack("p") }, "node p (Pack): no inputs"},
		{"rank", func(b *Builder) { b.Mean("m", b.Placeholder("x", float, UnknownShape)) }, "node m (Mean): the rank of x:0 is not known"},
		{"initial value", func(b *Builder) {
			b.Variable(VariableSpec{Name: "v", DType: float, Shape: MakeShape(2), Initial: Value(literal.Int64(1))})
		}, "variable v: initial value is DT_INT64 [], want DT_FLOAT [2]"},
		{"saver", func(b *Builder) { b.Group("a"); b.AddSaver() }, "saver: the graph has no variables"},
		{"collection", func(b *Builder) { b.AddNodes("c", "a"); b.AddBytes("c", nil) }, "collection c: holds no messages"},
		{"collection of messages", func(b *Builder) { b.AddBytes("c", nil); b.AddNodes("c", "a") }, "collection c: holds no names"},
		{"gradients of a vector", func(b *Builder) {
			x := b.Placeholder("x", float, MakeShape(2))
			b.Gradients(b.Relu("r", x), []Output{x})
		}, "gradients of r:0: its shape is [2], want a scalar"},
		{"gradient of a backprop", func(b *Builder) {
			x := b.Placeholder("x", float, MakeShape(2, 3))
			loss := b.SparseSoftmaxCrossEntropyWithLogits("s", x, b.Placeholder("y", tfpb.DataType_DT_INT64, MakeShape(2)))
			b.Gradients(b.Sum("", loss.Node.Output(1)), []Output{x})
		}, "node s (SparseSoftmaxCrossEntropyWithLogits): its second output has no gradient"},
		{"no gradient", func(b *Builder) {
			x := b.Placeholder("x", float, Shape{})
			b.Gradients(b.Floor("f", x), []Output{x})
		}, "node f (Floor): this op has no gradient; those that have one: AddN, "},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder()
			c.build(b)
			b.Group("after") // the first mistake counts
			if c.name == "nothing" {
				b = NewBuilder()
			}
			meta, err := b.MetaGraph()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", meta, err, c.want)
			}
		})
	}
}

func TestControlInputsAreSortedAndSingle(t *testing.T) {
	b := NewBuilder()
	z, a := b.Group("z"), b.Group("a")
	var n *Node
	b.After([]*Node{z}, func() { n = b.Group("n", a, z, nil) })
	if diff := cmp.Diff([]string{"^a", "^z"}, n.def.Input); diff != "" {
		t.Error(diff)
	}
}

func TestLocalVariables(t *testing.T) {
	b, _, _, _ := softmax()
	b.Variable(VariableSpec{Name: "seen", DType: float, Initial: Zeros(), Local: true})
	init, local := b.AddInit()
	ready, early := b.AddReady()
	b.AddSaver()
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"^b/Assign", "^global_step/Assign", "^w/Assign"}, init.def.Input); diff != "" {
		t.Errorf("init op: %s", diff)
	}
	if diff := cmp.Diff([]string{"^seen/Assign"}, local.def.Input); diff != "" {
		t.Errorf("local init op: %s", diff)
	}
	if r, e := namesAskedFor(ready), namesAskedFor(early); len(r) != 4 || len(e) != 3 || slices.Contains(e, "seen") {
		t.Errorf("ready op asks for %v, the one before local init for %v", r, e)
	}
	if saved := comparable(meta, "save/SaveV2/tensor_names")["save/SaveV2/tensor_names"]; strings.Contains(saved.String(), "seen") {
		t.Error("the saver saves a local variable")
	}
	g, err := Parse(meta)
	if err != nil {
		t.Fatal(err)
	}
	if g.ReadyForLocalInitOp() != early.Name() || g.ReadyOp() != ready.Name() || g.LocalInitOp() != local.Name() {
		t.Errorf("collections name %q, %q, %q", g.ReadyForLocalInitOp(), g.ReadyOp(), g.LocalInitOp())
	}
	if len(g.LocalVariables()) != 1 || len(g.Variables()) != 3 || len(g.TrainableVariables()) != 2 {
		t.Errorf("%d local, %d global, %d trainable variables; want 1, 3, 2",
			len(g.LocalVariables()), len(g.Variables()), len(g.TrainableVariables()))
	}
}

// namesAskedFor returns the names from which a ready op picks.
func namesAskedFor(ready Output) (names []string) {
	for _, s := range ready.Node.inputs[0].Node.def.Attr["value"].GetTensor().GetStringVal() {
		names = append(names, string(s))
	}
	return names
}

func TestReadyWithoutVariables(t *testing.T) {
	b := NewBuilder()
	ready, _ := b.AddReady()
	if err := b.Err(); err != nil || ready.Shape().String() != "[0]" {
		t.Errorf("ready op of a graph without variables: %v, shape %v", err, ready.Shape())
	}
}

func TestInitialValues(t *testing.T) {
	tests := []struct {
		name    string
		initial Initial
		shape   Shape
		want    []string // ops, sorted
		value   float32  // of the node "value", if any
		node    string
	}{
		{"small zeros", Zeros(), MakeShape(999), []string{"Const"}, 0, "zeros"},
		{"large zeros", Zeros(), MakeShape(1000), []string{"Const", "Const", "Fill"}, 0, "zeros/Const"},
		{"ones", Ones(), MakeShape(2), []string{"Const"}, 1, "ones"},
		{"constant", Constant(.5), MakeShape(50, 20), []string{"Const", "Const", "Fill"}, .5, "Const/Const"},
		{"uniform", RandomUniform(-1, 2, Seeds{}), MakeShape(3), []string{"AddV2", "Const", "Const", "Const", "Mul", "RandomUniform", "Sub"}, 2, "random_uniform/max"},
		{"normal", TruncatedNormal(1, 2, Seeds{}), MakeShape(3), []string{"AddV2", "Const", "Const", "Const", "Mul", "TruncatedNormal"}, 2, "truncated_normal/stddev"},
		{"glorot matrix", GlorotUniform(Seeds{}), MakeShape(64, 128), nil, 0.17677669, "random_uniform/max"},
		{"glorot matrix, low", GlorotUniform(Seeds{}), MakeShape(128, 10), nil, -0.2085144, "random_uniform/min"},
		{"glorot vector", GlorotUniform(Seeds{}), MakeShape(3), nil, 1, "random_uniform/max"},
		{"glorot convolution", GlorotUniform(Seeds{}), MakeShape(3, 3, 2, 4), nil, 0.33333334, "random_uniform/max"},
		{"glorot normal", GlorotNormal(Seeds{}), MakeShape(4, 4), nil, 0.5684236, "truncated_normal/stddev"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder()
			out := c.initial(b, c.shape)
			if b.Err() != nil || !out.Shape().Equal(c.shape) || out.DType() != float {
				t.Fatalf("got %v %v, %v", out.DType(), out.Shape(), b.Err())
			}
			var ops []string
			for _, n := range b.nodes {
				ops = append(ops, n.Op())
			}
			slices.Sort(ops)
			if c.want != nil && !slices.Equal(ops, c.want) {
				t.Errorf("ops %v, want %v", ops, c.want)
			}
			n := b.byName[c.node]
			if n == nil {
				t.Fatalf("no node %s among %v", c.node, slices.Sorted(maps.Keys(b.byName)))
			}
			if got := n.def.Attr["value"].GetTensor().GetFloatVal()[0]; got != c.value {
				t.Errorf("%s = %v, want %v", c.node, got, c.value)
			}
		})
	}
}
