package rewrite

import (
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/metagraph"
	"github.com/trainerd/trainerd/internal/lazyregexp"
	tfpb "github.com/trainerd/trainerd/proto"
)

// applyOp is an op by which an optimizer changes a variable, its first input.
var applyOp = lazyregexp.New(`^(?:Resource)?(?:Sparse)?Apply`)

// The inputs of a save op before the tensors to save.
const (
	inputTensorNames = 1
	inputFirstTensor = 3
)

// savedGraph is the graph of the MetaGraph next to a checkpoint.
type savedGraph map[string]*tfpb.NodeDef

// graphSlots returns the names in a checkpoint of the slots of its optimizers, as the
// MetaGraph next to it shows them: variables that the op which trains another takes
// with it. A program may give an optimizer any name, and its slots have that. Without
// a MetaGraph that can be read there are none.
func (s *Source) graphSlots() map[string]bool {
	slots := make(map[string]bool)
	if !s.kind.IsCheckpoint() {
		return slots
	}
	meta, err := metagraph.ReadSaved(layout.MetaName(s.name))
	if err != nil {
		return slots
	}
	g := make(savedGraph)
	for _, n := range meta.GetGraphDef().GetNode() {
		g[n.GetName()] = n
	}
	kept := g.optimizerVariables()
	for _, n := range g {
		if n.GetOp() == "SaveV2" || n.GetOp() == "SaveSlices" {
			g.addSaved(slots, n, kept)
		}
	}
	return slots
}

// optimizerVariables returns the nodes of the variables that ops of optimizers take
// besides the one that they train.
func (g savedGraph) optimizerVariables() map[string]bool {
	kept, trained := make(map[string]bool), make(map[string]bool)
	for _, n := range g {
		if !applyOp().MatchString(n.GetOp()) || len(n.GetInput()) == 0 {
			continue
		}
		trained[nodeOf(n.GetInput()[0])] = true
		for _, input := range n.GetInput()[1:] {
			if name := nodeOf(input); g.isVariable(name) {
				kept[name] = true
			}
		}
	}
	for name := range trained {
		delete(kept, name)
	}
	return kept
}

// addSaved adds the names under which a save op saves any of the variables.
func (g savedGraph) addSaved(names map[string]bool, save *tfpb.NodeDef, variables map[string]bool) {
	inputs := save.GetInput()
	if len(inputs) < inputFirstTensor {
		return
	}
	list, err := ckptfmt.TensorFromProto(g[nodeOf(inputs[inputTensorNames])].GetAttr()["value"].GetTensor())
	if err != nil {
		return
	}
	for i, input := range inputs[inputFirstTensor:] {
		if i < len(list.Strings) && variables[g.variableOf(input)] {
			names[string(list.Strings[i])] = true
		}
	}
}

// variableOf returns the variable whose value an input is, "" for something else.
func (g savedGraph) variableOf(input string) string {
	for range len(g) { // a damaged graph may have a circle
		name := nodeOf(input)
		if g.isVariable(name) {
			return name
		}
		n := g[name]
		if op := n.GetOp(); (op != "Identity" && op != "ReadVariableOp") || len(n.GetInput()) == 0 {
			return ""
		}
		input = n.GetInput()[0]
	}
	return ""
}

func (g savedGraph) isVariable(name string) bool {
	switch g[name].GetOp() {
	case "Variable", "VariableV2", "VarHandleOp":
		return true
	}
	return false
}

// nodeOf returns the node that an input comes from.
func nodeOf(input string) string {
	name, _, _ := strings.Cut(input, ":")
	return name
}
