package graph

import (
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestIteratorsAreInitialised has the local init op of a completed graph run the initializers
// that TensorFlow's programs run themselves.
func TestIteratorsAreInitialised(t *testing.T) {
	node := func(name, op string, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs}
	}
	common := []*tfpb.NodeDef{
		node("it", "IteratorV2"), node("set", "RangeDataset"), node("other", "RangeDataset"), node("next", "IteratorGetNext", "it"),
		node("x", "Placeholder"), node("fed", "RangeDataset", "x"), node("by_name", "IteratorFromStringHandleV2", "x"),
	}
	train, test := node("train", "MakeIterator", "set", "it"), node("test", "MakeIterator", "other", "it")
	tests := []struct {
		name, own string // own: the graph's local init op
		nodes     []*tfpb.NodeDef
		want      []string
	}{
		{"one", "", []*tfpb.NodeDef{train}, []string{"train"}},
		{"one, and another local init op", "own", []*tfpb.NodeDef{train, node("own", "NoOp")}, []string{"own", "train"}},
		{"one that the local init op runs", "own", []*tfpb.NodeDef{train, node("own", "NoOp", "^train")}, []string{"train"}},
		{"several", "", []*tfpb.NodeDef{train, test}, nil},
		{"fed", "", []*tfpb.NodeDef{node("train", "MakeIterator", "fed", "it")}, nil},
		{"by a handle", "", []*tfpb.NodeDef{node("train", "MakeIterator", "set", "by_name")}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			meta := &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: slices.Concat(common, test.nodes)}, CollectionDef: map[string]*tfpb.CollectionDef{}}
			if test.own != "" {
				meta.CollectionDef[LocalInitOpKey] = &tfpb.CollectionDef{
					Kind: &tfpb.CollectionDef_NodeList_{NodeList: &tfpb.CollectionDef_NodeList{Value: []string{test.own}}}}
			}
			g, err := Parse(meta)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // what is complete is left alone
				if g, err = g.Complete(); err != nil {
					t.Fatal(err)
				}
			}
			init, err := g.Node(g.LocalInitOp())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, in := range init.GetInput() {
				got = append(got, NodeName(in))
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("the local init op runs %q; want %q", got, test.want)
			}
			for _, it := range g.Iterators() {
				if got, want := g.InitializedBy(it, []string{g.LocalInitOp()}), slices.Contains(test.want, "train"); got != want {
					t.Errorf("%s is initialised: %v", it.Name, got)
				}
			}
		})
	}
}
