package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A step on servers may wait without end for what others put into a queue, or
// take out of it. From outside it looks like one that computes, and a stop must
// end the one and let the other finish. So each op of a step that may wait has
// two counters next to it: of the times that all its inputs were there, and of
// the times that it has run. While they differ the op waits, or runs at this
// moment; an op that waits has the same counts a second later, and one in a loop
// that computes has others.
//
// A counter is an accumulator of gradients, which counts what it is given and is
// made by its first user: nothing has to be initialised, and a counter
// that nobody has used reads 0. Its nodes are in the frame or the function of the
// op. Nothing of the step depends on them, and none of them waits.
const (
	marksScope = tagScope + "marks/"
	opReached  = "reached"
	opDone     = "done"
)

// markedOp is an op of a step that may wait.
type markedOp struct {
	path    string   // the node, and the functions that it is in
	scope   string   // of the nodes that count for it
	targets []string // what a step has to run for it; the counters in a function run with it
}

func (m markedOp) count(which string) string { return m.scope + which + "/count" }

// addMarks adds to a graph what shows which op a step waits in, and returns the
// ops that it may wait in.
func (t *Task) addMarks(def *tfpb.GraphDef) []markedOp {
	m := marker{def: def, task: t.config.Cluster.Task, container: attr.String("trainerd-" + rand.Text())}
	for _, w := range findWaits(def, t.stepRoots()) {
		m.mark(w)
	}
	return m.marked
}

// stepRoots returns what every step runs or fetches.
func (t *Task) stepRoots() []string {
	roots := slices.Concat(t.program.Train, program.NonEmpty(t.program.Loss))
	for _, m := range t.program.Show {
		roots = append(roots, m.Tensor)
	}
	return roots
}

// marker adds nodes next to ops. What an earlier session has left on the servers
// is in another container.
type marker struct {
	def       *tfpb.GraphDef
	task      int
	container *tfpb.AttrValue
	marked    []markedOp
}

// mark adds the counters of an op, and the nodes that read them.
func (m *marker) mark(w waitingOp) {
	op := markedOp{path: w.path, scope: fmt.Sprintf("%s%d/%d/", marksScope, m.task, len(m.marked))}
	for _, which := range []string{opReached, opDone} {
		name, after := op.scope+which, controls(w.node.GetInput()...)
		if which == opDone {
			after = controls(w.node.GetName())
		}
		m.def.Node = append(m.def.Node, m.counter(name+"/read", name, w.device),
			&tfpb.NodeDef{Name: op.count(which), Op: "AccumulatorNumAccumulated", Input: []string{name + "/read"}, Device: w.device})
		add := m.addition(name, w, after)
		target := add[len(add)-1].GetName()
		if w.function == nil {
			m.def.Node = append(m.def.Node, add...)
			op.targets = append(op.targets, target)
			continue
		}
		w.function.NodeDef = append(w.function.NodeDef, add...)
		addEffect(w.function, target)
	}
	m.marked = append(m.marked, op)
}

// counter returns a node that makes or finds a counter.
func (m *marker) counter(node, name, device string, inputs ...string) *tfpb.NodeDef {
	return &tfpb.NodeDef{Name: node, Op: "ConditionalAccumulator", Input: inputs, Device: device, Attr: graph.Attrs{
		"dtype": attr.Type(tfpb.DataType_DT_FLOAT), "shape": attr.Shape(graph.MakeShape().Proto()),
		"shared_name": attr.String(name), "container": m.container}}
}

// addition returns nodes that count once after others have run. Each begins after
// those, which is what puts it into their frame.
func (m *marker) addition(name string, w waitingOp, after []string) []*tfpb.NodeDef {
	device := w.node.GetDevice()
	constant := func(node string, kind tfpb.DataType, value *tfpb.TensorProto) *tfpb.NodeDef {
		return &tfpb.NodeDef{Name: node, Op: "Const", Input: after, Device: device,
			Attr: graph.Attrs{"dtype": attr.Type(kind), "value": attr.Tensor(value)}}
	}
	inputs := []string{name + "/counter", name + "/step", name + "/gradient"}
	if w.function != nil { // where tensors have the names of outputs
		inputs = []string{inputs[0] + ":handle:0", inputs[1] + ":output:0", inputs[2] + ":output:0"}
	}
	return []*tfpb.NodeDef{
		m.counter(name+"/counter", name, device, after...),
		constant(name+"/step", tfpb.DataType_DT_INT64, literal.Int64(0)),
		constant(name+"/gradient", tfpb.DataType_DT_FLOAT, literal.Float(0)),
		{Name: name + "/add", Op: "AccumulatorApplyGradient", Input: inputs, Device: device,
			Attr: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_FLOAT)}},
	}
}

// addEffect makes each call of a function run one more of its nodes.
func addEffect(f *tfpb.FunctionDef, node string) {
	if f.ControlRet == nil {
		f.ControlRet = make(map[string]string)
	}
	f.ControlRet[node] = node
	f.Signature.ControlOutput = append(f.Signature.ControlOutput, node)
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

// targets returns the ops that a step also runs to show what it waits for.
func (t *Task) targets() []string {
	var targets []string
	for _, m := range t.marked {
		targets = append(targets, m.targets...)
	}
	return targets
}

// waits is what a check of a step shows about the ops that may wait.
type waits struct {
	op     string // one that waits or runs at this moment, "" for none
	counts string // of all of them
}

// lookAtMarks checks the running step; an op whose counters cannot be read counts as not waiting.
func (t *Task) lookAtMarks(ctx context.Context, sess session.Session) waits {
	var fetches []string
	for _, m := range t.marked {
		fetches = append(fetches, m.count(opReached), m.count(opDone))
	}
	out, err := sess.Run(ctx, nil, fetches, nil)
	if err != nil {
		return waits{}
	}
	var w waits
	for i, m := range t.marked {
		reached, done := out[2*i].Data, out[2*i+1].Data
		w.counts += string(reached) + string(done)
		if w.op == "" && !bytes.Equal(reached, done) {
			w.op = m.path
		}
	}
	return w
}
