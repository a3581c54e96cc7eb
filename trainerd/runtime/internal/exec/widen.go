package exec

import (
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/opdef"
	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Widened builds an op for the types of 16 bits out of its kernel for float32:
// inputs of the type that attr names are widened, outputs are rounded back.
func Widened(attr string, build func(*OpConstruction) (Kernel, error)) func(*OpConstruction) (Kernel, error) {
	return func(b *OpConstruction) (Kernel, error) {
		dt := b.DType(attr)
		if !Halves.Has(dt) {
			return build(b)
		}
		return b.buildAs(attr, build, &widening{narrow: dt, wide: Float32, outputs: true})
	}
}

// Rounding rounds a float32 to a type of 16 bits.
type Rounding func(float32) float32

// RoundingTo returns the rounding to a type of 16 bits.
func RoundingTo(dt tfpb.DataType) Rounding {
	if dt == Bfloat16 {
		return func(v float32) float32 { return float16.FromBfloat16(float16.ToBfloat16(v)) }
	}
	return func(v float32) float32 { return float16.FromHalf(float16.ToHalf(v)) }
}

// OfSlices returns the same rounding of whole slices.
func (r Rounding) OfSlices() func(d, x []float32) {
	if isHalf := r(1+1./1024) > 1; isHalf {
		return vec.RoundHalves
	}
	return vec.RoundBfloat16s
}

// Steps builds the kernel of an op whose steps round.
type Steps = func(b *OpConstruction, r Rounding) Kernel

// Stepwise is [Widened] for an op that TensorFlow composes of several: each of these
// rounds what it computes to the type of 16 bits, which steps does.
func Stepwise(attr string, build func(*OpConstruction) (Kernel, error), steps Steps) func(*OpConstruction) (Kernel, error) {
	return func(b *OpConstruction) (Kernel, error) {
		dt := b.DType(attr)
		if !Halves.Has(dt) {
			return build(b)
		}
		rounded := func(b *OpConstruction) (Kernel, error) { return steps(b, RoundingTo(dt)), nil }
		return b.buildAs(attr, rounded, &widening{narrow: dt, wide: Float32, outputs: true})
	}
}

// narrowInts are the types that [WidenedIntegers] computes in int64. A uint64 would
// not fit, and a bool is compared as 0 or 1.
var narrowInts = SetOf(Int8, Int16, Uint8, Uint16, Uint32, Bool)

// WidenedIntegers builds an op for the short types of integers out of its kernel for
// int64: what does not fit wraps, as it does in arithmetic of the short type.
func WidenedIntegers(attr string, build func(*OpConstruction) (Kernel, error)) func(*OpConstruction) (Kernel, error) {
	return InInt64(attr, narrowInts, build)
}

// InInt64 builds an op for some types of integers out of its kernel for int64.
func InInt64(attr string, types TypeSet, build func(*OpConstruction) (Kernel, error)) func(*OpConstruction) (Kernel, error) {
	return func(b *OpConstruction) (Kernel, error) {
		dt := b.DType(attr)
		if !types.Has(dt) {
			return build(b)
		}
		return b.buildAs(attr, build, &widening{narrow: dt, wide: Int64, outputs: true})
	}
}

// WidenedIndices builds an op for int16 indices, in the given inputs, out of its
// kernel for int32.
func WidenedIndices(attr string, build func(*OpConstruction) (Kernel, error), inputs ...int) func(*OpConstruction) (Kernel, error) {
	return func(b *OpConstruction) (Kernel, error) {
		if b.DType(attr) != Int16 {
			return build(b)
		}
		return b.buildAs(attr, build, &widening{narrow: Int16, wide: Int32, inputs: inputs})
	}
}

// widening says how a kernel gets values of a wider type than the node has.
type widening struct {
	narrow, wide tfpb.DataType
	inputs       []int // those to widen, nil for all that have the narrow type
	outputs      bool  // are rounded back where the node's have the narrow type
	images       []int // inputs that the kernel may have some images of at a time, and so the outputs
	declared     []opdef.Tensor
	kernel       Kernel

	mu   sync.Mutex
	free []*wideFrame
}

// acquire returns a frame for a step that no other run uses. None is ever left to
// the garbage collector unseen, so that their memory is counted once.
func (w *widening) acquire(s *step) *wideFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.free)
	if n == 0 {
		return newWideFrame(s)
	}
	f := w.free[n-1]
	w.free = w.free[:n-1]
	return f
}

func (w *widening) release(f *wideFrame, r *run) {
	if r.exhausted.Load() {
		f.frame.drop(&r.sess.memory)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = append(w.free, f)
}

// buildAs builds the node as if attr were the wide type.
func (b *OpConstruction) buildAs(attr string, build func(*OpConstruction) (Kernel, error), w *widening) (Kernel, error) {
	def := proto.Clone(b.node.def).(*tfpb.NodeDef)
	if def.Attr == nil {
		def.Attr = map[string]*tfpb.AttrValue{}
	}
	def.Attr[attr] = &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: w.wide}}
	n := *b.node
	n.def = def
	n.declare(nil)
	if b.node.outErr != nil {
		return nil, b.node.outErr
	}
	w.declared = b.node.outs
	narrow := b.node
	b.node = &n
	k, err := build(b)
	b.node, b.turn, b.turned = narrow, nil, nil
	if err != nil {
		return nil, err
	}
	w.kernel = k
	return w.run, nil
}

