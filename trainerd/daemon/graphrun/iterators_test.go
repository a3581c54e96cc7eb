package graphrun

import (
	"slices"
	"strings"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// TestIteratorsOfTheStep asks for the initializer of an iterator that the step uses and that
// has several, or one that must be fed.
func TestIteratorsOfTheStep(t *testing.T) {
	node := func(name, op string, inputs ...string) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: name, Op: op, Input: inputs}
	}
	common := []*tfpb.NodeDef{
		node("it", "IteratorV2"), node("unused", "IteratorV2"), node("set", "RangeDataset"), node("x", "Placeholder"),
		node("fed", "RangeDataset", "x"), node("step", "IteratorGetNext", "it"), node("no", "MakeIterator", "fed", "unused"),
	}
	train, test := node("train", "MakeIterator", "set", "it"), node("test", "MakeIterator", "set", "it")
	tests := []struct {
		name       string
		init       []string
		nodes      []*tfpb.NodeDef
		runs, want string
	}{
		{"one", nil, []*tfpb.NodeDef{train}, "local_init", ""},
		{"several", nil, []*tfpb.NodeDef{train, test}, "local_init", "graph.init: the iterator it is not initialised; name one of train, test"},
		{"several, with a choice", []string{"train"}, []*tfpb.NodeDef{train, test}, "local_init train", ""},
		{"no such op", []string{"trian"}, []*tfpb.NodeDef{train}, "local_init", "graph.init: trian: g.meta has no node trian; did you mean train?"},
		{"fed", nil, []*tfpb.NodeDef{node("train", "MakeIterator", "fed", "it")}, "local_init",
			"graph.init: the iterator it is initialised by train, which needs a placeholder"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := graph.Parse(&tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: slices.Concat(common, test.nodes)}})
			if err != nil {
				t.Fatal(err)
			}
			full, err := g.Complete()
			if err != nil {
				t.Fatal(err)
			}
			c := &config.Config{}
			c.Graph.Init = test.init
			p := &program.Program{Train: []string{"step"}, LocalInit: []string{full.LocalInitOp()}}
			j := &graphJob{Validator: config.NewValidator(c), config: c, g: &graphFile{Graph: g, name: "g.meta"}, p: p}
			j.initialise(full)
			if err := j.Err(); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := strings.Join(p.LocalInit, " "); got != test.runs {
				t.Errorf("each session runs %q, want %q", got, test.runs)
			}
		})
	}
}
