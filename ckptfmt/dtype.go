package ckptfmt

import (
	"fmt"
	"strings"
	"sync"

	tfpb "github.com/trainerd/trainerd/proto"
)

// dtypeNames holds the names that differ from the lower-case enum name.
var dtypeNames = map[tfpb.DataType]string{
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

// TypeText returns a type and shape as text, as in "float32 [64,10]".
func TypeText(t tfpb.DataType, shape []int64) string {
	return DTypeName(t) + " " + strings.ReplaceAll(fmt.Sprint(shape), " ", ",")
}

// IsFloat reports whether elements of a type are real floating-point numbers, of
// 8 bits or more.
func IsFloat(t tfpb.DataType) bool {
	switch t {
	case tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16,
		tfpb.DataType_DT_FLOAT8_E5M2, tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
		tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ, tfpb.DataType_DT_FLOAT8_E5M2FNUZ:
		return true
	}
	return false
}

// DTypeName returns the name that TensorFlow prints for a type, such as
// "float32". A reference type has "_ref" after it.
func DTypeName(t tfpb.DataType) string {
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
	if name, ok := dtypeNames[t]; ok {
		return name
	}
	return strings.ToLower(strings.TrimPrefix(t.String(), "DT_"))
}

// ParseDType is the inverse of [DTypeName]. It also knows the names of the
// enum, such as "DT_FLOAT".
func ParseDType(name string) (tfpb.DataType, bool) {
	if v, ok := tfpb.DataType_value[name]; ok {
		return tfpb.DataType(v), true
	}
	for v := range tfpb.DataType_name {
		if t := tfpb.DataType(v); DTypeName(t) == name {
			return t, true
		}
	}
	return tfpb.DataType_DT_INVALID, false
}
