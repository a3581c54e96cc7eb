package exec

import (
	"slices"
)

// A graph may read a variable and write it with no path between the two. By
// the letter the result is undefined; in practice it follows from the order in
// which TensorFlow's executor takes nodes that are ready, and programs have come
// to rely on that: BERT's optimizer raises global_step with nothing between the
// assignment and the reads that its learning rate is made of. Such accesses are
// put into the executor's order (see executor), and only they: everything else
// keeps the order of the GraphDef.

// access is a node that reads or writes a variable.
type access struct {
	node  int
	write bool
}

// raceEdges returns, by node, those that must run after it for each variable to
// be read and written in the executor's order. A node that leads to a blocking op
// waits for none that may have to wait for such an op itself.
func (c *compiler) raceEdges(needed, waits []bool, deps *dependencies) map[int][]int {
	order, _ := deps.order(nil, nil)
	accesses := c.accesses(order)
	if len(accesses) == 0 {
		return nil
	}
	rank := c.executorRanks(needed, order, accesses)
	edges, late := map[int][]int{}, c.after(order, Blocking)
	add := func(from, to int) {
		if from != to && !(late[from] && waits[to]) {
			edges[from] = append(edges[from], to)
		}
	}
	for _, list := range accesses {
		if slices.ContainsFunc(list, func(a access) bool { return rank[a.node] == 0 }) {
			continue // part of a cycle
		}
		addRaceEdges(add, inOrder(list, rank))
	}
	return edges
}

// executorRanks returns the place of each needed node in the executor's order,
// from 1. TensorFlow takes many nodes without inputs in an order that differs
// from process to process. Where the accesses of a variable depend on it, the
// variable is taken first: one of many that are taken at random is most likely
// not the last. order is that of the needed nodes by their dependencies alone.
func (c *compiler) executorRanks(needed []bool, order []int, accesses map[string][]access) []int {
	e := c.newExecutor(order)
	ranks := e.ranks(e.sources)
	if len(e.sources) <= fewSources {
		return ranks
	}
	reversed := slices.Clone(e.sources)
	slices.Reverse(reversed)
	turned := e.ranks(reversed)
	early := map[int]bool{}
	for i, need := range needed {
		if n := &c.g.nodes[i]; need && isVariable(n) {
			list := accesses[variableOf(n)]
			early[i] = !slices.Equal(inOrder(list, ranks), inOrder(list, turned))
		}
	}
	// What is made ready last is taken first.
	sources := slices.Clone(e.sources)
	sources = slices.DeleteFunc(sources, func(n int) bool { return early[n] })
	for _, n := range e.sources {
		if early[n] {
			sources = append(sources, n)
		}
	}
	return e.ranks(sources)
}

// inOrder returns accesses in the order of the ranks of their nodes.
func inOrder(list []access, rank []int) []access {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b access) int { return rank[a.node] - rank[b.node] })
	return list
}

// addRaceEdges puts each write after the accesses since the last write, and each
// read after the last write.
func addRaceEdges(add func(from, to int), list []access) {
	var since []int // the last write, and the reads after it
	written := false
	for _, a := range list {
		switch {
		case a.write:
			for _, n := range since {
				add(n, a.node)
			}
			since, written = append(since[:0], a.node), true
			continue
		case written:
			add(since[0], a.node)
		}
		since = append(since, a.node)
	}
}

// accesses lists, by variable, the needed nodes that access it, for each variable
// that is written and accessed by a further node. order has the needed nodes.
func (c *compiler) accesses(order []int) map[string][]access {
	all := map[string][]access{}
	written := map[string]bool{}
	variables := map[output]string{} // the variable that an output is
	for _, i := range order {
		n := &c.g.nodes[i]
		if isVariable(n) {
			variables[output{i, 0}] = variableOf(n)
			continue
		}
		for k, in := range n.inputs {
			name, ok := variables[in]
			if _, fed := c.fed[in]; !ok || fed {
				continue
			}
			if c.passesVariable(n, k) {
				variables[output{i, 0}] = name
			}
			if !c.isAlias(n) {
				a := access{i, c.writes(n, k)}
				all[name] = append(all[name], a)
				written[name] = written[name] || a.write
			}
		}
	}
	for name, list := range all {
		if !written[name] || len(list) < 2 {
			delete(all, name)
		}
	}
	return all
}

// isVariable reports whether a node is a variable.
func isVariable(n *node) bool {
	return n.op == "Variable" || n.op == "VariableV2" || n.op == "VarHandleOp"
}

// isAlias reports whether a node only passes its input on, so that a variable's
// value is read by its users, when they run.
func (c *compiler) isAlias(n *node) bool {
	return n.loop == nil && len(n.inputs) == 1 && c.sess.ops[n.op].Flags&PassThrough != 0
}

// passesVariable reports whether output 0 of a node is the variable of input k.
func (c *compiler) passesVariable(n *node, k int) bool {
	return k == 0 && n.loop == nil && (c.isAlias(n) || c.sess.ops[n.op].Flags&ForwardsRef != 0)
}

// writes reports whether a node may write the variable that is its input k. What
// functions and loops do with a handle is not known here.
func (c *compiler) writes(n *node, k int) bool {
	if n.loop != nil || len(n.calls) > 0 {
		return true
	}
	if c.sess.ops[n.op].Flags&WritesState == 0 {
		return false
	}
	return n.inErr != nil || k >= len(n.ins) || n.ins[k].Ref || n.ins[k].Type == Resource
}
