package variables

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/session"
)

// copyPiece is how much is copied before a step that waits may run.
const copyPiece = 512 << 10

// StepOn is like [Variables.Step] for a step that changes only the named
// variables. While a checkpoint is being written, such a step waits only until
// these are copied; Step waits for all of them. Unregistered names are
// ignored.
func (v *Variables) StepOn(names []string, f func() error) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.frozen != nil {
		for _, name := range names {
			v.frozen.rescue(name)
		}
	}
	return v.step1(f)
}

// Freeze holds the current values. They are copied later: by the steps that
// change them, or when they are requested.
func (v *Variables) Freeze(ctx context.Context, names []string) (session.LazySnapshot, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	state, err := v.saveStates()
	if err != nil {
		return nil, err
	}
	f := &frozenVariables{owner: v, state: state, names: names,
		copies: make([]*ckptfmt.Tensor, len(names)), settled: make([]atomic.Bool, len(names)), place: make(map[string]int)}
	for i, name := range names {
		_, registered := v.vars[name]
		if _, twice := f.place[name]; registered && !twice && v.frozen == nil {
			f.place[name] = i
			continue
		}
		// The counter changes with every step; and there is one freeze at a time.
		if f.copies[i], err = v.get(name); err != nil {
			return nil, err
		}
	}
	f.left.Store(int64(len(f.place)))
	if v.frozen == nil {
		v.frozen = f
	}
	return f, nil
}

// frozenVariables is a LazySnapshot of Variables. Its lock guards what is being
// copied, so that a step that changes none of that does not wait.
type frozenVariables struct {
	owner   *Variables
	names   []string
	state   []ckptfmt.NamedTensor
	place   map[string]int // of the names that are not copied at once
	settled []atomic.Bool  // copied, or asked for: may be changed without a copy
	left    atomic.Int64   // of place that is not settled
	wanted  atomic.Int32   // steps that wait for mu
	turns   parallel.Turns // of the writer

	mu     sync.Mutex
	copies []*ckptfmt.Tensor // made before a step changed the variable
}

func (f *frozenVariables) State() []ckptfmt.NamedTensor { return f.state }

// rescue copies a variable that is about to change. The caller holds the
// owner's lock.
func (f *frozenVariables) rescue(name string) {
	i, ok := f.place[name]
	if !ok || f.settled[i].Load() {
		return
	}
	f.wanted.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted.Add(-1)
	if f.settled[i].Load() {
		return
	}
	g := f.owner.vars[name]
	t := &ckptfmt.Tensor{DType: g.dtype, Shape: g.shape, Data: make([]byte, g.bytes)}
	g.read(t.Data, 0)
	f.copies[i] = t
	f.settle(i)
}

func (f *frozenVariables) settle(i int) {
	f.settled[i].Store(true)
	f.left.Add(-1)
}

func (f *frozenVariables) rescueAll() {
	if f.left.Load() == 0 {
		return
	}
	for name := range f.place {
		f.rescue(name)
	}
}

// Tensor returns the copy that a step had made, or copies the variable now, in
// pieces, so that a step that changes it does not wait long.
func (f *frozenVariables) Tensor(i int) (*ckptfmt.Tensor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.copies[i]; t != nil {
		f.copies[i] = nil
		return t, nil
	}
	v := f.owner
	g := v.vars[f.names[i]]
	if len(v.scratch) < g.bytes {
		v.scratch = make([]byte, g.bytes)
	}
	buf := v.scratch[:g.bytes]
	for at := 0; at < g.bytes && f.copies[i] == nil; at += copyPiece {
		g.read(buf[at:min(at+copyPiece, g.bytes)], at)
		f.mu.Unlock()
		if f.wanted.Load() > 0 {
			runtime.Gosched() // or the step would not get the lock
		}
		f.turns.GiveWay()
		f.mu.Lock()
	}
	if t := f.copies[i]; t != nil { // a step was faster
		f.copies[i] = nil
		return t, nil
	}
	f.settle(i)
	return &ckptfmt.Tensor{DType: g.dtype, Shape: g.shape, Data: buf}, nil
}

// Close ends the freeze.
func (f *frozenVariables) Close() {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	if f.owner.frozen == f {
		f.owner.frozen = nil
	}
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// readBytes copies elements into dst as a checkpoint stores them, from the byte
// offset at on. Both ends lie between two elements.
func readBytes[T float32 | float64 | int64](values []T, dst []byte, at int) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	values = values[at/size:][:len(dst)/size]
	if len(values) == 0 {
		return
	}
	if littleEndian {
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(dst)))
		return
	}
	binary.Encode(dst, binary.LittleEndian, values) // dst has room for them
}

// writeBytes is the inverse of readBytes for a whole variable, of whose type
// and shape the tensor is.
func writeBytes[T float32 | float64 | int64](values []T, t *ckptfmt.Tensor) error {
	var zero T
	if size := int(unsafe.Sizeof(zero)); len(t.Data) != len(values)*size {
		return fmt.Errorf("%d bytes for %d elements of %d", len(t.Data), len(values), size)
	}
	if len(values) == 0 {
		return nil
	}
	if littleEndian {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(t.Data)), t.Data)
		return nil
	}
	_, err := binary.Decode(t.Data, binary.LittleEndian, values)
	return err
}
