package runtime

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
)

// plan runs one (feeds, fetches, targets). It does not change once compiled;
// what changes during a run is in frames.
type plan struct {
	steps   []step
	slots   int
	consts  []constSlot
	bufOf   []int32 // by slot: number of its buffer, -1 when it has none
	bufs    int
	feeds   []feed
	fetches []int32

	access opFlags // readsState, writesState of any step
	blocks bool    // some step may wait

	mu   sync.Mutex
	free []*frame // idle frames, warm
}

// step is one node in the order of execution.
type step struct {
	name, op string
	kernel   kernel
	in, out  []int32
	types    []inputType
	control  []int32 // slots whose death kills the step
	flags    opFlags
	mayDie   bool
	calls    bool // runs functions, whose variables are not known here
	copyRead bool // a read whose value must survive a later write
}

type constSlot struct {
	slot  int32
	value *tensor
}

// feed is a tensor that callers supply.
type feed struct {
	name  string
	slot  int32
	dtype tfpb.DataType // tNone: any
	shape []int         // nil: any; -1: any dimension
}

// compiler turns part of a graph into a plan.
type compiler struct {
	sess   *Session
	g      *graph
	prefix string // path of the call being compiled, "" for the graph
	depth  int
	plan   *plan

	fed    map[output]int32
	slotOf map[output]int32
	consts map[int32]*tensor
	refs   map[int32]bool  // slots that hold a variable itself
	reads  map[int32]int32 // by such slot: the read that no step has outdated
	alive  map[int]int32   // by node that may die: a slot that dies with it
	idle   map[string]bool // nodes that others only run after
}

// compile builds the plan for the named feeds, fetches and targets.
func (s *Session) compile(feeds, fetches, targets []string) (*plan, error) {
	return s.compileAt(s.graph(), "", 0, feeds, fetches, targets)
}

// compileAt compiles part of the graph, or of a function that is called at
// prefix, depth calls deep.
func (s *Session) compileAt(g *graph, prefix string, depth int, feeds, fetches, targets []string) (*plan, error) {
	c := newCompiler(s, g, prefix, depth)
	if err := c.addFeeds(feeds); err != nil {
		return nil, err
	}
	outs, roots, err := c.roots(fetches, targets)
	if err != nil {
		return nil, err
	}
	needed := c.prune(slices.Clone(roots))
	c.idle = c.idleNodes(roots, needed)
	if err := c.checkOps(needed); err != nil {
		return nil, err
	}
	if c.g, needed, err = cutLoops(g, needed); err != nil {
		return nil, err
	}
	if err := c.addNodes(needed); err != nil {
		return nil, err
	}
	if err := c.addFetches(fetches, outs); err != nil {
		return nil, err
	}
	c.finish()
	return c.plan, nil
}

func newCompiler(s *Session, g *graph, prefix string, depth int) *compiler {
	return &compiler{sess: s, g: g, prefix: prefix, depth: depth, plan: &plan{}, fed: map[output]int32{}, slotOf: map[output]int32{},
		consts: map[int32]*tensor{}, refs: map[int32]bool{}, reads: map[int32]int32{}, alive: map[int]int32{}}
}

// addNodes appends the steps of the needed nodes.
func (c *compiler) addNodes(needed []bool) error {
	order, err := c.sort(needed)
	if err != nil {
		return err
	}
	for _, n := range order {
		if err := c.addNode(&c.g.nodes[n], n); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) newSlot() int32 {
	c.plan.slots++
	return int32(c.plan.slots - 1)
}

func (c *compiler) addFeeds(names []string) error {
	for _, name := range names {
		out, err := c.g.lookup(name)
		if err != nil {
			return &trainerd.OpError{Code: tfpb.Code_NOT_FOUND, Message: "feed: " + err.Error()}
		}
		if _, ok := c.fed[out]; ok {
			return &trainerd.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("%q is fed twice", name)}
		}
		slot := c.newSlot()
		c.fed[out] = slot
		c.slotOf[out] = slot
		f := feed{name: name, slot: slot}
		n := &c.g.nodes[out.node]
		if strings.HasPrefix(n.op, "Placeholder") {
			b := &builder{node: n}
			f.dtype = b.dtype("dtype", tNone)
			f.shape, _ = b.shape("shape")
			if n.op == "Placeholder" && len(f.shape) == 0 {
				f.shape = nil // an empty shape here has always meant an unknown one
			}
		}
		c.plan.feeds = append(c.plan.feeds, f)
	}
	return nil
}

