package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A step on servers may wait without end for what others put into a queue, or
// take out of it. From outside it looks like one that computes, and a stop must
// end the one and let the other finish. So each op of a step that may wait has
// two variables next to it: one is set to the number of the step once all inputs
// of the op are there, the other one once the op has run. An op whose inputs are
// there and that has not run waits.
const (
	marksScope  = tagScope + "marks/"
	marksNumber = marksScope + "number"
	opReached   = "reached"
	opDone      = "done"
)

// markedOp is an op of a step that may wait.
type markedOp struct {
	node  string
	scope string // of its variables
}

func (m markedOp) set(which string) string  { return m.scope + which + "/set" }
func (m markedOp) read(which string) string { return m.scope + which + "/read" }

// addMarks adds the variables to a graph for the ops of a step that may wait, and
// returns these.
func (t *Task) addMarks(def *tfpb.GraphDef) []markedOp {
	finder := newWaitFinder(def)
	number := attr.Type(tfpb.DataType_DT_INT64)
	scalar := attr.Shape(graph.MakeShape().Proto())
	var marked []markedOp
	for _, n := range finder.find(t.stepRoots()) {
		m := markedOp{node: n.GetName(), scope: fmt.Sprintf("%s%d/%d/", marksScope, t.config.Cluster.Task, len(marked))}
		if len(marked) == 0 {
			def.Node = append(def.Node, &tfpb.NodeDef{Name: marksNumber, Op: "Placeholder", Attr: graph.Attrs{"dtype": number, "shape": scalar}})
		}
		add := nodeAdder(def, m.node)
		for which, after := range map[string][]string{opReached: controls(n.GetInput()...), opDone: controls(m.node)} {
			id := m.scope + which
			add(id, "VarHandleOp", graph.Attrs{"dtype": number, "shape": scalar, "shared_name": attr.String(id)})
			add(m.read(which), "ReadVariableOp", graph.Attrs{"dtype": number}, id)
			add(m.set(which), "AssignVariableOp", graph.Attrs{"dtype": number}, append([]string{id, marksNumber}, after...)...)
		}
		marked = append(marked, m)
	}
	return marked
}

// stepRoots returns what every step runs or fetches.
func (t *Task) stepRoots() []string {
	roots := slices.Concat(t.program.Train, program.NonEmpty(t.program.Loss))
	for _, m := range t.program.Show {
		roots = append(roots, m.Tensor)
	}
	return roots
}

// controls returns control inputs that wait for the nodes of inputs.
func controls(inputs ...string) []string {
	var list []string
	for _, name := range inputs {
		if c := "^" + nodeOfInput(name); !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// number draws the number of a step, feeds it, and returns the ops that set the
// variables to it.
func (t *Task) number(f program.Feed) (number int64, targets []string) {
	if len(t.marked) == 0 {
		return 0, nil
	}
	number = rand.Int64()
	f[marksNumber] = &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Data: binary.LittleEndian.AppendUint64(nil, uint64(number))}
	for _, m := range t.marked {
		targets = append(targets, m.set(opReached), m.set(opDone))
	}
	return number, targets
}

// waitsFor returns the op that the step of a number waits in, "" if it computes
// or that is not known.
func (t *Task) waitsFor(ctx context.Context, sess session.Session, number int64) string {
	isSet := func(m markedOp, which string) (bool, error) {
		out, err := sess.Run(ctx, nil, []string{m.read(which)}, nil)
		if errors.Is(err, session.ErrFailedPrecondition) {
			return false, nil // never set
		}
		if err != nil {
			return false, err
		}
		value, err := session.ScalarInt(out[0])
		return value == number, err
	}
	for _, m := range t.marked {
		done, err := isSet(m, opDone)
		if done || err != nil {
			continue
		}
		if reached, err := isSet(m, opReached); reached && err == nil {
			return m.node
		}
	}
	return ""
}

// waitFinder finds ops that may wait.
type waitFinder struct {
	nodes map[string]*tfpb.NodeDef
	depth map[string]int // of loops around a node
}

func newWaitFinder(def *tfpb.GraphDef) *waitFinder {
	f := &waitFinder{nodes: make(map[string]*tfpb.NodeDef), depth: make(map[string]int)}
	for _, n := range def.GetNode() {
		f.nodes[n.GetName()] = n
	}
	return f
}

// find returns those that the named ones need. Those in loops are left out: they
// run many times in a step.
func (f *waitFinder) find(roots []string) []*tfpb.NodeDef {
	var found []*tfpb.NodeDef
	seen := make(map[string]bool)
	for stack := slices.Clone(roots); len(stack) > 0; {
		name := nodeOfInput(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		n := f.nodes[name]
		if n == nil || seen[name] {
			continue
		}
		seen[name] = true
		if program.MayWait(n) && f.loops(name) == 0 {
			found = append(found, n)
		}
		stack = append(stack, n.GetInput()...)
	}
	slices.SortFunc(found, func(a, b *tfpb.NodeDef) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found
}

// loops returns how many loops a node is in.
func (f *waitFinder) loops(name string) int {
	n := f.nodes[name]
	if n == nil || n.GetOp() == "NextIteration" || n.GetOp() == "RefNextIteration" {
		return 0 // the other input of its Merge knows
	}
	if depth, ok := f.depth[name]; ok {
		return depth
	}
	f.depth[name] = 0
	depth := 0
	for _, input := range n.GetInput() {
		depth = max(depth, f.loops(nodeOfInput(input)))
	}
	switch n.GetOp() {
	case "Enter", "RefEnter":
		depth++
	case "Exit", "RefExit":
		depth--
	}
	f.depth[name] = depth
	return depth
}
