package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Plan runs one (feeds, fetches, targets). It does not change once compiled;
// what changes during a run is in frames.
type Plan struct {
	steps   []step
	slots   int
	consts  []constSlot
	bufOf   []int32 // by slot: number of its buffer, -1 when it has none
	bufs    int
	last    []int   // by slot: the last step that needs its memory
	pinned  []int32 // slots that are set before the first step
	feeds   []feed
	fetches []int32

	access OpFlags // ReadsState, WritesState, TakesInput and ReadsTable of any step
	later  OpFlags // see OpConstruction.Later
	blocks bool    // some step may wait
	// ordered says that some step accesses state that is not a random stream. pure is the
	// number of the step after which none accesses state.
	ordered bool
	pure    int

	mu   sync.Mutex
	free []*frame // idle frames, warm
}

// NumResults returns how many values the plan fetches.
func (p *Plan) NumResults() int { return len(p.fetches) }

// ChangesState reports whether a step changes variables or draws random numbers.
func (p *Plan) ChangesState() bool { return p.access&WritesState != 0 }

// step is one node in the order of execution.
type step struct {
	name, op string
	kernel   Kernel
	elements *Elements // nil: not to be part of a chain
	in, out  []int32
	types    []inputType
	control  []int32 // slots whose death kills the step
	id       int32   // from 1, for those that come from nodes
	after    []int32 // the steps that the graph has run before it, by id
	flags    OpFlags
	later    OpFlags // see OpConstruction.Later
	mayDie   bool
	calls    bool        // runs functions, whose variables are not known here
	draws    bool        // what it accesses of the state are random streams
	copyRead bool        // a read whose value must survive a later write
	takes    uint8       // bits of the first inputs whose memory no later step needs
	form     int         // of a product, 0 for none
	sum      *productSum // nil for none
	total    *total      // that the product is added to, nil for none
	add      AddProducts // of the kernel's products, nil for others
	turn     Kernel      // transposes input 1,
	turned   Kernel      // with which this computes the same; nil for none

	turnedForm int // of turned
}

// runs notes that the step runs a plan.
func (st *step) runs(p *Plan) {
	st.flags |= p.access
	st.later |= p.later
	if p.ordered {
		st.flags |= Ordered
	}
	if p.blocks {
		st.flags |= Blocking
	}
}

type constSlot struct {
	slot  int32
	value *Tensor
}

// feed is a tensor that callers supply.
type feed struct {
	name  string
	slot  int32
	dtype tfpb.DataType // NoType: any
	shape []int         // nil: any; -1: any dimension
}

// compiler turns part of a graph into a plan.
type compiler struct {
	sess   *Session
	g      *graph
	prefix string // path of the call being compiled, "" for the graph
	depth  int
	budget *budget
	plan   *Plan

	fed    map[output]int32
	slotOf map[output]int32
	consts map[int32]*Tensor
	refs   map[int32]bool  // slots that hold a variable itself
	reads  map[int32]int32 // by such slot: the read that no step has outdated
	alive  map[int]int32   // by node that may die: a slot that dies with it
	idle   map[string]bool // nodes that others only run after
	folded *frame          // in which constants are computed; nil before the first
	done   [][]int32       // by node: the steps after which it is done, by id
	merged []int32         // for stepsOf
}

// compile builds the plan for the named feeds, fetches and targets.
func (s *Session) compile(ctx context.Context, feeds, fetches, targets []string) (*Plan, error) {
	b, done := s.newBudget(ctx)
	defer done()
	return s.compileAt(s.graph(), "", 0, b, feeds, fetches, targets)
}

// compileAt compiles part of the graph, or of a function that is called at
// prefix, depth calls deep.
func (s *Session) compileAt(g *graph, prefix string, depth int, b *budget, feeds, fetches, targets []string) (*Plan, error) {
	c := newCompiler(s, g, prefix, depth, b)
	if err := c.addFeeds(feeds); err != nil {
		return nil, err
	}
	if err := c.addFunction(fetches, targets); err != nil {
		return nil, err
	}
	c.finish()
	return c.plan, nil
}

// addFunction appends the steps that the fetches and targets need.
func (c *compiler) addFunction(fetches, targets []string) error {
	outs, roots, err := c.roots(fetches, targets)
	if err != nil {
		return err
	}
	needed := c.prune(slices.Clone(roots))
	c.idle = c.idleNodes(roots, needed)
	// Functions are checked with the graph that calls them.
	if c.depth == 0 {
		if err := c.checkOps(needed); err != nil {
			return err
		}
		if err := c.checkSize(&expansion{sess: c.sess, of: map[string]expanded{}}, needed); err != nil {
			return err
		}
	}
	if c.g, needed, err = cutLoops(c.g, needed); err != nil {
		return err
	}
	if err := c.addNodes(needed); err != nil {
		return err
	}
	return c.addFetches(fetches, outs)
}

