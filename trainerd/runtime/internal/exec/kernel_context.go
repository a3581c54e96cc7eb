package exec

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// KernelContext is one run of one step: a kernel's view of its inputs and outputs.
// Nothing obtained from it outlives the kernel.
type KernelContext struct {
	ctx  context.Context
	run  *run
	f    *frame
	step *step
	lane *lane
	// strings says that the kernel has an output of strings.
	strings bool
	// alone says that a product is not to be computed with others of its sum.
	alone bool
}

// bail carries a failure out of a kernel's depth, where an error return at
// every allocation would bury the arithmetic. The executor recovers it.
type bail struct{ err *session.OpError }

// Errorf returns an error with the name and the op of the node.
func (c *KernelContext) Errorf(code tfpb.Code, format string, args ...any) error {
	return &session.OpError{Code: code, Node: c.step.name, Op: c.step.op, Message: fmt.Sprintf(format, args...)}
}

// Invalid is Errorf with the code INVALID_ARGUMENT, for values that the op does not take.
func (c *KernelContext) Invalid(format string, args ...any) error {
	return c.Errorf(tfpb.Code_INVALID_ARGUMENT, format, args...)
}

// NumInputs returns the number of inputs.
func (c *KernelContext) NumInputs() int { return len(c.step.in) }

// NumOutputs returns the number of outputs.
func (c *KernelContext) NumOutputs() int { return len(c.step.out) }

// Op returns the op of the node.
func (c *KernelContext) Op() string { return c.step.op }

// Context returns the context of the run.
func (c *KernelContext) Context() context.Context { return c.ctx }

// CancelledError returns the error of a run whose context is done.
func (c *KernelContext) CancelledError() error { return c.run.cancelled(c.step) }

// MaxTensorBytes returns how many bytes a tensor may take.
func (c *KernelContext) MaxTensorBytes() int { return c.run.limit }

// HasFeeds reports whether the program fed values to the run.
func (c *KernelContext) HasFeeds() bool { return c.run.fed }

// MarkEffect notes that the run has changed what cannot be undone.
func (c *KernelContext) MarkEffect() { c.run.pass.wrote = true }

// In returns input i.
func (c *KernelContext) In(i int) *Tensor { return &c.f.slots[c.step.in[i]] }

// Slot returns the tensor of output i, to be set by the kernel itself.
func (c *KernelContext) Slot(i int) *Tensor {
	t := &c.f.slots[c.step.out[i]]
	t.Dead = false
	return t
}

// Output returns output i as out has made it.
func (c *KernelContext) Output(i int) *Tensor { return &c.f.slots[c.step.out[i]] }

// Out returns output i, with memory for the given type and shape whose
// contents are unspecified. Too large a shape ends the run with
// RESOURCE_EXHAUSTED.
func (c *KernelContext) Out(i int, dt tfpb.DataType, shape ...int) *Tensor {
	slot := c.step.out[i]
	t := &c.f.slots[slot]
	t.Dead = false
	t.Value = nil
	t.DType = dt
	t.Shape = append(t.Shape[:0], shape...)
	if dt == String {
		n := c.CheckSize(shape, StringHeader)
		c.strings = true
		if cap(t.Strings) < n {
			c.Hold(n * StringHeader)
			t.Strings = make([][]byte, n)
		}
		t.Strings = t.Strings[:n]
		return t
	}
	size := ElemSize(dt)
	n := c.CheckSize(shape, size) * size
	b := &c.f.bufs[c.f.bufOf[slot]]
	c.account(n - b.size())
	t.Data = b.bytes(n)
	return t
}

// OutLike returns output i with the shape of t.
func (c *KernelContext) OutLike(i int, dt tfpb.DataType, t *Tensor) *Tensor {
	return c.Out(i, dt, t.Shape...)
}

// CheckSize returns the number of elements of shape, or bails when they would take
// more than the session's limit.
func (c *KernelContext) CheckSize(shape []int, elem int) int {
	n, ok := CheckedNumElements(shape)
	if !ok {
		panic(bail{c.Invalid("%s is not the shape of a tensor", ShapeString(shape)).(*session.OpError)})
	}
	if elem > 0 && n > c.run.limit/elem {
		panic(bail{c.Errorf(tfpb.Code_RESOURCE_EXHAUSTED, "a tensor of shape %s exceeds the limit of %d bytes", ShapeString(shape), c.run.limit).(*session.OpError)})
	}
	return n
}

// Alias makes output i a view of t's memory with another shape. If t is an input, the
// flags must say so: its memory would be given to the output of a later step.
func (c *KernelContext) Alias(i int, t *Tensor, shape []int) {
	if ChecksAliases {
		c.checkAlias(t)
	}
	o := c.Slot(i)
	o.DType, o.Data, o.Strings, o.Value = t.DType, t.Data, t.Strings, t.Value
	o.Shape = append(o.Shape[:0], shape...)
}

// ChecksAliases has tests panic where a kernel passes on the memory of an input without a flag
// that says so. It is set before anything runs.
var ChecksAliases bool

func (c *KernelContext) checkAlias(t *Tensor) {
	if c.step.flags&AliasesAny != 0 || c.step.flags&(AliasesFirst|ForwardsRef) != 0 && c.In(0) == t {
		return
	}
	for k := range c.NumInputs() {
		if c.In(k) == t {
			panic(fmt.Sprintf("node %s: the flags of %s do not say that input %d is passed on", c.step.name, c.step.op, k))
		}
	}
}

