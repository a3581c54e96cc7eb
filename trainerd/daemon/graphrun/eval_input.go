package graphrun

import (
	"fmt"
	"slices"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
)

// inputEffects begin the names of ops that change what later steps get: an
// evaluation that runs one takes rows from the training.
var inputEffects = []string{"QueueDequeue", "QueueEnqueue", "QueueClose", "ReaderRead", "ReaderReset", "ReaderRestore",
	"IteratorGetNext", "MakeIterator", "BarrierTake", "BarrierInsert", "Unstage", "Stage", "MapStage", "MapUnstage",
	"OrderedMapStage", "OrderedMapUnstage", "LookupTableInsert", "LookupTableImport", "LookupTableRemove", "RecordInput"}

func changesInput(n *tfpb.NodeDef) bool {
	op := n.GetOp()
	return strings.HasSuffix(op, "AccumulatorTakeGradient") || strings.HasSuffix(op, "AccumulatorApplyGradient") ||
		slices.ContainsFunc(inputEffects, func(prefix string) bool { return strings.HasPrefix(op, prefix) })
}

// checkEvaluated makes sure that evaluations leave the training's input alone.
// What the config asks for must do so. The loss, which is evaluated at the end
// unasked, is left out if it does not.
func (j *graphJob) checkEvaluated(fed map[string]bool) {
	e := j.config.Eval
	asked := len(e.Fetches) > 0 || e.Steps > 0 || e.Secs > 0 || e.KeepBest > 0
	j.p.Metrics = slices.DeleteFunc(j.p.Metrics, func(m program.Metric) bool {
		by := j.g.inputTaken(fed, m.Tensor)
		if by == "" {
			return false
		}
		if asked {
			j.Require(false, "eval.fetches", fmt.Sprintf("%s is computed from what %s takes, so an evaluation would take it from the training", m.Name, by),
				"feed a tensor before that in graph.eval_feeds, or fetch what depends on feeds alone")
		}
		return true
	})
}

// inputTaken returns a node that changes the training's input and has to run for
// a tensor when some tensors are fed, "" for none. A function counts as what it
// calls.
func (g *graphFile) inputTaken(fed map[string]bool, tensor string) string {
	functions := make(map[string]*tfpb.FunctionDef)
	for _, f := range g.Meta.GetGraphDef().GetLibrary().GetFunction() {
		functions[f.GetSignature().GetName()] = f
	}
	taken := ""
	g.walk(fed, []string{tensor}, func(n *tfpb.NodeDef) bool {
		if taken == "" && (changesInput(n) || callsInput(functions, n, map[string]bool{})) {
			taken = n.GetName()
		}
		return taken == ""
	})
	return taken
}

// callsInput reports whether a node calls a function with such an op. The
// functions of a data set run when the iterator is asked, which is such an op
// itself.
func callsInput(functions map[string]*tfpb.FunctionDef, n *tfpb.NodeDef, seen map[string]bool) bool {
	if strings.HasSuffix(n.GetOp(), "Dataset") || strings.HasPrefix(n.GetOp(), "OneShotIterator") {
		return false
	}
	for _, name := range graph.CalledBy(n, functions) {
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, inner := range functions[name].GetNodeDef() {
			if changesInput(inner) || callsInput(functions, inner, seen) {
				return true
			}
		}
	}
	return false
}
