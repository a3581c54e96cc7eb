package exec

// executor plays TensorFlow's executor with one thread, node by node, without
// running anything. A node that is done makes others ready. Those whose kernels
// TensorFlow calls inexpensive join the queue of the closure that is running;
// of the others, each becomes a closure of its own, but the last one, which joins
// the queue if that is empty. A thread takes the closures that it made itself in
// the reverse order. With several threads others take some of them, which tends
// to come too late to matter where the rest of a chain is short.
//
// The order is that of a session's first ninety runs or so. TensorFlow measures
// its kernels, and then takes those for inexpensive that were quick. Where a node
// has more than eight users their order differs from process to process, and so
// does that of the nodes without inputs; here it is that of the GraphDef.
type executor struct {
	users   edges // by node: those that wait for it, by data edges first
	inputs  []int // by node: for how many edges it waits
	cheap   []bool
	sources []int // nodes without inputs, and feeds

	pending []int
	ready   []int // of the node that was done last
	queue   []int
	stack   []int // the first nodes of closures
	order   []int
}

// inexpensive are the ops whose kernels TensorFlow runs in the closure that made
// them ready: those whose kernel classes say that they are not expensive.
var inexpensive = map[string]bool{
	"BroadcastArgs": true, "BroadcastGradientArgs": true, "ConcatOffset": true, "Const": true, "ControlTrigger": true,
	"DebugGradientIdentity": true, "EnsureShape": true, "Enter": true, "Exit": true, "ExpandDims": true, "GuaranteeConst": true,
	"Identity": true, "IdentityN": true, "LoopCond": true, "Merge": true, "NextIteration": true, "NoOp": true,
	"PlaceholderWithDefault": true, "PreventGradient": true, "Rank": true, "RefEnter": true, "RefExit": true, "RefIdentity": true,
	"RefMerge": true, "RefNextIteration": true, "RefSwitch": true, "Reshape": true, "Shape": true, "ShapeN": true, "Size": true,
	"Squeeze": true, "StopGradient": true, "Switch": true,
}

// fewSources is how many nodes without inputs TensorFlow keeps in the order of
// the GraphDef: a set of eight edges that one to the end of the graph is in.
const fewSources = 7

// ranks returns the place of each node in the executor's order, from 1, 0 for
// those of cycles. The sources become ready in the order that is given.
func (e *executor) ranks(sources []int) []int {
	e.pending, e.order = append(e.pending[:0], e.inputs...), e.order[:0]
	e.schedule(sources)
	for {
		for len(e.queue) > 0 {
			n := e.queue[0]
			e.queue = e.queue[1:]
			e.done(n)
		}
		if len(e.stack) == 0 {
			break
		}
		last := len(e.stack) - 1
		e.queue = append(e.queue, e.stack[last])
		e.stack = e.stack[:last]
	}
	rank := make([]int, len(e.inputs))
	for i, n := range e.order {
		rank[n] = i + 1
	}
	return rank
}

// newExecutor returns an executor for nodes, which come after those that they depend
// on. What is fed comes from nodes of its own, numbered after those of the graph.
func (c *compiler) newExecutor(order []int) *executor {
	total := len(c.g.nodes) + len(c.fed)
	e := &executor{inputs: make([]int, total), cheap: make([]bool, total)}
	const usual = 3 // edges to a node
	all := make([]edge, 0, usual*len(order))
	feeds := map[output]int{}
	for _, i := range order {
		for _, in := range c.g.nodes[i].inputs {
			from := in.node
			if _, ok := c.fed[in]; ok {
				if from, ok = feeds[in]; !ok {
					from = len(c.g.nodes) + len(feeds)
					feeds[in] = from
					e.cheap[from] = true
					e.sources = append(e.sources, from)
				}
			}
			all = append(all, edge{from, i})
			e.inputs[i]++
		}
		e.cheap[i] = inexpensive[c.g.nodes[i].op]
	}
	var controls []int
	for _, i := range order {
		controls = c.appendControls(controls[:0], &c.g.nodes[i])
		for _, d := range controls {
			all = append(all, edge{d, i})
		}
		e.inputs[i] += len(controls)
	}
	e.users = edgesOf(total, all)
	for _, i := range order {
		if e.inputs[i] == 0 {
			e.sources = append(e.sources, i)
		}
	}
	return e
}

// done notes that node n has run, and schedules those that it made ready.
func (e *executor) done(n int) {
	e.order = append(e.order, n)
	e.ready = e.ready[:0]
	for _, u := range e.users.from(n) {
		if e.pending[u]--; e.pending[u] == 0 {
			e.ready = append(e.ready, u)
		}
	}
	e.schedule(e.ready)
}

// schedule takes nodes that are ready into the queue or onto the stack.
func (e *executor) schedule(ready []int) {
	last := -1
	for _, n := range ready {
		if e.cheap[n] {
			e.queue = append(e.queue, n)
			continue
		}
		if last >= 0 {
			e.stack = append(e.stack, last)
		}
		last = n
	}
	switch {
	case last < 0:
	case len(e.queue) == 0:
		e.queue = append(e.queue, last)
	default:
		e.stack = append(e.stack, last)
	}
}
