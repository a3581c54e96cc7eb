// Package literal makes the tensors of Const nodes, as TensorFlow's Python client
// encodes them. It has no state.
package literal

import (
	"encoding/binary"

	tfpb "github.com/trainerd/trainerd/proto"
)

func scalar() *tfpb.TensorShapeProto { return &tfpb.TensorShapeProto{} }

func vector(n int) *tfpb.TensorShapeProto {
	return &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: int64(n)}}}
}

// Float is a scalar of DT_FLOAT.
func Float(v float32) *tfpb.TensorProto { return Filled(v, scalar()) }

// Filled is a tensor of DT_FLOAT whose elements are all v. Its size does not
// depend on its shape.
func Filled(v float32, s *tfpb.TensorShapeProto) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: s, FloatVal: []float32{v}}
}

// Double is a scalar of DT_DOUBLE.
func Double(v float64) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: scalar(), DoubleVal: []float64{v}}
}

// Bool is a scalar of DT_BOOL.
func Bool(v bool) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_BOOL, TensorShape: scalar(), BoolVal: []bool{v}}
}

// Floats is a vector of DT_FLOAT.
func Floats(vs ...float32) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: vector(len(vs)), FloatVal: vs}
}

// Int64s is a vector of DT_INT64.
func Int64s(vs ...int64) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT64, TensorShape: vector(len(vs)), Int64Val: vs}
}

// Int32 is a scalar of DT_INT32.
func Int32(v int32) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: scalar(), IntVal: []int32{v}}
}

// Int64 is a scalar of DT_INT64.
func Int64(v int64) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT64, TensorShape: scalar(), Int64Val: []int64{v}}
}

// String is a scalar of DT_STRING.
func String(s string) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: scalar(), StringVal: [][]byte{[]byte(s)}}
}

// Int32s is a vector of DT_INT32. As TensorFlow does, it keeps a single
// element as a value and several as bytes.
func Int32s(vs ...int32) *tfpb.TensorProto {
	t := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: vector(len(vs))}
	if len(vs) == 1 {
		t.IntVal = vs
		return t
	}
	for _, v := range vs {
		t.TensorContent = binary.LittleEndian.AppendUint32(t.TensorContent, uint32(v))
	}
	return t
}

// Strings is a vector of DT_STRING.
func Strings(ss ...string) *tfpb.TensorProto {
	t := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: vector(len(ss))}
	for _, s := range ss {
		t.StringVal = append(t.StringVal, []byte(s))
	}
	return t
}
