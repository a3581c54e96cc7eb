package exec

import (
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The dtypes of tensors, by short names.
const (
	Float32    = tfpb.DataType_DT_FLOAT
	Float64    = tfpb.DataType_DT_DOUBLE
	Half       = tfpb.DataType_DT_HALF
	Bfloat16   = tfpb.DataType_DT_BFLOAT16
	Complex64  = tfpb.DataType_DT_COMPLEX64
	Complex128 = tfpb.DataType_DT_COMPLEX128
	Int8       = tfpb.DataType_DT_INT8
	Int16      = tfpb.DataType_DT_INT16
	Int32      = tfpb.DataType_DT_INT32
	Int64      = tfpb.DataType_DT_INT64
	Uint8      = tfpb.DataType_DT_UINT8
	Uint16     = tfpb.DataType_DT_UINT16
	Uint32     = tfpb.DataType_DT_UINT32
	Uint64     = tfpb.DataType_DT_UINT64
	Bool       = tfpb.DataType_DT_BOOL
	String     = tfpb.DataType_DT_STRING
	Resource   = tfpb.DataType_DT_RESOURCE
	Variant    = tfpb.DataType_DT_VARIANT
	NoType     = tfpb.DataType_DT_INVALID
)

// TypeSet is a set of dtypes.
type TypeSet uint64

// SetOf returns the set of some types.
func SetOf(types ...tfpb.DataType) TypeSet {
	var s TypeSet
	for _, t := range types {
		s |= 1 << t
	}
	return s
}

// Has reports whether a type is in the set. The empty set has all types.
func (s TypeSet) Has(t tfpb.DataType) bool { return s == 0 || t < 64 && s&(1<<t) != 0 }

// The sets of types that kernels are written for.
var (
	Floats       = SetOf(Float32, Float64)
	Halves       = SetOf(Half, Bfloat16) // elements are handled as uint16; see [Widened]
	ComplexTypes = SetOf(Complex64, Complex128)
	Indices      = SetOf(Int32, Int64)
	Numbers      = Floats | Indices
	SmallInts    = SetOf(Int8, Int16, Uint8, Uint16, Uint32, Uint64)
	RealTypes    = Numbers | SmallInts
	PlainTypes   = RealTypes | SetOf(Bool)
	ValueTypes   = PlainTypes | Halves | ComplexTypes | SetOf(String)
)

// Number is the Go type of the elements of a real type.
type Number interface{ Integer | Float }

// Integer is the Go type of the elements of an integer type.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Float is the Go type of the elements of a floating-point type.
type Float interface{ ~float32 | ~float64 }

// ComplexNumber is the Go type of the elements of a complex type.
type ComplexNumber interface{ ~complex64 | ~complex128 }

// Arithmetic is what can be added and multiplied.
type Arithmetic interface{ Number | ComplexNumber }

// DTypeOf returns the dtype of a Go type.
func DTypeOf[T any]() tfpb.DataType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int32:
		return Int32
	case int64:
		return Int64
	case bool:
		return Bool
	case int8:
		return tfpb.DataType_DT_INT8
	case int16:
		return tfpb.DataType_DT_INT16
	case uint8:
		return tfpb.DataType_DT_UINT8
	case uint16:
		return tfpb.DataType_DT_UINT16
	case uint32:
		return tfpb.DataType_DT_UINT32
	case uint64:
		return tfpb.DataType_DT_UINT64
	case []byte:
		return String
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	}
	return NoType
}

// TypeName returns a dtype as TensorFlow's Python names it, such as "float32".
func TypeName(t tfpb.DataType) string {
	switch t {
	case tfpb.DataType_DT_FLOAT:
		return "float32"
	case tfpb.DataType_DT_DOUBLE:
		return "float64"
	}
	return strings.ToLower(strings.TrimPrefix(t.String(), "DT_"))
}

// refOffset is what the reference form of a type, as in the signature of the older
// variable ops, is above the type.
const refOffset = 100

// baseType returns the type of a reference, other types as they are.
func baseType(t tfpb.DataType) tfpb.DataType {
	if t > refOffset {
		return t - refOffset
	}
	return t
}

// ElemSize returns the bytes of one element, 0 for strings and handles.
func ElemSize(t tfpb.DataType) int { return int(dtype.Size(t)) }
