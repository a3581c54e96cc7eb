package exec

import "slices"

// startFirst frees a loop from waiting for what follows it. tf.gradients counts the
// iterations of a loop in the loop itself, with nodes that it makes where the gradients
// are asked for: under control dependencies on updates or metrics, these wait for what
// is computed from the loop's results. TensorFlow starts the loop and counts later.
// Here such a count waits for nothing: it has no effect outside of the loop.
func (fr *frames) startFirst(g *graph, needed []bool, l *loop) []bool {
	follows := fr.following(l)
	if follows == nil {
		return needed
	}
	for _, i := range slices.Clone(l.enters) {
		enter := &g.nodes[i]
		enter.control = slices.DeleteFunc(slices.Clone(enter.control), func(d int) bool { return follows[d] })
		if len(enter.inputs) != 1 || !follows[enter.inputs[0].node] {
			continue
		}
		from := g.nodes[enter.inputs[0].node]
		switch {
		case from.op == "Const":
			from.control = nil
			enter.inputs = []output{{len(g.nodes), 0}}
			g.nodes, needed = append(g.nodes, from), append(needed, true)
		case fr.orders(i):
			fr.remove(needed, i)
		}
	}
	return needed
}

// following returns the nodes that run after the exits of a loop, nil if no Enter node
// of the loop is among them.
func (fr *frames) following(l *loop) []bool {
	follows := make([]bool, len(fr.g.nodes))
	cyclic := false
	for stack := slices.Clone(l.exits); len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, u := range fr.users[n] {
			if slices.Contains(l.enters, u) {
				cyclic = true
			} else if !follows[u] {
				follows[u] = true
				stack = append(stack, u)
			}
		}
	}
	if !cyclic {
		return nil
	}
	return follows
}

// orders reports whether nothing takes the value of a node that leads into a loop: it is
// passed to Identity nodes there, for the control edges from them.
func (fr *frames) orders(node int) bool {
	for _, u := range fr.dataUsers(node) {
		switch n := &fr.g.nodes[u]; {
		case isEnter(n.op) && fr.orders(u):
		case n.op == "Identity" && len(fr.dataUsers(u)) == 0:
		default:
			return false
		}
	}
	return true
}

// remove takes such a node and its users out of their loops.
func (fr *frames) remove(needed []bool, node int) {
	l := fr.of[node]
	needed[node] = false
	is := func(n int) bool { return n == node }
	l.nodes, l.enters = slices.DeleteFunc(l.nodes, is), slices.DeleteFunc(l.enters, is)
	for _, u := range fr.dataUsers(node) {
		fr.remove(needed, u)
	}
}

// dataUsers returns the nodes that take a node's outputs.
func (fr *frames) dataUsers(node int) []int {
	var list []int
	for _, u := range fr.users[node] {
		if slices.ContainsFunc(fr.g.nodes[u].inputs, func(in output) bool { return in.node == node }) {
			list = append(list, u)
		}
	}
	return list
}