// wideFrame is what a kernel sees in the place of the node's inputs and outputs.
type wideFrame struct {
	frame *frame
	step  step
	some  Tensor // images of a tensor
}

func newWideFrame(s *step) *wideFrame {
	in, all := len(s.in), len(s.in)+len(s.out)
	p := &Plan{slots: all, bufs: all, bufOf: make([]int32, all)}
	w := &wideFrame{step: *s}
	w.step.takes, w.step.sum = 0, nil // its slots are others
	w.step.in, w.step.out = make([]int32, in), make([]int32, len(s.out))
	for i := range p.bufOf {
		p.bufOf[i] = int32(i)
	}
	copy(w.step.in, p.bufOf[:in])
	copy(w.step.out, p.bufOf[in:])
	w.frame = newFrame(p)
	return w
}

func (w *widening) run(c *KernelContext) error {
	f := w.acquire(c.step)
	defer w.release(f, c.run)
	if n, piece := w.pieces(c); piece < n {
		if done, err := w.inPieces(c, f, n, piece); done {
			return err
		}
	}
	inner := f.context(c)
	for i := range c.NumInputs() {
		w.load(c, f, i, c.In(i))
	}
	if err := w.kernel(inner); err != nil {
		return err
	}
	for i := range c.step.out {
		w.store(c, i, &f.frame.slots[len(c.step.in)+i])
	}
	return nil
}

// context returns what the kernel is called with.
func (f *wideFrame) context(c *KernelContext) *KernelContext {
	f.step.name = c.step.name
	inner := &f.frame.call
	*inner = KernelContext{ctx: c.ctx, run: c.run, f: f.frame, step: &f.step, lane: &f.frame.lane}
	return inner
}

// load gives the kernel an input, widened if it is to be.
func (w *widening) load(c *KernelContext, f *wideFrame, i int, t *Tensor) {
	to := &f.frame.slots[i]
	if t.DType != w.narrow || w.inputs != nil && !slices.Contains(w.inputs, i) {
		*to = *t
		return
	}
	to.DType, to.Shape = w.wide, append(to.Shape[:0], t.Shape...)
	n, b := c.CheckSize(t.Shape, ElemSize(w.wide))*ElemSize(w.wide), &f.frame.bufs[i]
	c.account(n - b.size())
	to.Data = b.bytes(n)
	convertElems(c, to, t)
}

// store makes a result the node's output.
func (w *widening) store(c *KernelContext, i int, t *Tensor) {
	if w.outputs && t.DType == w.wide && i < len(w.declared) && w.declared[i].Type == w.narrow {
		convertElems(c, c.OutLike(i, w.narrow, t), t)
		return
	}
	d := c.OutLike(i, t.DType, t)
	copy(d.Data, t.Data)
	copy(d.Strings, t.Strings)
}

// convertElems converts the elements of src to the type of dst: float32 and the
// types of 16 bits, int16 and int32, or int64 and the shorter integers.
func convertElems(c *KernelContext, dst, src *Tensor) {
	switch {
	case Halves.Has(src.DType):
		ConvertSlices(c, WidenerOfSlices(src.DType), Elems[float32](dst), Elems[uint16](src))
	case Halves.Has(dst.DType):
		ConvertSlices(c, NarrowerOfSlices(dst.DType), Elems[uint16](dst), Elems[float32](src))
	case dst.DType == Int32 && src.DType == Int16:
		convertInts(Elems[int32](dst), Elems[int16](src))
	case dst.DType == Int64:
		fromShort(Elems[int64](dst), src)
	case src.DType == Int64:
		toShort(dst, Elems[int64](src))
	default:
		panic(fmt.Sprintf("%s is not converted to %s", TypeName(src.DType), TypeName(dst.DType)))
	}
}

func convertInts[D, S Integer](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

func fromShort(dst []int64, src *Tensor) {
	switch src.DType {
	case Int8:
		convertInts(dst, Elems[int8](src))
	case Int16:
		convertInts(dst, Elems[int16](src))
	case Uint16:
		convertInts(dst, Elems[uint16](src))
	case Uint32:
		convertInts(dst, Elems[uint32](src))
	case Int32:
		convertInts(dst, Elems[int32](src))
	default: // uint8 and bool
		convertInts(dst, Elems[uint8](src))
	}
}

func toShort(dst *Tensor, src []int64) {
	switch dst.DType {
	case Int8, Uint8:
		convertInts(Elems[uint8](dst), src)
	case Int16, Uint16:
		convertInts(Elems[uint16](dst), src)
	case Int32, Uint32:
		convertInts(Elems[uint32](dst), src)
	default:
		panic("int64 is not converted to " + TypeName(dst.DType))
	}
}

// CheckedType limits the types of one more attribute than the op's entry does.
func CheckedType(attr string, types TypeSet, build func(*OpConstruction) (Kernel, error)) func(*OpConstruction) (Kernel, error) {
	return func(b *OpConstruction) (Kernel, error) {
		if dt := b.DType(attr); b.err == nil && !types.Has(dt) {
			return nil, fmt.Errorf("no kernel for %s=%s", attr, TypeName(dt))
		}
		return build(b)
	}
}
