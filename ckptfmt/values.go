package ckptfmt

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Element lists the Go types of tensor elements for [Values] and [FromValues].
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 |
		float32 | float64 | complex64 | complex128 | string
}

// elementTypes lists, for each Go type, the tensor types with that layout, the
// natural one first. The 16-bit and 8-bit floats are given as their bits.
func elementTypes[T Element]() []tfpb.DataType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return []tfpb.DataType{tfpb.DataType_DT_BOOL}
	case int8:
		return []tfpb.DataType{tfpb.DataType_DT_INT8, tfpb.DataType_DT_QINT8, tfpb.DataType_DT_INT4, tfpb.DataType_DT_INT2}
	case int16:
		return []tfpb.DataType{tfpb.DataType_DT_INT16, tfpb.DataType_DT_QINT16}
	case int32:
		return []tfpb.DataType{tfpb.DataType_DT_INT32, tfpb.DataType_DT_QINT32}
	case int64:
		return []tfpb.DataType{tfpb.DataType_DT_INT64}
	case uint8:
		return []tfpb.DataType{tfpb.DataType_DT_UINT8, tfpb.DataType_DT_QUINT8, tfpb.DataType_DT_UINT4, tfpb.DataType_DT_UINT2,
			tfpb.DataType_DT_FLOAT8_E5M2, tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
			tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ, tfpb.DataType_DT_FLOAT8_E5M2FNUZ, tfpb.DataType_DT_FLOAT4_E2M1FN}
	case uint16:
		return []tfpb.DataType{tfpb.DataType_DT_UINT16, tfpb.DataType_DT_QUINT16, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16}
	case uint32:
		return []tfpb.DataType{tfpb.DataType_DT_UINT32}
	case uint64:
		return []tfpb.DataType{tfpb.DataType_DT_UINT64}
	case float32:
		return []tfpb.DataType{tfpb.DataType_DT_FLOAT}
	case float64:
		return []tfpb.DataType{tfpb.DataType_DT_DOUBLE}
	case complex64:
		return []tfpb.DataType{tfpb.DataType_DT_COMPLEX64}
	case complex128:
		return []tfpb.DataType{tfpb.DataType_DT_COMPLEX128}
	}
	return []tfpb.DataType{tfpb.DataType_DT_STRING}
}

// Values returns a copy of t's elements. If t's type does not have T's layout, the error matches
// [ErrType]. The elements of half and bfloat16 are available only as their bits, as uint16;
// CastTensor of package rewrite converts such a tensor to float32.
func Values[T Element](t *Tensor) ([]T, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	var zero T
	if !slices.Contains(elementTypes[T](), t.DType) {
		return nil, fmt.Errorf("%w: tensor of %s has no values of %T", ErrType, dtype.Name(t.DType), zero)
	}
	n, _ := dtype.NumElements(t.Shape) // Validate said yes
	out := make([]T, n)
	if s, ok := any(out).([]string); ok {
		for i, v := range t.Strings {
			s[i] = string(v)
		}
		return out, nil
	}
	_, _ = binary.Decode(t.Data, binary.LittleEndian, out) // of the right size, Validate said
	return out, nil
}

// FromValues makes a tensor of T's natural type from a copy of v.
func FromValues[T Element](shape []int64, v []T) (*Tensor, error) {
	n, err := dtype.NumElements(shape)
	if err != nil {
		return nil, err
	}
	if n != int64(len(v)) {
		return nil, fmt.Errorf("ckptfmt: %d values for shape %v of %d elements", len(v), shape, n)
	}
	t := &Tensor{DType: elementTypes[T]()[0], Shape: slices.Clone(shape)}
	if s, ok := any(v).([]string); ok {
		t.Strings = make([][]byte, len(s))
		for i := range s {
			t.Strings[i] = []byte(s[i])
		}
		return t, nil
	}
	t.Data = make([]byte, n*dtype.Size(t.DType))
	_, _ = binary.Encode(t.Data, binary.LittleEndian, v) // there is room for n of them
	return t, nil
}

// Scalar makes a tensor of rank 0.
func Scalar[T Element](v T) *Tensor {
	t, _ := FromValues(nil, []T{v}) // one element, as a scalar has
	return t
}

// Validate checks that t has as many elements as its shape says, in the field
// for its type.
func (t *Tensor) Validate() error {
	n, err := dtype.NumElements(t.Shape)
	if err != nil {
		return err
	}
	if hasStrings(t.DType) {
		if int64(len(t.Strings)) != n || len(t.Data) != 0 {
			return fmt.Errorf("ckptfmt: %s tensor of shape %v has %d strings and %d bytes, not %d strings",
				dtype.Name(t.DType), t.Shape, len(t.Strings), len(t.Data), n)
		}
		return nil
	}
	size := dtype.Size(t.DType)
	if size == 0 {
		return fmt.Errorf("%w: %s has no stored form", ErrType, dtype.Name(t.DType))
	}
	if int64(len(t.Data))/size != n || int64(len(t.Data))%size != 0 || len(t.Strings) != 0 {
		return fmt.Errorf("ckptfmt: %s tensor of shape %v has %d bytes and %d strings, not %d elements of %d bytes",
			dtype.Name(t.DType), t.Shape, len(t.Data), len(t.Strings), n, size)
	}
	return nil
}

// hasStrings reports whether a tensor of type d has its elements in Strings.
func hasStrings(d tfpb.DataType) bool {
	return d == tfpb.DataType_DT_STRING || d == tfpb.DataType_DT_VARIANT
}
