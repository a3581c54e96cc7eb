package exec

import (
	"context"
	"maps"
)

// Observer returns a session of the same graph that looks at the model and
// leaves no trace: what evaluates a model in the middle of its training must
// not change what the training comes to.
//
// An observer reads the variables of s, and sees the queues and tables of s.
// Its random ops draw from streams of their own, see [Session.SeedObserver]. A
// variable that a run of it assigns has its old value again when the run ends.
// It does not hold back ops that take from a queue, a reader or an iterator:
// who evaluates has to leave them out.
//
// The observer has the graph as it is now. It is to be closed; s is not closed
// with it.
func (s *Session) Observer() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &Session{ops: s.ops, sessionLimits: s.sessionLimits, dir: s.dir, printer: s.printer, res: s.res, state: s.state, observes: true, g: s.g, library: s.library,
		plans: map[string]*Plan{}, vars: maps.Clone(s.vars), streams: map[string]*RandomStream{}}
	o.memory.observe(&s.memory)
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// undo is the value that a variable had before a run of an observer changed it.
type undo struct {
	v    *Variable
	init bool
	old  *Tensor
}

// remember notes the values of what a step is about to change. Steps that call
// functions leave it to the functions' steps.
func (r *run) remember(f *frame, st *step) {
	if st.calls {
		return
	}
	for _, slot := range st.in {
		v, ok := f.slots[slot].Value.(*Variable)
		if !ok || r.remembers(v) {
			continue
		}
		u := undo{v: v, init: v.Initialized}
		if v.Initialized {
			u.old = v.Value.Clone()
		}
		r.undo = append(r.undo, u)
	}
}

func (r *run) remembers(v *Variable) bool {
	for i := range r.undo {
		if r.undo[i].v == v {
			return true
		}
	}
	return false
}

// undoAll puts back what remember noted. The caller holds the state lock for
// writing.
func (r *run) undoAll() {
	for i := range r.undo {
		if u := &r.undo[i]; u.init {
			u.v.set(u.old)
		} else {
			u.v.Initialized = false
		}
	}
	r.undo = nil
}
