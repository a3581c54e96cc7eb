// Package attr makes the values of a NodeDef's attributes. It has no state.
package attr

import tfpb "github.com/trainerd/trainerd/proto"

// Type is an attribute that holds a data type.
func Type(t tfpb.DataType) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Type{Type: t}}
}

// Bool is an attribute that holds a bool.
func Bool(v bool) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_B{B: v}} }

// Int is an attribute that holds an integer.
func Int(v int64) *tfpb.AttrValue { return &tfpb.AttrValue{Value: &tfpb.AttrValue_I{I: v}} }

// String is an attribute that holds a string.
func String(s string) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_S{S: []byte(s)}}
}

// Shape is an attribute that holds a shape.
func Shape(s *tfpb.TensorShapeProto) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Shape{Shape: s}}
}

// Tensor is an attribute that holds a tensor.
func Tensor(t *tfpb.TensorProto) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_Tensor{Tensor: t}}
}

// Types is an attribute that holds a list of data types.
func Types(ts ...tfpb.DataType) *tfpb.AttrValue {
	return list(&tfpb.AttrValue_ListValue{Type: ts})
}

// Ints is an attribute that holds a list of integers.
func Ints(vs ...int64) *tfpb.AttrValue { return list(&tfpb.AttrValue_ListValue{I: vs}) }

// Strings is an attribute that holds a list of strings.
func Strings(ss ...string) *tfpb.AttrValue {
	l := &tfpb.AttrValue_ListValue{}
	for _, s := range ss {
		l.S = append(l.S, []byte(s))
	}
	return list(l)
}

// Shapes is an attribute that holds a list of shapes.
func Shapes(ss ...*tfpb.TensorShapeProto) *tfpb.AttrValue {
	return list(&tfpb.AttrValue_ListValue{Shape: ss})
}

func list(l *tfpb.AttrValue_ListValue) *tfpb.AttrValue {
	return &tfpb.AttrValue{Value: &tfpb.AttrValue_List{List: l}}
}
