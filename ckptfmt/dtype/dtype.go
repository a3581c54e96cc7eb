// Package dtype knows the names and sizes of TensorFlow's element types. It has no
// state.
package dtype

import (
	"fmt"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
)

// irregular holds the names that differ from the lower-case enum name.
var irregular = map[tfpb.DataType]string{
	tfpb.DataType_DT_FLOAT:  "float32",
	tfpb.DataType_DT_DOUBLE: "float64",
	tfpb.DataType_DT_HALF:   "float16",
}

// allNames holds the names of all types by number, "" where there is no type:
// each line of a listing asks for one.
var allNames = sync.OnceValue(func() []string {
	var all []string
	for v := range tfpb.DataType_name {
		all = append(all, make([]string, max(0, int(v)+1-len(all)))...)
		all[v] = nameOf(tfpb.DataType(v))
	}
	return all
})

// Text returns a type and shape as text, as in "float32 [64,10]".
func Text(t tfpb.DataType, shape []int64) string { return Name(t) + " " + ShapeText(shape) }

// ShapeText returns a shape as text, as in "[64,10]".
func ShapeText(shape []int64) string { return strings.ReplaceAll(fmt.Sprint(shape), " ", ",") }

// IsFloat reports whether elements of a type are real floating-point numbers.
func IsFloat(t tfpb.DataType) bool {
	switch t {
	case tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16,
		tfpb.DataType_DT_FLOAT8_E5M2, tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
		tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ, tfpb.DataType_DT_FLOAT8_E5M2FNUZ, tfpb.DataType_DT_FLOAT4_E2M1FN:
		return true
	}
	return false
}

// Name returns the name that TensorFlow prints for a type, such as "float32".
// For a reference type it ends in "_ref".
func Name(t tfpb.DataType) string {
	if all := allNames(); t >= 0 && int(t) < len(all) && all[t] != "" {
		return all[t]
	}
	return nameOf(t)
}

func nameOf(t tfpb.DataType) string {
	const firstRef = 100
	if t > firstRef && tfpb.DataType_name[int32(t)] != "" {
		return nameOf(t-firstRef) + "_ref"
	}
	if name, ok := irregular[t]; ok {
		return name
	}
	if tfpb.DataType_name[int32(t)] == "" { // of a newer TensorFlow, or damage
		return fmt.Sprintf("DataType(%d)", t)
	}
	return strings.ToLower(strings.TrimPrefix(t.String(), "DT_"))
}

// Parse is the inverse of [Name]. It also knows the names of the
// enum, such as "DT_FLOAT".
func Parse(name string) (tfpb.DataType, bool) {
	if v, ok := tfpb.DataType_value[name]; ok {
		return tfpb.DataType(v), true
	}
	for v := range tfpb.DataType_name {
		if t := tfpb.DataType(v); Name(t) == name {
			return t, true
		}
	}
	return tfpb.DataType_DT_INVALID, false
}

// Size returns the number of bytes of one element in Tensor.Data and in
// a checkpoint's data file, or 0 for types whose elements have no fixed size
// (strings, variants, resources) and for unknown types.
//
// The types narrower than a byte take one byte each; they are not packed.
func Size(t tfpb.DataType) int64 {
	switch t {
	case tfpb.DataType_DT_UINT8, tfpb.DataType_DT_INT8, tfpb.DataType_DT_BOOL, tfpb.DataType_DT_QINT8, tfpb.DataType_DT_QUINT8,
		tfpb.DataType_DT_FLOAT8_E5M2, tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
		tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ, tfpb.DataType_DT_FLOAT8_E5M2FNUZ, tfpb.DataType_DT_FLOAT4_E2M1FN,
		tfpb.DataType_DT_INT4, tfpb.DataType_DT_UINT4, tfpb.DataType_DT_INT2, tfpb.DataType_DT_UINT2:
		return 1
	case tfpb.DataType_DT_INT16, tfpb.DataType_DT_UINT16, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16,
		tfpb.DataType_DT_QINT16, tfpb.DataType_DT_QUINT16:
		return 2
	case tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_INT32, tfpb.DataType_DT_UINT32, tfpb.DataType_DT_QINT32:
		return 4
	case tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_INT64, tfpb.DataType_DT_UINT64, tfpb.DataType_DT_COMPLEX64:
		return 8
	case tfpb.DataType_DT_COMPLEX128:
		return 16
	}
	return 0
}