// roots resolves fetches to outputs, and both to the nodes to start from.
func (c *compiler) roots(fetches, targets []string) ([]output, []int, error) {
	var outs []output
	var roots []int
	for _, name := range fetches {
		out, err := c.g.lookup(name)
		if err != nil {
			return nil, nil, &trainerd.OpError{Code: tfpb.Code_NOT_FOUND, Message: "fetch: " + err.Error()}
		}
		outs = append(outs, out)
		if _, ok := c.fed[out]; !ok {
			roots = append(roots, out.node)
		}
	}
	for _, name := range targets {
		out, err := c.g.lookup(name)
		if err != nil {
			return nil, nil, &trainerd.OpError{Code: tfpb.Code_NOT_FOUND, Message: "target: " + err.Error()}
		}
		roots = append(roots, out.node)
	}
	return outs, roots, nil
}

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
		stack = append(stack, c.controls(&c.g.nodes[n])...)
	}
	return needed
}

// checkOps reports every node of the plan that has no kernel, in one error.
func (c *compiler) checkOps(needed []bool) error {
	list := c.sess.missing(c.g, func(i int) bool { return needed[i] }, c.prefix, map[string]bool{})
	if len(list) == 0 {
		return nil
	}
	var texts []string
	for _, m := range list {
		text := m.Node + " (" + m.Op
		if m.Message != "" {
			text += ": " + m.Message
		}
		texts = append(texts, text+")")
	}
	return &trainerd.OpError{Code: tfpb.Code_UNIMPLEMENTED, Node: list[0].Node, Op: list[0].Op,
		Message: "the embedded runtime lacks the kernels of: " + strings.Join(texts, ", ")}
}

// sort orders the needed nodes: inputs before users, what leads to a blocking
// op before everything else (so that a run waits before it takes the state
// lock), and apart from that as in the GraphDef.
func (c *compiler) sort(needed []bool) ([]int, error) {
	waits := c.before(needed, blocking)
	pending := make([]int, len(c.g.nodes))
	users := make([][]int, len(c.g.nodes))
	ready := &nodeHeap{first: waits}
	total := 0
	for i, need := range needed {
		if !need {
			continue
		}
		total++
		for _, d := range c.deps(i) {
			pending[i]++
			users[d] = append(users[d], i)
		}
		if pending[i] == 0 {
			ready.list = append(ready.list, i)
		}
	}
	heap.Init(ready)
	order := make([]int, 0, total)
	for ready.Len() > 0 {
		n := heap.Pop(ready).(int)
		order = append(order, n)
		for _, u := range users[n] {
			if pending[u]--; pending[u] == 0 {
				heap.Push(ready, u)
			}
		}
	}
	if len(order) < total {
		for i, p := range pending {
			if p > 0 {
				return nil, graphError("node %s is part of a cycle", c.g.nodes[i].name)
			}
		}
	}
	return order, nil
}

// controls lists the nodes that n runs after, without placeholders that are
// fed: those need not run.
func (c *compiler) controls(n *node) []int {
	var list []int
	for _, d := range n.control {
		_, fed := c.fed[output{d, 0}]
		if !fed || !strings.HasPrefix(c.g.nodes[d].op, "Placeholder") {
			list = append(list, d)
		}
	}
	return list
}

// deps lists the nodes that node i waits for, fed outputs left out.
func (c *compiler) deps(i int) []int {
	n := &c.g.nodes[i]
	list := c.controls(n)
	for _, in := range n.inputs {
		if _, ok := c.fed[in]; !ok {
			list = append(list, in.node)
		}
	}
	return list
}

// before returns the nodes with a flag and all that lead to them.
func (c *compiler) before(needed []bool, flag opFlags) []bool {
	set := make([]bool, len(needed))
	var stack []int
	for i, need := range needed {
		if need && ops[c.g.nodes[i].op].flags&flag != 0 {
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
		stack = append(stack, c.deps(n)...)
	}
	return set
}

// nodeHeap pops the nodes in first, then the others, each by index.
type nodeHeap struct {
	list  []int
	first []bool
}

func (h *nodeHeap) Len() int { return len(h.list) }
func (h *nodeHeap) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if h.first[a] != h.first[b] {
		return h.first[a]
	}
	return a < b
}
func (h *nodeHeap) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *nodeHeap) Push(x any)    { h.list = append(h.list, x.(int)) }
func (h *nodeHeap) Pop() any {
	n := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return n
}

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
	spec := ops[n.op]
	b := &builder{sess: c.sess, node: n, outputs: 1, path: c.prefix + n.name, depth: c.depth}
	types := b.signature(&spec)
	var k kernel
	err := b.err
	if err == nil {
		k, err = spec.build(b)
	}
	if err = errors.Join(err, b.err); err != nil {
		return c.nodeError(n, err)
	}
	st := step{name: c.prefix + n.name, op: n.op, kernel: k, types: types, flags: spec.flags | b.flags, control: control, mayDie: mayDie,
		calls: len(functionsOf(n)) > 0}
	if !mayDie && spec.flags&passThrough != 0 && c.passRef(n, index) {
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
	return c.place(st, index, b.outputs)
}

