package exec

import (
	"bytes"
	"fmt"
	"sync"
	"unsafe"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Variable is a named value that outlives runs. Its value is guarded by
// Resources.state, in which memory it is by moves, too; the rest does not
// change.
type Variable struct {
	Name        string
	DType       tfpb.DataType
	Shape       []int // nil when the rank is unknown; -1 for unknown dimensions
	Initialized bool
	Value       Tensor
	own         buffer // the memory of value
	// changes counts the steps that may have changed value or init, and the
	// restores. Guarded by Resources.state, too.
	changes uint64
	// kept says that the variable counts what the input has given out and was
	// restored: it is not to be initialised before it has counted on.
	kept bool

	moves sync.Mutex
	held  *hold  // of snapshots on own, nil if there was none
	spare buffer // where value goes when a snapshot needs own
}

// set copies t into the variable.
func (v *Variable) set(t *Tensor) {
	if v.kept {
		return
	}
	v.changes++
	v.leave()
	v.resize(t.Shape, t.Strings != nil)
	copy(v.Value.Data, t.Data)
	for i, s := range t.Strings {
		v.Value.Strings[i] = bytes.Clone(s) // it may be memory of the caller that fed it
	}
	v.Initialized = true
}

// leastAdopted is from how many bytes on memory is taken over. Smaller values may be parts
// of a larger allocation, which they would keep.
const leastAdopted = 64 << 10

// adopt is set with the memory of t, which nobody else uses.
func (v *Variable) adopt(t *Tensor) {
	if n := len(t.Data); v.kept || n < leastAdopted || n%8 != 0 {
		v.set(t)
		return
	}
	v.changes++
	v.leave()
	v.own = buffer{unsafe.Slice((*uint64)(unsafe.Pointer(&t.Data[0])), len(t.Data)/8)}
	v.resize(t.Shape, false)
	v.Initialized = true
}

// resize gives the variable memory for a shape. The contents are unspecified.
func (v *Variable) resize(shape []int, strings bool) {
	v.Value.DType = v.DType
	v.Value.Shape = append(v.Value.Shape[:0], shape...)
	n := NumElements(shape)
	if v.DType == String {
		v.Value.Strings = make([][]byte, n)
		return
	}
	v.Value.Data = v.own.bytes(n * ElemSize(v.DType))
}

// Accepts reports whether a value of the given shape may be stored.
func (v *Variable) Accepts(shape []int) bool {
	if v.Shape == nil {
		return true
	}
	if len(shape) != len(v.Shape) {
		return false
	}
	for i, d := range v.Shape {
		if d >= 0 && d != shape[i] {
			return false
		}
	}
	return true
}

// Variable is [Session.declare] for the node of the builder.
func (b *OpConstruction) Variable() (*Variable, error) { return b.sess.declare(b) }

// declare returns the variable of a VariableV2 or VarHandleOp node, which
// nodes with the same container and shared name have in common.
func (s *Session) declare(b *OpConstruction) (*Variable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declareLocked(b)
}

// declareLocked is declare for a caller that holds s.mu.
func (s *Session) declareLocked(b *OpConstruction) (*Variable, error) {
	dt := b.DType("dtype")
	shape, known := b.Shape("shape")
	name := b.String("shared_name")
	if name == "" {
		name = b.node.name
	}
	if b.err != nil {
		return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: b.node.name, Op: b.node.op, Message: b.err.Error()}
	}
	if known && shape == nil {
		shape = []int{}
	}
	key := b.String("container") + "\x00" + name
	v := s.res.variable(key, func() *Variable { return &Variable{Name: name, DType: dt, Shape: shape} })
	if v.DType != dt {
		return nil, &session.OpError{Code: tfpb.Code_INVALID_ARGUMENT, Node: b.node.name, Op: b.node.op,
			Message: fmt.Sprintf("the variable %q is %s here and %s elsewhere", name, TypeName(dt), TypeName(v.DType))}
	}
	s.vars[key] = v
	return v, nil
}

// Variable returns the variable that input i refers to.
func (c *KernelContext) Variable(i int) (*Variable, error) {
	v, ok := c.In(i).Value.(*Variable)
	if !ok {
		return nil, c.Invalid("input %d is not a variable", i)
	}
	return v, nil
}

// InitializedVariable returns the variable of input i, which must have a value.
func (c *KernelContext) InitializedVariable(i int) (*Variable, error) {
	v, err := c.Variable(i)
	if err != nil {
		return nil, err
	}
	if !v.Initialized {
		return nil, c.Errorf(tfpb.Code_FAILED_PRECONDITION, "variable %q was never assigned", v.Name)
	}
	return v, nil
}

// TypedVariable is InitializedVariable, and checks the variable's type.
func (c *KernelContext) TypedVariable(i int, dt tfpb.DataType) (*Variable, error) {
	v, err := c.InitializedVariable(i)
	if err != nil {
		return nil, err
	}
	if v.DType != dt {
		return nil, c.Invalid("variable %q is %s, not %s", v.Name, TypeName(v.DType), TypeName(dt))
	}
	return v, nil
}

// ReadVariable is the kernel that makes a variable's value a tensor.
func ReadVariable(c *KernelContext) error {
	v, err := c.InitializedVariable(0)
	if err != nil {
		return err
	}
	if !c.step.copyRead {
		c.Alias(0, &v.Value, v.Value.Shape)
		c.Slot(0).Value = nil
		return nil
	}
	d := c.OutLike(0, v.DType, &v.Value)
	copy(d.Data, v.Value.Data)
	copy(d.Strings, v.Value.Strings)
	return nil
}

// Assign gives a variable a value.
func (c *KernelContext) Assign(v *Variable, t *Tensor) {
	if !v.Initialized {
		c.run.inited.Store(true)
	}
	c.account(len(t.Data) - v.own.size())
	v.set(t)
}

// ResumeCounting is called before a variable that counts what the input has given out
// changes: it was restored, and has counted since.
func (v *Variable) ResumeCounting() { v.kept = false }