func newCompiler(s *Session, g *graph, prefix string, depth int, b *budget) *compiler {
	return &compiler{sess: s, g: g, prefix: prefix, depth: depth, budget: b, plan: &Plan{}, fed: map[output]int32{}, slotOf: map[output]int32{},
		consts: map[int32]*Tensor{}, refs: map[int32]bool{}, reads: map[int32]int32{}, alive: map[int]int32{}}
}

// addNodes appends the steps of the needed nodes.
func (c *compiler) addNodes(needed []bool) error {
	order, err := c.sort(needed)
	if err != nil {
		return err
	}
	c.plan.steps = slices.Grow(c.plan.steps, len(order))
	slots := make(map[output]int32, len(order)) // growing a large map step by step takes longer than filling it
	maps.Copy(slots, c.slotOf)
	c.slotOf, c.done = slots, make([][]int32, len(c.g.nodes))
	for _, n := range order {
		if c.depth == 0 { // a function is charged before it is compiled
			if err := c.budget.charge("", c.prefix, 1); err != nil {
				return err
			}
		}
		from := len(c.plan.steps)
		if err := c.addNode(&c.g.nodes[n], n); err != nil {
			return err
		}
		c.orderAfter(n, from)
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
			return &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: "feed: " + err.Error()}
		}
		if _, ok := c.fed[out]; ok {
			return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("%q is fed twice", name)}
		}
		slot := c.newSlot()
		c.fed[out] = slot
		c.slotOf[out] = slot
		f := feed{name: name, slot: slot}
		n := &c.g.nodes[out.node]
		if strings.HasPrefix(n.op, "Placeholder") {
			b := &OpConstruction{node: n}
			f.dtype = b.DType("dtype")
			f.shape, _ = b.Shape("shape")
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
			return nil, nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: "fetch: " + err.Error()}
		}
		outs = append(outs, out)
		if _, ok := c.fed[out]; !ok {
			roots = append(roots, out.node)
		}
	}
	for _, name := range targets {
		out, err := c.g.lookup(name)
		if err != nil {
			return nil, nil, &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: "target: " + err.Error()}
		}
		roots = append(roots, out.node)
	}
	return outs, roots, nil
}

// foldLimit keeps large computed constants, such as the zeros a big variable
// starts from, out of the plan: they are cheaper made when needed.
const foldLimit = 1 << 20

var errTooLargeToFold = errors.New("too large to fold")

func (c *compiler) addFetches(names []string, outs []output) error {
	for i, out := range outs {
		slot, ok := c.slotOf[out]
		if !ok {
			return &session.OpError{Code: tfpb.Code_NOT_FOUND, Message: fmt.Sprintf("fetch: node %s has no output %d (%q)", c.g.nodes[out.node].name, out.index, names[i])}
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
	for i, st := range p.steps {
		usesState := st.flags&(ReadsState|WritesState) != 0
		p.ordered = p.ordered || st.flags&(Ordered|Blocking|TakesInput) != 0 || usesState && !st.draws
		if usesState {
			p.pure = i + 1
		}
		p.access |= st.flags & (ReadsState | WritesState | TakesInput | ReadsTable)
		p.later |= st.later
		p.blocks = p.blocks || st.flags&Blocking != 0
	}
	c.drawFirst()
	for slot, v := range c.consts {
		p.consts = append(p.consts, constSlot{slot, v})
	}
	slices.SortFunc(p.consts, func(a, b constSlot) int { return cmp.Compare(a.slot, b.slot) })
	c.turnFactors()
	c.markSums()
	p.last = c.lastUses()
	c.markCopies(p.last)
	c.assignBuffers(p.last)
	c.markTakes(p.last)
}

// acquire returns a frame that no other run uses.
func (p *Plan) acquire() *frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		f := p.free[n-1]
		p.free = p.free[:n-1]
		return f
	}
	return newFrame(p)
}

// release lets other runs use a frame, or drops it at the end of a run that
// needed too much memory.
func (p *Plan) release(f *frame, r *run) {
	if r.exhausted.Load() {
		f.drop(&r.sess.memory)
		return
	}
	for _, fd := range p.feeds {
		t := &f.slots[fd.slot]
		t.Data, t.Strings = nil, nil // the caller's memory
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, f)
}

// check says why a tensor cannot be fed.
func (fd *feed) check(t *ckptfmt.Tensor) error {
	if err := checkTensor(t); err != nil {
		return err
	}
	if fd.dtype != NoType && fd.dtype != t.DType {
		return fmt.Errorf("it takes %s, not %s", TypeName(fd.dtype), TypeName(t.DType))
	}
	if fd.shape == nil {
		return nil
	}
	ok := len(fd.shape) == len(t.Shape)
	for i := 0; ok && i < len(fd.shape); i++ {
		ok = fd.shape[i] < 0 || int64(fd.shape[i]) == t.Shape[i]
	}
	if !ok {
		return fmt.Errorf("it takes the shape %s, not %v", ShapeString(fd.shape), t.Shape)
	}
	return nil
}
