package exec

import (
	"errors"
	"fmt"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// addNode appends the steps of one node: usually one, none when the node is a
// constant or only passes its input on.
func (c *compiler) addNode(n *node, index int) error {
	if n.loop != nil {
		return c.addLoop(n, index)
	}
	mayDie, control := c.controlOf(n)
	if n.op == "NoOp" || c.idle[n.name] {
		if mayDie {
			c.addAlive(n, index, control)
		}
		return nil
	}
	spec := c.sess.ops[n.op]
	b := &OpConstruction{sess: c.sess, node: n, path: c.prefix + n.name, depth: c.depth, budget: c.budget}
	types, k, err := b.prepare(&spec)
	if err != nil {
		return c.buildError(n, err)
	}
	st := step{name: c.prefix + n.name, op: n.op, kernel: k, elements: b.elements, types: types, flags: spec.Flags | b.flags, later: b.later, control: control, mayDie: mayDie,
		calls: len(n.calls) > 0, draws: b.draws, form: b.form, add: b.add, turn: b.turn, turned: b.turned, turnedForm: b.turnedForm}
	if !mayDie && spec.Flags&PassThrough != 0 && c.passRef(n, index) {
		return nil
	}
	for i, in := range n.inputs {
		slot, err := c.input(n, in, types[i])
		if err != nil {
			return err
		}
		st.in = append(st.in, slot)
		_, dies := c.alive[in.node]
		_, fed := c.fed[in]
		st.mayDie = st.mayDie || dies && !fed
	}
	return c.place(st, index, b.NumOutputs())
}

// passRef makes the output of a node that only passes on a variable's value
// the variable itself, so that its users read it when they run. TensorFlow's
// value shares the variable's memory: what runs after an update sees it.
func (c *compiler) passRef(n *node, index int) bool {
	if len(n.inputs) != 1 {
		return false
	}
	in := n.inputs[0]
	slot, ok := c.slotOf[in]
	_, dies := c.alive[in.node]
	if !ok || dies || !c.refs[slot] {
		return false
	}
	c.bind(output{index, 0}, slot)
	return true
}

// place decides how the node of st is done: not at all, now, or as a step.
func (c *compiler) place(st step, index, outputs int) error {
	if st.op == "Switch" || st.op == "RefSwitch" {
		st.mayDie = true
	}
	if !st.mayDie && st.flags&PassThrough != 0 && len(st.in) == 1 {
		c.bind(output{index, 0}, st.in[0])
		return nil
	}
	if c.foldable(&st) {
		if ok, err := c.foldInto(&st, index, outputs); ok || err != nil {
			return err
		}
	}
	for i := range outputs {
		slot := c.newSlot()
		st.out = append(st.out, slot)
		c.bind(output{index, i}, slot)
		if st.op == "RefSwitch" {
			c.refs[slot] = true
		}
	}
	if st.flags&ForwardsRef != 0 && len(st.in) > 0 {
		c.bind(output{index, 0}, st.in[0])
	}
	if st.mayDie {
		if len(st.out) == 0 {
			st.out = append(st.out, c.newSlot())
		}
		c.alive[index] = st.out[0]
		if st.op == "Switch" || st.op == "RefSwitch" {
			// Each output dies on its own; what only waits for the node lives.
			delete(c.alive, index)
			c.alive[index] = c.newSlot()
		}
	}
	if st.flags&(WritesState|Blocking) != 0 {
		clear(c.reads)
	}
	c.plan.steps = append(c.plan.steps, st)
	return nil
}

// bind gives an output its slot, unless the output is fed.
func (c *compiler) bind(out output, slot int32) {
	if _, fed := c.fed[out]; !fed {
		c.slotOf[out] = slot
	}
}

// controlOf reports whether a node's control inputs can die, and the slots
// that tell.
func (c *compiler) controlOf(n *node) (bool, []int32) {
	var slots []int32
	for _, d := range n.control {
		if slot, ok := c.alive[d]; ok {
			slots = append(slots, slot)
		}
	}
	return len(slots) > 0, slots
}

// addAlive adds a step that does nothing but die with its control inputs.
func (c *compiler) addAlive(n *node, index int, control []int32) {
	slot := c.newSlot()
	c.alive[index] = slot
	c.plan.steps = append(c.plan.steps, step{name: c.prefix + n.name, op: n.op, out: []int32{slot}, control: control, mayDie: true,
		kernel: func(c *KernelContext) error { c.Slot(0); return nil }})
}

// input returns the slot that feeds an input, with a read before it when the
// producer is a variable and the op takes its value.
func (c *compiler) input(n *node, in output, t inputType) (int32, error) {
	slot, ok := c.slotOf[in]
	if !ok {
		return 0, c.nodeError(n, fmt.Errorf("its input %s has no output %d", c.g.nodes[in.node].name, in.index))
	}
	if t.ref && !c.refs[slot] {
		return 0, c.nodeError(n, fmt.Errorf("its input %s must be a variable", c.g.nodes[in.node].name))
	}
	if !t.ref && c.refs[slot] {
		return c.deref(slot), nil
	}
	return slot, nil
}

// deref adds a step that reads the variable in slot.
func (c *compiler) deref(slot int32) int32 {
	if out, ok := c.reads[slot]; ok {
		return out
	}
	out := c.newSlot()
	st := step{op: "VariableV2", kernel: ReadVariable, elements: readElements, in: []int32{slot}, out: []int32{out},
		flags: Stateful | ReadsState, types: []inputType{{dtype: NoType}}}
	if handle := c.consts[slot]; handle != nil {
		st.name = handle.Value.(*Variable).Name
	} else {
		st.mayDie = true // it comes out of a switch
	}
	c.plan.steps = append(c.plan.steps, st)
	c.reads[slot] = out
	return out
}

// buildError returns the error of a node that cannot be built.
func (c *compiler) buildError(n *node, err error) error {
	var op *session.OpError
	if errors.As(err, &op) {
		return err
	}
	return &session.OpError{Code: buildCode(err), Node: c.prefix + n.name, Op: n.op, Message: err.Error()}
}

func (c *compiler) nodeError(n *node, err error) error {
	var op *session.OpError
	if errors.As(err, &op) {
		return err
	}
	return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: c.prefix + n.name, Op: n.op, Message: err.Error()}
}