// Scratch returns n elements of working memory, valid until the kernel
// returns. Different numbers k give different memory.
func Scratch[T Element](c *KernelContext, k, n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	c.CheckSize([]int{n}, size)
	c.account(n*size - c.lane.scratch[k].size())
	b := c.lane.scratch[k].bytes(n * size)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// InFrame returns the T that kernels keep in the frame of a call, so that a step
// does not allocate it. It is zero at first, and the same for all kernels of the
// plan, but for those that run at the same time.
func InFrame[T any](c *KernelContext) *T {
	for _, kept := range c.lane.inFrame {
		if p, ok := kept.(*T); ok {
			return p
		}
	}
	p := new(T)
	c.lane.inFrame = append(c.lane.inFrame, p)
	return p
}

// Numbers of the scratch memories.
const (
	ScratchA = iota
	ScratchB
	ScratchC
	ScratchD
	scratchCount
)

// IntsOf returns the elements of an int32 or int64 vector (or scalar) as
// dimensions, in scratch memory k of the call. It bails for other types.
func (c *KernelContext) IntsOf(k int, t *Tensor) []int {
	if !Indices.Has(t.DType) {
		panic(bail{c.Invalid("integers expected, not %s", t.Describe()).(*session.OpError)})
	}
	n := t.NumElements()
	out := c.lane.ints[k][:0]
	for i := range n {
		out = append(out, t.IntAt(i))
	}
	c.lane.ints[k] = out
	return out
}

// KeepInts makes s, which may have grown, scratch memory k of the call.
func (c *KernelContext) KeepInts(k int, s []int) { c.lane.ints[k] = s }

// ScratchInts returns n integers of scratch memory k.
func (c *KernelContext) ScratchInts(k, n int) []int {
	if cap(c.lane.ints[k]) < n {
		c.lane.ints[k] = make([]int, n)
	}
	c.lane.ints[k] = c.lane.ints[k][:n]
	return c.lane.ints[k]
}

// IntScalar returns an input that must hold one int32 or int64.
func (c *KernelContext) IntScalar(i int, what string) (int, error) {
	t := c.In(i)
	if t.NumElements() != 1 || !Indices.Has(t.DType) {
		return 0, c.Invalid("%s must be one integer, not %s", what, t.Describe())
	}
	return t.IntAt(0), nil
}

// Axis returns an input that names a dimension of a tensor of the given rank.
func (c *KernelContext) Axis(i, rank int) (int, error) {
	a, err := c.IntScalar(i, "the axis")
	if err != nil {
		return 0, err
	}
	if a < -rank || a >= rank {
		return 0, c.Invalid("axis %d is outside a tensor of rank %d", a, rank)
	}
	if a < 0 {
		a += rank
	}
	return a, nil
}

// StringScalar returns an input that must hold one string.
func (c *KernelContext) StringScalar(i int, what string) (string, error) {
	if t := c.In(i); len(t.Shape) > 0 {
		return "", c.Invalid("%s must be a scalar, not %s", what, t.Describe())
	}
	return c.OneString(i, what)
}

// BytesScalar is [KernelContext.StringScalar] without a copy.
func (c *KernelContext) BytesScalar(i int, what string) ([]byte, error) {
	t := c.In(i)
	if t.DType != String || len(t.Shape) > 0 || len(t.Strings) != 1 {
		return nil, c.Invalid("%s must be one string, not %s", what, t.Describe())
	}
	return t.Strings[0], nil
}

// OneString is [KernelContext.StringScalar] for ops that take any tensor of one
// element.
func (c *KernelContext) OneString(i int, what string) (string, error) {
	t := c.In(i)
	if t.DType != String || len(t.Strings) != 1 {
		return "", c.Invalid("%s must be one string, not %s", what, t.Describe())
	}
	return string(t.Strings[0]), nil
}

// AsOpError returns an error of a kernel as one that a bail carries.
func AsOpError(err error) *session.OpError {
	var op *session.OpError
	if errors.As(err, &op) {
		return op
	}
	return &session.OpError{Code: tfpb.Code_INTERNAL, Message: fmt.Sprint(err)}
}

// MaxParts bounds the processors that one kernel is split over.
const MaxParts = 64

// SetVariant makes output i hold a value of this file.
func (c *KernelContext) SetVariant(i int, v any) {
	t := c.Slot(i)
	t.DType, t.Shape, t.Data, t.Strings, t.Value = Variant, t.Shape[:0], nil, nil, v
}

// SetHandle makes output i a handle of a resource of this run.
func (c *KernelContext) SetHandle(i int, res any) {
	t := c.Slot(i)
	t.DType, t.Shape, t.Data, t.Strings, t.Value = Resource, t.Shape[:0], nil, nil, res
}

// MustInt returns an input that must be one integer.
func (c *KernelContext) MustInt(i int, what string) int {
	n, err := c.IntScalar(i, what)
	if err != nil {
		panic(bail{AsOpError(err)})
	}
	return n
}

// MustBool returns an input that must be one boolean.
func (c *KernelContext) MustBool(i int, what string) bool {
	t := c.In(i)
	if t.DType != Bool || t.NumElements() != 1 {
		panic(bail{AsOpError(c.Invalid("%s must be one boolean, not %s", what, t.Describe()))})
	}
	return Elems[bool](t)[0]
}
