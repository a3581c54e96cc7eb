package exec

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Tensor is a value while a plan runs. Numbers are in Data, in the machine's byte
// order and aligned for their type; strings are in Strings; what a handle refers
// to (variable, queue, reader, table), or a variant holds, is in Value. The memory
// of Data belongs to a frame, a variable, a constant or the caller who fed it, so
// a kernel never writes to its inputs, but by [KernelContext.OutOver].
type Tensor struct {
	DType   tfpb.DataType
	Shape   []int
	Data    []byte
	Strings [][]byte
	Value   any
	Dead    bool // the value of a branch not taken
}

// Element is the set of types that tensors hold as fixed-size memory, plus
// []byte for strings.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~bool | ~[]byte | ~complex64 | ~complex128
}

// Elems views the elements of t as a []T. The caller has checked the dtype.
func Elems[T Element](t *Tensor) []T {
	if s, ok := any(&t.Strings).(*[]T); ok {
		return *s
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data)/int(unsafe.Sizeof(zero)))
}

// NumElements returns the number of elements.
func (t *Tensor) NumElements() int { return NumElements(t.Shape) }

// Dim returns dimension i, counted from the end when negative.
func (t *Tensor) Dim(i int) int {
	if i < 0 {
		i += len(t.Shape)
	}
	return t.Shape[i]
}

// Describe renders a tensor's type and shape for messages.
func (t *Tensor) Describe() string { return TypeName(t.DType) + ShapeString(t.Shape) }

// buffer is memory for one value at a time. It only grows, so a warm plan
// allocates nothing.
type buffer struct{ words []uint64 }

// bytes returns n bytes, aligned to eight, with unspecified contents.
func (b *buffer) bytes(n int) []byte {
	w := (n + 7) / 8
	if cap(b.words) < w {
		b.words = make([]uint64, w)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.words))), n)
}

// holds reports whether a tensor's data are the start of the buffer.
func (b *buffer) holds(data []byte) bool {
	return len(data) > 0 && cap(b.words) > 0 && unsafe.Pointer(unsafe.SliceData(data)) == unsafe.Pointer(unsafe.SliceData(b.words))
}

// size returns how many bytes the buffer takes.
func (b *buffer) size() int { return 8 * cap(b.words) }

// StringHeader is the size of an element of Tensor.Strings, without its bytes.
const StringHeader = int(unsafe.Sizeof([]byte(nil)))

// NewTensor allocates a tensor outside any plan.
func NewTensor(dt tfpb.DataType, shape []int) *Tensor {
	t := &Tensor{DType: dt, Shape: append([]int(nil), shape...)}
	n := t.NumElements()
	if dt == String {
		t.Strings = make([][]byte, n)
		return t
	}
	var b buffer
	t.Data = b.bytes(n * ElemSize(dt))
	return t
}

// Clone returns a copy of t with its own memory. The bytes of strings are
// shared: no kernel changes them.
func (t *Tensor) Clone() *Tensor {
	u := NewTensor(t.DType, t.Shape)
	copy(u.Data, t.Data)
	copy(u.Strings, t.Strings)
	u.Value = t.Value
	return u
}

// BigEndian reports the machine's byte order; tensors at the boundary are
// little-endian.
var BigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// SwapBytes reverses each group of size bytes.
func SwapBytes(p []byte, size int) {
	for ; len(p) >= size; p = p[size:] {
		for i, j := 0, size-1; i < j; i, j = i+1, j-1 {
			p[i], p[j] = p[j], p[i]
		}
	}
}

// WordSize is the size of the units whose bytes have an order.
func WordSize(dt tfpb.DataType) int {
	switch dt {
	case Complex64:
		return 4
	case Complex128:
		return 8
	}
	return ElemSize(dt)
}