// passRef makes the output of a node that only passes on a variable's value
// the variable itself, so that its users read it when they run. TensorFlow's
// value shares the variable's memory: who runs after an update sees it.
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
	if !st.mayDie && st.flags&passThrough != 0 && len(st.in) == 1 {
		c.bind(output{index, 0}, st.in[0])
		return nil
	}
	if c.foldable(&st) && c.foldInto(&st, index, outputs) {
		return nil
	}
	for i := range outputs {
		slot := c.newSlot()
		st.out = append(st.out, slot)
		c.bind(output{index, i}, slot)
		c.refs[slot] = st.op == "RefSwitch"
	}
	if st.flags&forwardsRef != 0 && len(st.in) > 0 {
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
	if st.flags&(writesState|blocking) != 0 {
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
		kernel: func(c *call) error { c.slot(0); return nil }})
}

// input returns the slot that feeds an input, with a read before it when the
// producer is a variable and the op wants its value.
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
	st := step{op: "VariableV2", kernel: readVariable, in: []int32{slot}, out: []int32{out},
		flags: stateful | readsState, types: []inputType{{dtype: tNone}}}
	if handle := c.consts[slot]; handle != nil {
		st.name = handle.res.(*variable).name
	} else {
		st.mayDie = true // it comes out of a switch
	}
	c.plan.steps = append(c.plan.steps, st)
	c.reads[slot] = out
	return out
}

func (c *compiler) nodeError(n *node, err error) error {
	var op *trainerd.OpError
	if errors.As(err, &op) {
		return err
	}
	return &trainerd.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: c.prefix + n.name, Op: n.op, Message: err.Error()}
}

// foldLimit keeps large computed constants, such as the zeros a big variable
// starts from, out of the plan: they are cheaper made when needed.
const foldLimit = 1 << 20

func (c *compiler) foldable(st *step) bool {
	if st.mayDie || st.flags&(stateful|readsState|writesState|blocking|seesDead) != 0 {
		return false
	}
	for _, in := range st.in {
		if c.consts[in] == nil {
			return false
		}
	}
	return true
}

// foldInto replaces a step by its results, if they can be had.
func (c *compiler) foldInto(st *step, index, outputs int) bool {
	values, err := c.fold(st, outputs)
	if err != nil {
		return false
	}
	for i, v := range values {
		slot := c.newSlot()
		c.consts[slot] = v
		if _, isVar := v.res.(*variable); isVar && v.dtype != tResource {
			c.refs[slot] = true
		}
		c.bind(output{index, i}, slot)
	}
	return true
}

// fold runs a step whose inputs are constants. An error is no failure: the
// step stays in the plan, and reports it if it is reached.
func (c *compiler) fold(st *step, outputs int) (values []*tensor, err error) {
	f := &frame{plan: &plan{bufOf: make([]int32, len(st.in)+outputs)}, bufs: make([]buffer, len(st.in)+outputs), slots: make([]tensor, len(st.in)+outputs)}
	tmp := *st
	tmp.in, tmp.out = nil, nil
	for i, in := range st.in {
		f.slots[i] = *c.consts[in]
		tmp.in = append(tmp.in, int32(i))
	}
	for i := range outputs {
		slot := len(st.in) + i
		f.plan.bufOf[slot] = int32(slot)
		tmp.out = append(tmp.out, int32(slot))
	}
	r := &run{sess: c.sess, limit: foldLimit}
	if err := r.step(f, &tmp); err != nil {
		return nil, err
	}
	for _, slot := range tmp.out {
		t := f.slots[slot]
		if len(t.data) > foldLimit && st.op != "Const" {
			return nil, errTooLargeToFold
		}
		t.shape = append([]int(nil), t.shape...)
		values = append(values, &t)
	}
	return values, nil
}

var errTooLargeToFold = errors.New("too large to fold")

func (c *compiler) addFetches(names []string, outs []output) error {
	for i, out := range outs {
		slot, ok := c.slotOf[out]
		if !ok {
			return &trainerd.OpError{Code: tfpb.Code_NOT_FOUND, Message: fmt.Sprintf("fetch: node %s has no output %d (%q)", c.g.nodes[out.node].name, out.index, names[i])}
		}
		if c.refs[slot] {
			slot = c.deref(slot)
		}
		c.plan.fetches = append(c.plan.fetches, slot)
	}
	return nil
}

