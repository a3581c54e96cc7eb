package exec

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// frame is the memory of one run of a plan. Frames are kept by their plan, so
// the second run finds every buffer in its final size.
type frame struct {
	plan     *Plan
	slots    []Tensor
	bufs     []buffer
	bufOf    []int32    // by slot: its buffer, as in the plan but for small values of regions
	swapping sync.Mutex // guards what follows
	swaps    [][2]int32 // buffers that have changed places since the first step
	chains   []*chain   // by step: the chain that begins with it; nil for none
	kept     kept       // of the runs that begin with this frame
	searched bool       // for chains
	handed   []*Tensor  // by HandOut
	times    *times     // of the steps, while they are measured
	regions  []*region  // by step: the region that begins with it; nil for none

	lane         // of steps that run alone
	more []*lane // for those that run with others
	run  run
	loop loopState
}

func newFrame(p *Plan) *frame {
	f := &frame{plan: p, slots: make([]Tensor, p.slots), bufs: make([]buffer, p.bufs), bufOf: p.bufOf}
	for _, c := range p.consts {
		f.slots[c.slot] = *c.value
	}
	f.lane.init()
	return f
}

// run is one Session.Run: what its steps share, functions that they call
// included.
type run struct {
	top    *frame // the one that the run began with; nil in a part that is detached
	sess   *Session
	ctx    context.Context
	limit  int     // bytes of the largest tensor
	lock   OpFlags // which form of the state lock the run takes: ReadsState, WritesState or 0
	held   bool
	frozen bool        // snapshots may need what variables hold; while the lock is held for writing
	inited atomic.Bool // a variable got its first value
	drawn  []*RandomStream
	undo   []undo // what an observer's run has changed
	fed    bool   // values were fed
	pass   gatePassage
	trace  *trace // nil for none
	// exhausted says that a kernel needed more memory than the session may take.
	exhausted atomic.Bool
	ahead     bool     // it is part of a call ahead
	streams   *Streams // to draw from; nil for the session's
}

// acquire takes the state lock in the form that the whole run needs.
func (r *run) acquire() {
	if r.held || r.lock == 0 {
		return
	}
	r.held = true
	if r.lock&WritesState != 0 {
		r.sess.state.Lock()
		r.frozen = r.sess.res.frozen.Load() > 0
		return
	}
	r.sess.state.RLock()
}

func (r *run) releaseLock() {
	if !r.held {
		return
	}
	r.held = false
	if len(r.undo) > 0 {
		r.undoAll()
	}
	if r.lock&WritesState != 0 {
		r.sess.state.Unlock()
		return
	}
	r.sess.state.RUnlock()
}

// unlocked calls wait, which may block on other runs, without the state lock.
func (r *run) unlocked(wait func() error) error {
	held := r.held
	r.releaseLock()
	err := wait()
	if held {
		r.acquire()
	}
	return err
}

// doTraced runs a plan on fed tensors and copies the fetched values out. A trace
// that is not nil records its steps.
func (s *Session) doTraced(ctx context.Context, p *Plan, t *trace, fed func(i int) *ckptfmt.Tensor) (results []*ckptfmt.Tensor, err error) {
	if s.closed.Load() {
		return nil, errClosed
	}
	f := p.acquire()
	defer p.release(f, &f.run)
	for i := range p.feeds {
		fd := &p.feeds[i]
		value := fed(i)
		if err := fd.check(value); err != nil {
			return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("feed %q: %v", fd.name, err)}
		}
		f.slots[fd.slot].load(value, &f.bufs[p.bufOf[fd.slot]])
	}
	r := &f.run
	*r = run{top: f, sess: s, ctx: ctx, limit: s.limit, lock: p.access & (ReadsState | WritesState), drawn: r.drawn[:0], fed: len(p.feeds) > 0, trace: t,
		pass: gatePassage{taken: r.pass.taken}}
	if err := r.enterGate(p); err != nil {
		return nil, err
	}
	defer func() { r.leaveGate(err) }()
	defer func() { f.kept.end(err == nil) }()
	defer r.releaseLock()
	if err := r.steps(f); err != nil {
		return nil, err
	}
	r.settleStreams()
	if len(p.fetches) == 0 {
		return nil, nil
	}
	results = make([]*ckptfmt.Tensor, len(p.fetches))
	for i, slot := range p.fetches {
		if results[i], err = r.fetch(f, slot); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// fetch copies the value of a slot out of the frame.
func (r *run) fetch(f *frame, slot int32) (*ckptfmt.Tensor, error) {
	t := &f.slots[slot]
	if t.Dead {
		return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: "a fetched tensor has no value: it is on a branch that was not taken"}
	}
	if t.DType != String && ElemSize(t.DType) == 0 {
		return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Message: fmt.Sprintf("a tensor of type %s cannot be fetched", TypeName(t.DType))}
	}
	if len(t.Data) >= manyBytes && !r.sess.memory.fits(int64(len(t.Data))) {
		r.exhausted.Store(true)
		return nil, &session.OpError{Code: tfpb.Code_RESOURCE_EXHAUSTED, Message: "a fetched tensor: " + r.sess.memory.shortage(len(t.Data))}
	}
	return t.Export(), nil
}

