package exec

import (
	"slices"
	"strings"
)

// The loops of TensorFlow 1 are cycles in the graph:
//
//	Enter --> Merge --> Switch --> Exit
//	            ^        |   ^
//	            |        v   LoopCond
//	      NextIteration <-- body
//
// All Enter nodes of a loop have the same frame_name; what is between them
// and the Exit nodes is the loop's frame, and frames nest. The compiler cuts
// each frame out of the graph and puts one node in its place, whose inputs are
// those of the Enter nodes and whose outputs are taken on by the Exit nodes. The
// frame becomes a plan of its own that runs once per iteration: its feeds are
// the outputs of Enter and Merge, its fetches what LoopCond, NextIteration and
// Exit take. In the last iteration, the body is dead.

func isEnter(op string) bool { return op == "Enter" || op == "RefEnter" }
func isExit(op string) bool  { return op == "Exit" || op == "RefExit" }
func isNext(op string) bool  { return op == "NextIteration" || op == "RefNextIteration" }

// loop is one frame of the graph, cut out.
type loop struct {
	name   string
	parent *loop
	index  int // of the node in its place

	nodes  []int // of the frame itself
	inner  []*loop
	enters []int
	merges []int // of loop variables
	next   []int // by merge: its NextIteration
	start  []int // by merge: its Enter, as an index in enters
	exits  []int
	leave  []output // by exit: what it passes on
	cond   int      // the LoopCond
}

// cutLoops replaces the loops among the needed nodes, each by one node. The
// graph and the set are changed in copies.
func cutLoops(g *graph, needed []bool) (*graph, []bool, error) {
	frames, err := framesOf(g, needed)
	if err != nil || len(frames.all) == 0 {
		return g, needed, err
	}
	cut := &graph{nodes: slices.Clone(g.nodes), byName: g.byName}
	needed = slices.Clone(needed)
	for _, l := range frames.all {
		if l.parent == nil {
			needed = frames.startFirst(cut, needed, l)
		}
	}
	for _, l := range frames.all {
		l.index = len(cut.nodes)
		cut.nodes = append(cut.nodes, node{name: l.name, op: "while", loop: l})
		needed = append(needed, l.parent == nil)
		for _, n := range l.nodes {
			needed[n] = false
		}
	}
	for _, l := range frames.all {
		if err := l.connect(cut); err != nil {
			return nil, nil, err
		}
	}
	return cut, needed, nil
}

// connect gives the node in place of a loop its edges.
func (l *loop) connect(g *graph) error {
	n := &g.nodes[l.index]
	for i, enter := range l.enters {
		e := &g.nodes[enter]
		if len(e.inputs) != 1 {
			return graphError("node %s has %d inputs", e.name, len(e.inputs))
		}
		n.inputs = append(n.inputs, e.inputs[0])
		for _, d := range e.control {
			if !slices.Contains(n.control, d) {
				n.control = append(n.control, d)
			}
		}
		for k, m := range l.merges {
			if g.nodes[m].inputs[0].node == enter {
				l.start[k] = i
			}
		}
	}
	for i, exit := range l.exits {
		if len(g.nodes[exit].inputs) != 1 {
			return graphError("node %s has %d inputs", g.nodes[exit].name, len(g.nodes[exit].inputs))
		}
		l.leave = append(l.leave, g.nodes[exit].inputs[0])
		g.nodes[exit].inputs = []output{{l.index, i}}
		g.nodes[exit].control = nil
	}
	l.dropControls(g)
	return nil
}

// dropControls removes the control edges that come from outside of the loop or
// from where an iteration begins: they hold when it does.
func (l *loop) dropControls(g *graph) {
	inside := map[int]bool{}
	for _, n := range l.nodes {
		inside[n] = !slices.Contains(l.merges, n) && !slices.Contains(l.enters, n)
	}
	for _, i := range l.nodes {
		var kept []int
		for _, d := range g.nodes[i].control {
			if inside[d] {
				kept = append(kept, d)
			}
		}
		g.nodes[i].control = kept
	}
}

// frames says which loop each node is in.
type frames struct {
	g      *graph
	needed []bool
	users  [][]int // by node: the needed ones with an edge from it
	of     []*loop // by node; nil outside of all loops
	known  []bool
	byName map[string]*loop
	all    []*loop // by name
}