// finish fixes what depends on the whole order: which reads must copy, and
// which values share memory.
func (c *compiler) finish() {
	p := c.plan
	for _, st := range p.steps {
		p.access |= st.flags & (readsState | writesState)
		p.blocks = p.blocks || st.flags&blocking != 0
	}
	for slot, v := range c.consts {
		p.consts = append(p.consts, constSlot{slot, v})
	}
	sort.Slice(p.consts, func(i, j int) bool { return p.consts[i].slot < p.consts[j].slot })
	last := c.lastUses()
	c.markCopies(last)
	c.assignBuffers(last)
}

// lastUses returns, by slot, the index of the last step that needs its memory,
// looking through steps whose outputs may share the memory of their inputs.
func (c *compiler) lastUses() []int {
	p := c.plan
	last := make([]int, p.slots)
	for i := range last {
		last[i] = -1
	}
	for _, slot := range p.fetches {
		last[slot] = math.MaxInt
	}
	for i := len(p.steps) - 1; i >= 0; i-- {
		st := &p.steps[i]
		reach := i
		for _, out := range st.out {
			reach = max(reach, last[out])
		}
		for k, in := range st.in {
			end := i
			if st.flags&aliasAny != 0 || st.flags&aliasFirst != 0 && k == 0 {
				end = reach
			}
			last[in] = max(last[in], end)
		}
	}
	return last
}

// markCopies finds the reads of variables whose value is used after a later
// step may have changed the variable; they copy, the others share its memory.
func (c *compiler) markCopies(last []int) {
	steps := c.plan.steps
	for i := range steps {
		st := &steps[i]
		if st.flags&readsState == 0 || len(st.in) == 0 || len(st.out) == 0 || st.calls {
			continue
		}
		handle := c.consts[st.in[0]]
		if handle == nil {
			st.copyRead = true
			continue
		}
		for j := i + 1; j < len(steps) && j <= last[st.out[0]] && !st.copyRead; j++ {
			st.copyRead = c.mayWrite(&steps[j], handle.res)
		}
	}
}

// mayWrite reports whether a step can change the variable v, itself or by
// letting go of the state lock.
func (c *compiler) mayWrite(st *step, v any) bool {
	if st.flags&blocking != 0 {
		return true
	}
	if st.flags&writesState == 0 {
		return false
	}
	if st.calls {
		return true
	}
	for _, in := range st.in {
		t := c.consts[in]
		if t == nil && len(st.in) > 0 && in == st.in[0] {
			return true
		}
		if t != nil && t.res == v {
			return true
		}
	}
	return false
}

// assignBuffers gives every value that a step makes a buffer, and hands a
// buffer on when the last step that needs its value is done.
func (c *compiler) assignBuffers(last []int) {
	p := c.plan
	p.bufOf = make([]int32, p.slots)
	for i := range p.bufOf {
		p.bufOf[i] = -1
	}
	for _, f := range p.feeds {
		p.bufOf[f.slot] = int32(p.bufs)
		p.bufs++
	}
	var free []int32
	expire := make([][]int32, len(p.steps))
	for i := range p.steps {
		for _, slot := range p.steps[i].out {
			b := int32(p.bufs)
			if n := len(free); n > 0 {
				b, free = free[n-1], free[:n-1]
			} else {
				p.bufs++
			}
			p.bufOf[slot] = b
			if end := max(last[slot], i); end < len(p.steps) {
				expire[end] = append(expire[end], b)
			}
		}
		free = append(free, expire[i]...)
	}
}

// acquire returns a frame that no other run uses.
func (p *plan) acquire() *frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		f := p.free[n-1]
		p.free = p.free[:n-1]
		return f
	}
	return newFrame(p)
}

func (p *plan) release(f *frame) {
	for _, fd := range p.feeds {
		t := &f.slots[fd.slot]
		t.data, t.strs = nil, nil // the caller's memory
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, f)
}

// checkFeed says why a tensor cannot be fed.
func (fd *feed) check(t *ckptfmt.Tensor) error {
	if err := checkTensor(t); err != nil {
		return err
	}
	if fd.dtype != tNone && fd.dtype != t.DType {
		return fmt.Errorf("it takes %s, not %s", typeName(fd.dtype), typeName(t.DType))
	}
	if fd.shape == nil {
		return nil
	}
	ok := len(fd.shape) == len(t.Shape)
	for i := 0; ok && i < len(fd.shape); i++ {
		ok = fd.shape[i] < 0 || int64(fd.shape[i]) == t.Shape[i]
	}
	if !ok {
		return fmt.Errorf("it takes the shape %s, not %v", shapeString(fd.shape), t.Shape)
	}
	return nil
}