// steps runs all steps of a frame's plan.
func (r *run) steps(f *frame) error {
	r.begin(f)
	if r.trace != nil {
		return r.tracedSteps(f)
	}
	next := r.next
	if f.measures(r) {
		next = r.measured
	}
	if err := r.stepsBetween(f, 0, len(f.plan.steps), next); err != nil {
		return err
	}
	r.end(f)
	return nil
}

// begin makes a frame ready for its first step.
func (r *run) begin(f *frame) {
	f.settle()
	r.takeBack(f)
}

// end is called after the last step of a frame.
func (r *run) end(f *frame) {
	if !f.searched {
		f.findChains()
	}
	f.endMeasuring(&r.sess.memory)
}

// stepsBetween runs the steps from number from to before number to, each by next.
func (r *run) stepsBetween(f *frame, from, to int, next func(f *frame, i, to int) (int, error)) error {
	done := r.ctx.Done()
	for i := from; i < to; {
		st := &f.plan.steps[i]
		select {
		case <-done:
			if !r.mayFinish() {
				return r.cancelled(st)
			}
		default:
		}
		n, err := next(f, i, to)
		if err != nil {
			return err
		}
		i = n
	}
	return nil
}

// next runs step i, or the region or the chain that begins with it if that ends before
// number to, and returns the step after.
func (r *run) next(f *frame, i, to int) (int, error) {
	if f.regions != nil && f.regions[i] != nil && f.regions[i].end <= to && !r.sess.observes {
		return f.regions[i].end, r.runRegion(f, f.regions[i])
	}
	return r.nextIn(&f.lane, f, i, to)
}

// nextIn is next in a lane, without regions.
func (r *run) nextIn(l *lane, f *frame, i, to int) (int, error) {
	if f.chains != nil && f.chains[i] != nil && f.chains[i].end <= to {
		if done, err := r.runChain(l, f, f.chains[i]); done || err != nil {
			return f.chains[i].end, err
		}
	}
	return i + 1, r.stepIn(l, f, &f.plan.steps[i])
}

// cancelled returns the error of a run whose context is done.
func (r *run) cancelled(st *step) error {
	code := tfpb.Code_CANCELLED
	if errors.Is(r.ctx.Err(), context.DeadlineExceeded) {
		code = tfpb.Code_DEADLINE_EXCEEDED
	}
	return &session.OpError{Code: code, Node: st.name, Op: st.op, Err: r.ctx.Err()}
}

// step runs one step while no other one does.
func (r *run) step(f *frame, st *step) error { return r.stepIn(&f.lane, f, st) }

// stepIn runs one step. It is the boundary at which a kernel's bail, or a panic
// that no check foresaw, becomes an error.
func (r *run) stepIn(l *lane, f *frame, st *step) (err error) {
	if st.mayDie && st.flags&SeesDead == 0 && f.killed(st) {
		return nil
	}
	if st.flags&(ReadsState|WritesState) != 0 {
		r.acquire()
		if st.flags&WritesState != 0 && !st.calls && !r.pass.wrote {
			r.pass.wrote = true
		}
	}
	for i, slot := range st.in {
		if want := st.types[i].dtype; want != NoType && f.slots[slot].DType != want && !f.slots[slot].Dead {
			return &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: st.name, Op: st.op,
				Message: fmt.Sprintf("input %d is %s, not %s", i, f.slots[slot].Describe(), TypeName(want))}
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = recovered(st, p)
		}
	}()
	c := &l.call
	c.ctx, c.run, c.f, c.step, c.lane = r.ctx, r, f, st, l
	if st.flags&WritesState != 0 {
		f.willChange(st, r.frozen)
	}
	if r.sess.observes && st.flags&WritesState != 0 {
		r.remember(f, st)
	}
	err = st.kernel(c)
	if c.strings {
		c.holdStrings()
	}
	return err
}

func recovered(st *step, p any) error {
	if b, ok := p.(bail); ok {
		return b.err
	}
	return &session.OpError{Code: tfpb.Code_INTERNAL, Node: st.name, Op: st.op, Message: fmt.Sprintf("panic: %v\n%s", p, debug.Stack())}
}

// killed reports whether an input of st is dead; then its outputs are, too.
func (f *frame) killed(st *step) bool {
	dead := false
	for _, slot := range st.in {
		dead = dead || f.slots[slot].Dead
	}
	for _, slot := range st.control {
		dead = dead || f.slots[slot].Dead
	}
	for _, slot := range st.out {
		f.slots[slot].Dead = dead // it may have died in an earlier run
	}
	return dead
}