// Export copies t into a tensor that the caller owns.
func (t *Tensor) Export() *ckptfmt.Tensor {
	out := &exported{}
	shape := out.dims[:0]
	for _, d := range t.Shape {
		shape = append(shape, int64(d))
	}
	out.DType, out.Shape = t.DType, shape
	if t.DType == String {
		out.Strings = make([][]byte, len(t.Strings))
		for i, s := range t.Strings {
			out.Strings[i] = append([]byte{}, s...)
		}
		return &out.Tensor
	}
	if n := len(t.Data); n <= len(out.small) {
		out.Data = out.small[:n:n]
	} else {
		out.Data = make([]byte, n)
	}
	copy(out.Data, t.Data)
	if BigEndian {
		SwapBytes(out.Data, WordSize(t.DType))
	}
	return &out.Tensor
}

// exported keeps what a small result needs in one allocation.
type exported struct {
	ckptfmt.Tensor
	dims  [4]int64
	small [8]byte
}

// checkTensor says what is inconsistent in a tensor from outside.
func checkTensor(t *ckptfmt.Tensor) error {
	if t == nil {
		return fmt.Errorf("the tensor is nil")
	}
	n, err := dtype.NumElements(t.Shape)
	if err != nil {
		return err
	}
	if t.DType == String {
		if int64(len(t.Strings)) != n {
			return fmt.Errorf("shape %v needs %d strings, not %d", t.Shape, n, len(t.Strings))
		}
		return nil
	}
	size := dtype.Size(t.DType)
	if size == 0 {
		return fmt.Errorf("type %s cannot be passed in or out", TypeName(t.DType))
	}
	if n > math.MaxInt64/size || int64(len(t.Data)) != n*size {
		return fmt.Errorf("%s%v needs %d elements of %d bytes, but there are %d bytes", TypeName(t.DType), t.Shape, n, size, len(t.Data))
	}
	return nil
}

// load makes t a view of a checked tensor from outside. It borrows the data
// when alignment and byte order allow, else copies into own.
func (t *Tensor) load(src *ckptfmt.Tensor, own *buffer) {
	t.DType = src.DType
	t.Shape = t.Shape[:0]
	for _, d := range src.Shape {
		t.Shape = append(t.Shape, int(d))
	}
	t.Strings = src.Strings
	t.Data = src.Data
	if len(src.Data) == 0 {
		t.Data = nil
		return
	}
	if !BigEndian && uintptr(unsafe.Pointer(&src.Data[0]))%8 == 0 {
		return
	}
	t.Data = own.bytes(len(src.Data))
	copy(t.Data, src.Data)
	if BigEndian {
		SwapBytes(t.Data, WordSize(t.DType))
	}
}

// ImportTensor copies a checked tensor from outside.
func ImportTensor(src *ckptfmt.Tensor) *Tensor {
	var t Tensor
	var own buffer
	t.load(src, &own)
	return t.Clone()
}

// CopyElems copies n elements between tensors of one type.
func CopyElems(dst *Tensor, at int, src *Tensor, from, n int) {
	if src.DType == String {
		copy(dst.Strings[at:at+n], src.Strings[from:from+n])
		return
	}
	size := ElemSize(src.DType)
	copy(dst.Data[at*size:(at+n)*size], src.Data[from*size:(from+n)*size])
}

// SetInt stores an element of an integer tensor, which has 16 bits or more.
func SetInt(t *Tensor, i, v int) {
	switch t.DType {
	case Int32:
		Elems[int32](t)[i] = int32(v)
	case Int64:
		Elems[int64](t)[i] = int64(v)
	default:
		Elems[uint16](t)[i] = uint16(v)
	}
}

// IntAt returns element i of an int32 or int64 tensor.
func (t *Tensor) IntAt(i int) int {
	if t.DType == Int32 {
		return int(Elems[int32](t)[i])
	}
	return int(Elems[int64](t)[i])
}

// FloatAt returns element i of a float or double tensor.
func (t *Tensor) FloatAt(i int) float64 {
	if t.DType == Float32 {
		return float64(Elems[float32](t)[i])
	}
	return Elems[float64](t)[i]
}
