package exec

import (
	"context"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/parallel"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Freeze implements [session.LazyStore]. It copies the positions of random
// streams and nothing else: the snapshot takes the variables' memory, and a
// step that is about to change a variable moves it to other memory first. A
// variable is released when the snapshot is asked for the next tensor, or is
// closed, and is changed in place from then on.
//
// The memory that a variable has left is where it moves to during the next
// snapshot. So a variable that steps change during snapshots takes twice its
// size, any other one its size. There may be several snapshots at a time; what
// changes between them is kept once for each.
func (s *Session) Freeze(ctx context.Context, names []string) (session.LazySnapshot, error) {
	f := &frozen{res: s.res, last: -1}
	err := s.betweenWrites(ctx, "freeze", names, func(vars []*Variable, state []ckptfmt.NamedTensor) {
		f.state, f.tensors = state, make([]heldTensor, len(vars))
		s.res.frozen.Add(1)
		for i, v := range vars {
			f.tensors[i] = v.hold()
		}
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// frozen is a LazySnapshot of a Session.
type frozen struct {
	res     *Resources
	state   []ckptfmt.NamedTensor
	tensors []heldTensor
	last    int // the tensor that was given out, or -1
	closed  bool
	synced  bool // the journals are durable
}

// heldTensor is the value of a variable when it was frozen. The memory stays as
// it is until the hold is released.
type heldTensor struct {
	value Tensor
	hold  *hold // nil once released
}

func (f *frozen) State() []ckptfmt.NamedTensor { return f.state }

// Tensor gives out the memory that the variable had when it was frozen. No copy
// is made, but where the machine's byte order is not that of checkpoints.
func (f *frozen) Tensor(i int) (*ckptfmt.Tensor, error) {
	if !f.synced { // not in Freeze, which holds up the training
		if err := f.res.syncJournals(context.Background()); err != nil {
			return nil, err
		}
		f.synced = true
	}
	f.release(f.last)
	f.last = -1
	if i < 0 || i >= len(f.tensors) || f.tensors[i].hold == nil {
		return nil, &session.OpError{Code: tfpb.Code_FAILED_PRECONDITION, Message: "the snapshot does not hold this variable any more"}
	}
	f.last = i
	t := &f.tensors[i].value
	if BigEndian {
		return t.Export(), nil
	}
	return &ckptfmt.Tensor{DType: t.DType, Shape: Int64Shape(t.Shape), Data: t.Data, Strings: t.Strings}, nil
}

// Close releases everything.
func (f *frozen) Close() {
	if f.closed {
		return
	}
	f.closed = true
	for i := range f.tensors {
		f.release(i)
	}
	f.res.frozen.Add(-1)
}

func (f *frozen) release(i int) {
	if i < 0 || f.tensors[i].hold == nil {
		return
	}
	f.tensors[i].hold.release()
	f.tensors[i] = heldTensor{}
}

// hold is what snapshots share that need the same memory of a variable.
type hold struct {
	of    *Variable
	users int    // snapshots that need the memory; guarded by of.moves
	left  buffer // the memory, when the variable has moved out of it; likewise
}

// hold lets a snapshot have the variable's value. The caller holds
// Resources.state.
func (v *Variable) hold() heldTensor {
	v.moves.Lock()
	defer v.moves.Unlock()
	if v.held == nil {
		v.held = &hold{of: v}
	}
	v.held.users++
	value := v.Value
	value.Shape = slices.Clone(value.Shape)
	return heldTensor{value, v.held}
}

// release ends a snapshot's use of the memory. If the variable has left it, it
// is where the variable will move to from the next snapshot.
func (h *hold) release() {
	v := h.of
	v.moves.Lock()
	defer v.moves.Unlock()
	if h.users--; h.users > 0 || v.held == h {
		return
	}
	if cap(h.left.words) >= cap(v.spare.words) {
		v.spare = h.left
	}
	h.left = buffer{}
}

// leave gives the variable other memory if a snapshot needs what it has, and
// reports whether it did. The contents are unspecified, and value still has the
// old ones. The caller holds Resources.state for writing.
//
// Nothing writes to the old memory before the variable leaves the new one, even
// if it is released at once: so values of the run that share it stay as they are.
func (v *Variable) leave() bool {
	v.moves.Lock()
	defer v.moves.Unlock()
	if v.held == nil || v.held.users == 0 {
		return false
	}
	v.held.left, v.own, v.spare = v.own, v.spare, buffer{}
	v.held = nil
	return true
}

// unshare makes the variable's memory one that may be written to. The caller
// holds Resources.state for writing.
func (v *Variable) unshare() {
	if !v.leave() {
		return
	}
	if v.Value.Strings != nil {
		v.Value.Strings = slices.Clone(v.Value.Strings)
		return
	}
	old := v.Value.Data
	v.Value.Data = v.own.bytes(len(old))
	if len(old) < copyPart {
		copy(v.Value.Data, old)
		return
	}
	parallel.Run(MaxParts, &copying{v.Value.Data, old})
}

// copyPart is how many bytes are worth a processor of their own.
const copyPart = 256 << 10

// copying is a [parallel.Job] that copies memory.
type copying struct{ dst, src []byte }

func (c *copying) Part(i, n int) {
	from, to := parallel.Span(len(c.src), copyPart, i, n)
	copy(c.dst[from:to], c.src[from:to])
}

// willChange prepares the variables that a step is about to change: it counts
// the change, and moves them out of the memory that snapshots need. Steps that
// call functions leave it to the functions' steps.
func (f *frame) willChange(st *step, frozen bool) {
	if st.calls {
		return
	}
	move := frozen && st.flags&SetsWhole == 0
	for _, slot := range st.in {
		v, ok := f.slots[slot].Value.(*Variable)
		if !ok {
			continue
		}
		v.changes++
		if move {
			v.unshare()
		}
	}
}
