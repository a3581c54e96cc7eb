package graph

import (
	"encoding/binary"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Attrs are a node's attributes by name.
type Attrs map[string]*tfpb.AttrValue

// TypeAttr is an attribute that holds a data type.
func TypeAttr(t tfpb.DataType) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: t}}
}

// BoolAttr is an attribute that holds a bool.
func BoolAttr(v bool) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: v}} }

// IntAttr is an attribute that holds an integer.
func IntAttr(v int64) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: v}} }

// StringAttr is an attribute that holds a string.
func StringAttr(s string) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(s)}}
}

// ShapeAttr is an attribute that holds a shape.
func ShapeAttr(s Shape) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: s.Proto()}}
}

// TensorAttr is an attribute that holds a tensor.
func TensorAttr(t *tfpb.TensorProto) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: t}}
}

// TypesAttr is an attribute that holds a list of data types.
func TypesAttr(ts []tfpb.DataType) *tfpb.AttrValue {
	return listAttr(&tfpb.AttrValue_ListValue{Type: ts})
}

// IntsAttr is an attribute that holds a list of integers.
func IntsAttr(vs ...int64) *tfpb.AttrValue { return listAttr(&tfpb.AttrValue_ListValue{I: vs}) }

// StringsAttr is an attribute that holds a list of strings.
func StringsAttr(ss ...string) *tfpb.AttrValue {
	l := &tfpb.AttrValue_ListValue{}
	for _, s := range ss {
		l.S = append(l.S, []byte(s))
	}
	return listAttr(l)
}

// ShapesAttr is an attribute that holds a list of shapes.
func ShapesAttr(ss []Shape) *tfpb.AttrValue {
	l := &tfpb.AttrValue_ListValue{}
	for _, s := range ss {
		l.Shape = append(l.Shape, s.Proto())
	}
	return listAttr(l)
}

func listAttr(l *tfpb.AttrValue_ListValue) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: l}}
}

// FloatTensor is a scalar of DT_FLOAT.
func FloatTensor(v float32) *tfpb.TensorProto { return FilledTensor(v, Shape{}) }

// FilledTensor is a tensor of DT_FLOAT whose elements are all v. It takes the
// same room whatever its shape.
func FilledTensor(v float32, s Shape) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: s.Proto(), FloatVal: []float32{v}}
}

// BoolTensor is a scalar of DT_BOOL.
func BoolTensor(v bool) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_BOOL, TensorShape: Shape{}.Proto(), BoolVal: []bool{v}}
}

// FloatsTensor is a vector of DT_FLOAT.
func FloatsTensor(vs ...float32) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: MakeShape(int64(len(vs))).Proto(), FloatVal: vs}
}

// Int64sTensor is a vector of DT_INT64.
func Int64sTensor(vs ...int64) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT64, TensorShape: MakeShape(int64(len(vs))).Proto(), Int64Val: vs}
}

// Int32Tensor is a scalar of DT_INT32.
func Int32Tensor(v int32) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: Shape{}.Proto(), IntVal: []int32{v}}
}

// Int64Tensor is a scalar of DT_INT64.
func Int64Tensor(v int64) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT64, TensorShape: Shape{}.Proto(), Int64Val: []int64{v}}
}

// StringTensor is a scalar of DT_STRING.
func StringTensor(s string) *tfpb.TensorProto {
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: Shape{}.Proto(), StringVal: [][]byte{[]byte(s)}}
}

// Int32sTensor is a vector of DT_INT32. As TensorFlow does, it keeps a single
// element as a value and several as bytes.
func Int32sTensor(vs ...int32) *tfpb.TensorProto {
	t := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: MakeShape(int64(len(vs))).Proto()}
	if len(vs) == 1 {
		t.IntVal = vs
		return t
	}
	for _, v := range vs {
		t.TensorContent = binary.LittleEndian.AppendUint32(t.TensorContent, uint32(v))
	}
	return t
}

// StringsTensor is a vector of DT_STRING.
func StringsTensor(ss ...string) *tfpb.TensorProto {
	t := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: MakeShape(int64(len(ss))).Proto()}
	for _, s := range ss {
		t.StringVal = append(t.StringVal, []byte(s))
	}
	return t
}

// shapeTensor is a shape as a vector of DT_INT32, an op's input.
func shapeTensor(s Shape) *tfpb.TensorProto {
	vs := make([]int32, len(s.Dims))
	for i, d := range s.Dims {
		vs[i] = int32(d)
	}
	return Int32sTensor(vs...)
}
