package exec

import (
	"slices"
	"strings"
)

// prune returns the nodes that the roots need, by index, as a set.
func (c *compiler) prune(roots []int) []bool {
	needed := make([]bool, len(c.g.nodes))
	stack := roots
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if needed[n] {
			continue
		}
		needed[n] = true
		for _, in := range c.g.nodes[n].inputs {
			if _, ok := c.fed[in]; !ok {
				stack = append(stack, in.node)
			}
		}
		stack = c.appendControls(stack, &c.g.nodes[n])
	}
	return needed
}

// sort orders the needed nodes: inputs before users, what leads to a blocking
// op before everything else (so that a run waits before it takes the state
// lock), accesses of one variable as TensorFlow's executor has them, and apart
// from that as in the GraphDef.
func (c *compiler) sort(needed []bool) ([]int, error) {
	waits, deps := c.before(needed, Blocking), c.dependencies(needed)
	order, pending := deps.order(waits, c.raceEdges(needed, waits, deps))
	for i, p := range pending {
		if p > 0 {
			return nil, graphError("node %s is part of a cycle", c.g.nodes[i].name)
		}
	}
	return order, nil
}

// dependencies are what the needed nodes of a graph wait for.
type dependencies struct {
	needed  []bool
	users   edges // by node: those that wait for it
	pending []int // by node: for how many it waits
}

func (c *compiler) dependencies(needed []bool) *dependencies {
	d := &dependencies{needed: needed, pending: make([]int, len(c.g.nodes))}
	const usual = 3 // edges to a node
	all := make([]edge, 0, usual*len(needed))
	var list []int
	for i, need := range needed {
		if !need {
			continue
		}
		list = c.appendDeps(list[:0], i)
		d.pending[i] = len(list)
		for _, from := range list {
			all = append(all, edge{from, i})
		}
	}
	d.users = edgesOf(len(c.g.nodes), all)
	return d
}

// order puts the nodes in order by their dependencies and the further
// edges of later, which lists for a node those that run after it. Of the nodes
// that are ready, those in first come first, then that of the lowest index. It
// also returns how many predecessors each node still waits for: more than 0 for
// nodes of a cycle.
func (d *dependencies) order(first []bool, later map[int][]int) (order, pending []int) {
	pending = slices.Clone(d.pending)
	for _, list := range later {
		for _, u := range list {
			pending[u]++
		}
	}
	ready := &nodeHeap{first: first}
	for i, need := range d.needed {
		if need && pending[i] == 0 {
			ready.push(i)
		}
	}
	for len(ready.list) > 0 {
		n := ready.pop()
		order = append(order, n)
		for _, u := range d.users.from(n) {
			if pending[u]--; pending[u] == 0 {
				ready.push(u)
			}
		}
		for _, u := range later[n] {
			if pending[u]--; pending[u] == 0 {
				ready.push(u)
			}
		}
	}
	return order, pending
}

// orderAfter notes what the steps of a node, those from from on, run after by the edges
// of the graph, and for a node without steps what its users run after.
func (c *compiler) orderAfter(node, from int) {
	before := c.stepsOf(c.appendDeps(nil, node))
	steps := c.plan.steps[from:]
	if len(steps) == 0 {
		c.done[node] = before
		return
	}
	ids := make([]int32, len(steps))
	for i := range steps {
		ids[i] = int32(from + i + 1)
		steps[i].id, steps[i].after = ids[i], before
	}
	c.done[node] = ids
}

// stepsOf returns the steps after which all of the nodes are done, by id.
func (c *compiler) stepsOf(nodes []int) []int32 {
	var one []int32
	all := c.merged[:0]
	for _, n := range nodes {
		switch list := c.done[n]; {
		case len(list) == 0:
		case one == nil:
			one = list
		case len(all) == 0:
			all = append(append(all, one...), list...)
		default:
			all = append(all, list...)
		}
	}
	c.merged = all
	if len(all) == 0 {
		return one
	}
	slices.Sort(all)
	return slices.Clone(slices.Compact(all))
}

// appendControls appends the nodes that n runs after, without placeholders that are
// fed: those need not run.
func (c *compiler) appendControls(list []int, n *node) []int {
	for _, d := range n.control {
		_, fed := c.fed[output{d, 0}]
		if !fed || !strings.HasPrefix(c.g.nodes[d].op, "Placeholder") {
			list = append(list, d)
		}
	}
	return list
}

// appendDeps appends the nodes that node i waits for, fed outputs left out.
func (c *compiler) appendDeps(list []int, i int) []int {
	n := &c.g.nodes[i]
	list = c.appendControls(list, n)
	for _, in := range n.inputs {
		if _, ok := c.fed[in]; !ok {
			list = append(list, in.node)
		}
	}
	return list
}

// before returns the nodes with a flag and all that lead to them.
func (c *compiler) before(needed []bool, flag OpFlags) []bool {
	set := make([]bool, len(needed))
	var stack []int
	for i, need := range needed {
		if need && c.sess.ops[c.g.nodes[i].op].Flags&flag != 0 {
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if set[n] {
			continue
		}
		set[n] = true
		stack = c.appendDeps(stack, n)
	}
	return set
}

// after returns the set of the nodes of an order that are ops with a flag or depend on one.
func (c *compiler) after(order []int, flag OpFlags) []bool {
	set := make([]bool, len(c.g.nodes))
	var list []int
	for _, i := range order {
		list = c.appendDeps(list[:0], i)
		set[i] = c.sess.ops[c.g.nodes[i].op].Flags&flag != 0 || slices.ContainsFunc(list, func(n int) bool { return set[n] })
	}
	return set
}

// nodeHeap pops the nodes in first, if there are any, then the others, each by
// index.
type nodeHeap struct {
	list  []int
	first []bool
}

func (h *nodeHeap) less(a, b int) bool {
	if h.first != nil && h.first[a] != h.first[b] {
		return h.first[a]
	}
	return a < b
}

func (h *nodeHeap) push(n int) {
	h.list = append(h.list, n)
	i := len(h.list) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(n, h.list[parent]) {
			break
		}
		h.list[i] = h.list[parent]
		i = parent
	}
	h.list[i] = n
}

func (h *nodeHeap) pop() int {
	top, end := h.list[0], len(h.list)-1
	n := h.list[end]
	h.list = h.list[:end]
	for i := 0; end > 0; {
		child := 2*i + 1
		if child+1 < end && h.less(h.list[child+1], h.list[child]) {
			child++
		}
		if child >= end || !h.less(h.list[child], n) {
			h.list[i] = n
			break
		}
		h.list[i] = h.list[child]
		i = child
	}
	return top
}