func framesOf(g *graph, needed []bool) (*frames, error) {
	fr := &frames{g: g, needed: needed, byName: map[string]*loop{}}
	for i, need := range needed {
		if need && isEnter(g.nodes[i].op) {
			fr.of, fr.known = make([]*loop, len(g.nodes)), make([]bool, len(g.nodes))
			break
		}
	}
	if fr.of == nil {
		return fr, nil
	}
	if err := fr.spread(); err != nil {
		return nil, err
	}
	slices.SortFunc(fr.all, func(a, b *loop) int { return strings.Compare(a.name, b.name) })
	return fr, fr.collect()
}

// spread walks from the nodes without inputs along the edges. A node is in the
// frame of what it follows.
func (fr *frames) spread() error {
	fr.users = make([][]int, len(fr.g.nodes))
	var queue []int
	for i, need := range fr.needed {
		if !need {
			continue
		}
		n := &fr.g.nodes[i]
		before := 0
		for _, d := range n.before() {
			if fr.needed[d] {
				fr.users[d] = append(fr.users[d], i)
				before++
			}
		}
		if before == 0 {
			fr.place(i, nil)
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		after := fr.of[i]
		if isExit(fr.g.nodes[i].op) {
			if after == nil {
				return graphError("node %s leaves a loop that it is not in", fr.g.nodes[i].name)
			}
			after = after.parent
		}
		for _, u := range fr.users[i] {
			if !fr.known[u] {
				fr.place(u, after)
				queue = append(queue, u)
			}
		}
	}
	return nil
}

// place notes that node i follows nodes of loop l.
func (fr *frames) place(i int, l *loop) {
	if isEnter(fr.g.nodes[i].op) {
		l = fr.enter(i, l)
	}
	fr.of[i], fr.known[i] = l, true
}

// before lists the nodes that n has edges from.
func (n *node) before() []int {
	list := slices.Clone(n.control)
	for _, in := range n.inputs {
		list = append(list, in.node)
	}
	return list
}

// enter returns the loop that an Enter node leads into.
func (fr *frames) enter(i int, parent *loop) *loop {
	name := string(fr.g.nodes[i].def.GetAttr()["frame_name"].GetS())
	if parent != nil {
		name = parent.name + "/" + name
	}
	l := fr.byName[name]
	if l == nil {
		l = &loop{name: name, parent: parent, cond: -1}
		fr.byName[name] = l
		fr.all = append(fr.all, l)
		if parent != nil {
			parent.inner = append(parent.inner, l)
		}
	}
	return l
}

// collect sorts the nodes of each loop by their part in it.
func (fr *frames) collect() error {
	for i, need := range fr.needed {
		l := fr.of[i]
		if !need || l == nil {
			continue
		}
		n := &fr.g.nodes[i]
		if err := fr.checkEdges(n, l); err != nil {
			return err
		}
		switch {
		case isExit(n.op):
			// Outside, it stays as the user of one of the loop's outputs.
			l.exits = append(l.exits, i)
			fr.of[i] = l.parent
			if l.parent != nil {
				l.parent.nodes = append(l.parent.nodes, i)
			}
			continue
		case isEnter(n.op):
			l.enters = append(l.enters, i)
		case n.op == "LoopCond":
			l.cond = i
		case n.op == "Merge" || n.op == "RefMerge":
			if len(n.inputs) == 2 && isNext(fr.g.nodes[n.inputs[1].node].op) {
				l.merges = append(l.merges, i)
				l.next = append(l.next, n.inputs[1].node)
				l.start = append(l.start, -1)
			}
		}
		l.nodes = append(l.nodes, i)
	}
	return nil
}

// checkEdges refuses edges into a loop that do not pass an Enter node.
func (fr *frames) checkEdges(n *node, l *loop) error {
	if isEnter(n.op) {
		return nil
	}
	for _, in := range n.inputs {
		from := fr.of[in.node]
		if from != l && !isExit(fr.g.nodes[in.node].op) {
			return graphError("node %s is in the loop %s, but its input %s is not", n.name, l.name, fr.g.nodes[in.node].name)
		}
	}
	return nil
}

// addLoop appends the step of a loop.
func (c *compiler) addLoop(n *node, index int) error {
	l := n.loop
	mayDie, control := c.controlOf(n)
	st := step{name: c.prefix + n.name, op: "while", control: control, mayDie: mayDie, calls: true, flags: Stateful}
	for i, in := range n.inputs {
		t := inputType{ref: c.g.nodes[l.enters[i]].op == "RefEnter"}
		slot, err := c.input(n, in, t)
		if err != nil {
			return err
		}
		st.in, st.types = append(st.in, slot), append(st.types, t)
		_, dies := c.alive[in.node]
		_, fed := c.fed[in]
		st.mayDie = st.mayDie || dies && !fed
	}
	p, err := c.iteration(l, st.in)
	if err != nil {
		return err
	}
	st.runs(p.body)
	st.kernel = p.run
	if err := c.place(st, index, len(l.exits)); err != nil {
		return err
	}
	for i, exit := range l.exits {
		if handsRef(c.g.nodes[exit].op) {
			c.refs[c.slotOf[output{index, i}]] = true
		}
	}
	return nil
}

// iteration compiles the frame of a loop. What enters it as a constant is one
// in it, too.
func (c *compiler) iteration(l *loop, in []int32) (*loopPlan, error) {
	if c.depth >= maxCallDepth {
		return nil, graphError("loops are nested deeper than %d: %s", maxCallDepth, l.name)
	}
	if l.cond < 0 {
		return nil, graphError("the loop %s has no LoopCond", l.name)
	}
	d := newCompiler(c.sess, c.g, c.prefix, c.depth+1, c.budget)
	p := &loopPlan{start: l.start, body: d.plan}
	for k, m := range l.merges {
		if l.start[k] < 0 {
			return nil, graphError("node %s has no Enter before it", c.g.nodes[m].name)
		}
		slot := d.feed(output{m, 0})
		d.feed(output{m, 1})
		d.refs[slot] = c.g.nodes[m].op == "RefMerge"
	}
	for i, enter := range l.enters {
		if slices.Contains(l.start, i) {
			continue
		}
		out := output{enter, 0}
		ref := c.g.nodes[enter].op == "RefEnter"
		if v := c.consts[in[i]]; v != nil {
			slot := d.newSlot()
			d.fed[out], d.slotOf[out], d.consts[slot], d.refs[slot] = slot, slot, v, ref
			continue
		}
		d.refs[d.feed(out)] = ref
		p.fixed = append(p.fixed, i)
	}
	return p, d.compileFrame(l, p)
}

// feed makes an output a feed of the plan.
func (c *compiler) feed(out output) int32 {
	slot := c.newSlot()
	c.fed[out], c.slotOf[out] = slot, slot
	c.plan.feeds = append(c.plan.feeds, feed{slot: slot})
	return slot
}

// compileFrame fills the plan of one iteration: its fetches are the condition,
// the next value of each variable and the value at each exit.
func (c *compiler) compileFrame(l *loop, p *loopPlan) error {
	needed := make([]bool, len(c.g.nodes))
	for _, n := range l.nodes {
		needed[n] = true
	}
	for _, n := range slices.Concat(l.enters, l.merges, l.next) {
		needed[n] = false
	}
	for _, in := range l.inner {
		needed[in.index] = true
	}
	if err := c.addNodes(needed); err != nil {
		return err
	}
	outs := []output{{l.cond, 0}}
	for _, n := range l.next {
		if len(c.g.nodes[n].inputs) != 1 {
			return graphError("node %s has %d inputs", c.g.nodes[n].name, len(c.g.nodes[n].inputs))
		}
		outs = append(outs, c.g.nodes[n].inputs[0])
	}
	outs = append(outs, l.leave...)
	names := make([]string, len(outs))
	if err := c.addFetches(names, outs); err != nil {
		return err
	}
	for i, n := range slices.Concat([]int{l.cond}, l.next, l.exits) {
		if slot := c.slotOf[outs[i]]; handsRef(c.g.nodes[n].op) && c.refs[slot] {
			c.plan.fetches[i] = slot
		}
	}
	c.findTotals(p)
	c.turnFixed(p)
	c.finish()
	return nil
}

// handsRef reports whether a node of a loop passes on the variable and not its
// value.
func handsRef(op string) bool { return op == "RefNextIteration" || op == "RefExit" }
