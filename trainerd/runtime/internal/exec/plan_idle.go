package exec

import "strings"

// idleNodes finds the needed nodes whose values nobody uses: others only run
// after them. They are not computed, which changes nothing but the time, unless
// computing them has an effect of its own. Gradients bring such nodes: that of
// a product runs with both factors' even where one is a placeholder's.
//
// In a graph with conditionals none is left out, for there a node may also tell
// others, by having no value, that they are not to run.
func (c *compiler) idleNodes(roots []int, needed []bool) map[string]bool {
	computed := make([]bool, len(needed))
	stack := append([]int(nil), roots...)
	for i, need := range needed {
		n := &c.g.nodes[i]
		switch {
		case !need:
		case decides[n.op]:
			return nil
		case !pure(c.sess.ops, n):
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if computed[n] {
			continue
		}
		computed[n] = true
		for _, in := range c.g.nodes[n].inputs {
			if _, ok := c.fed[in]; !ok {
				stack = append(stack, in.node)
			}
		}
	}
	idle := map[string]bool{}
	for i, need := range needed {
		if need && !computed[i] {
			idle[c.g.nodes[i].name] = true
		}
	}
	return idle
}

// decides are the ops that choose what runs.
var decides = map[string]bool{"Switch": true, "RefSwitch": true, "_SwitchN": true, "Merge": true, "RefMerge": true, "Enter": true, "RefEnter": true}

// pure reports whether computing a node does nothing but give its value.
func pure(ops OpTable, n *node) bool {
	spec, known := ops[n.op]
	return known && spec.Flags&(Stateful|ReadsState|WritesState|Blocking|ForwardsRef|SeesDead) == 0 && len(n.calls) == 0 &&
		!strings.HasPrefix(n.op, "CheckNumerics") && !strings.HasPrefix(n.op, "Placeholder")
}
