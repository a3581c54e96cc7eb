package ckptfmt

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

func TestTensorFromProto(t *testing.T) {
	f32 := func(shape []int64, v ...float32) *Tensor {
		t, err := FromValues(shape, v)
		if err != nil {
			panic(err)
		}
		return t
	}
	dims := func(d ...int64) *tfpb.TensorShapeProto { return shapeProto(d) }
	for _, tc := range []struct {
		name string
		in   *tfpb.TensorProto
		want *Tensor // nil: refused
	}{
		{"scalar without a shape", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, FloatVal: []float32{1.5}}, f32([]int64{}, 1.5)},
		{"content", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(2), TensorContent: []byte{0, 0, 128, 63, 0, 0, 0, 64}}, f32([]int64{2}, 1, 2)},
		{"content goes before a list", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(1), TensorContent: []byte{0, 0, 128, 63}, FloatVal: []float32{9}}, f32([]int64{1}, 1)},
		{"last value repeated", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(2, 3), FloatVal: []float32{1, 2}}, f32([]int64{2, 3}, 1, 2, 2, 2, 2, 2)},
		{"no value is zero", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(3)}, f32([]int64{3}, 0, 0, 0)},
		{"more values than elements", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(1), FloatVal: []float32{1, 2}}, f32([]int64{1}, 1)},
		{"no elements", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(0, 3), FloatVal: []float32{1}}, f32([]int64{0, 3})},
		{"half bits", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_HALF, TensorShape: dims(2), HalfVal: []int32{0x3c00}}, &Tensor{DType: tfpb.DataType_DT_HALF, Shape: []int64{2}, Data: []byte{0, 0x3c, 0, 0x3c}}},
		{"narrow integers", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT8, TensorShape: dims(2), IntVal: []int32{-1, 300}}, &Tensor{DType: tfpb.DataType_DT_INT8, Shape: []int64{2}, Data: []byte{0xff, 44}}},
		{"complex", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_COMPLEX64, TensorShape: dims(2), ScomplexVal: []float32{1, 2, 3}}, &Tensor{DType: tfpb.DataType_DT_COMPLEX64, Shape: []int64{2}, Data: []byte{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 128, 63, 0, 0, 0, 64}}},
		{"complex128", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_COMPLEX128, TensorShape: dims(2), DcomplexVal: []float64{1, 2, 3}}, &Tensor{DType: tfpb.DataType_DT_COMPLEX128, Shape: []int64{2}, Data: []byte("\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x40")}},
		{"content of one byte", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_UINT8, TensorShape: dims(1), TensorContent: []byte{7}}, &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{1}, Data: []byte{7}}},
		{"content of no elements", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(0), TensorContent: []byte{1, 2, 3}}, f32([]int64{0})},
		{"empty strings as content", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(2), TensorContent: []byte{0, 0}}, &Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{{}, {}}}},
		{"strings", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(3), StringVal: [][]byte{[]byte("a"), {}}}, &Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{3}, Strings: [][]byte{[]byte("a"), {}, {}}}},
		{"strings as content", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(2), TensorContent: []byte("\x01\x02abb")}, &Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), []byte("bb")}}},
		{"float8", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT8_E5M2, TensorShape: dims(2), Float8Val: []byte{1}}, &Tensor{DType: tfpb.DataType_DT_FLOAT8_E5M2, Shape: []int64{2}, Data: []byte{1, 1}}},

		{"content too short", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(2), TensorContent: make([]byte, 7)}, nil},
		{"content too long", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(2), TensorContent: make([]byte, 12)}, nil},
		{"strings as content, cut", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(2), TensorContent: []byte("\x01\x02ab")}, nil},
		{"strings as content, too long", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(1), TensorContent: []byte("\x01ab")}, nil},
		{"strings as content, half a length", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(1), TensorContent: []byte{0x80}}, nil},
		{"no type", &tfpb.TensorProto{TensorShape: dims(2)}, nil},
		{"resource", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_RESOURCE, TensorShape: dims()}, nil},
		{"reference type", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT_REF, TensorShape: dims()}, nil},
		{"negative dimension", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(-1)}, nil},
		{"unknown rank", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{UnknownRank: true}}, nil},
		{"overflow", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(1<<40, 1<<40)}, nil},
		{"more than memory holds", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: dims(1 << 50), FloatVal: []float32{1}}, nil},
		{"more strings than memory holds", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: dims(1 << 50)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := TensorFromProto(tc.in)
			if tc.want == nil {
				if err == nil {
					t.Errorf("got %v, want an error", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if err := got.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every type goes to a message and back, as one element and as several.
func TestProtoRoundTrip(t *testing.T) {
	for v := range tfpb.DataType_name {
		d := tfpb.DataType(v)
		size := dtype.Size(d)
		if size == 0 {
			continue
		}
		for _, shape := range [][]int64{{}, {1}, {2, 3}, {0}} {
			n, err := dtype.NumElements(shape)
			if err != nil {
				t.Fatal(err)
			}
			in := &Tensor{DType: d, Shape: shape, Data: (&goldenFill{Seed: uint64(v), Post: smallTypes[d]}).bytes(int(n * size))}
			p := in.Proto()
			if single := n == 1; single != (p.TensorContent == nil) && n > 0 {
				t.Errorf("%v %v: tensor_content %x", d, shape, p.TensorContent)
			}
			got, err := TensorFromProto(p)
			if err != nil {
				t.Errorf("%v %v: %v", d, shape, err)
				continue
			}
			if !bytes.Equal(got.Data, in.Data) || !slices.Equal(got.Shape, shape) || got.DType != d {
				t.Errorf("%v %v: %x came back as %x", d, shape, in.Data, got.Data)
			}
		}
	}
}

var smallTypes = map[tfpb.DataType]string{
	tfpb.DataType_DT_BOOL: "bool", tfpb.DataType_DT_INT4: "int4", tfpb.DataType_DT_UINT4: "uint4",
	tfpb.DataType_DT_INT2: "int2", tfpb.DataType_DT_UINT2: "uint2",
}

// Constants look as TensorFlow's Python library writes them.
func TestProtoForms(t *testing.T) {
	strs, err := FromValues([]int64{1}, []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		in   *Tensor
		want *tfpb.TensorProto
	}{
		{"scalar", Scalar(float32(2)), &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{}, FloatVal: []float32{2}}},
		{"bool", Scalar(true), &tfpb.TensorProto{Dtype: tfpb.DataType_DT_BOOL, TensorShape: &tfpb.TensorShapeProto{}, BoolVal: []bool{true}}},
		{"string", strs, &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{1}), StringVal: [][]byte{[]byte("a")}}},
	} {
		if diff := cmp.Diff(tc.want, tc.in.Proto(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestValues(t *testing.T) {
	checkValues(t, tfpb.DataType_DT_FLOAT, []float32{1, -2, float32(math.Inf(1))})
	checkValues(t, tfpb.DataType_DT_DOUBLE, []float64{1, -2, 1e300})
	checkValues(t, tfpb.DataType_DT_INT8, []int8{1, -2, 127})
	checkValues(t, tfpb.DataType_DT_INT16, []int16{1, -2, 32767})
	checkValues(t, tfpb.DataType_DT_INT32, []int32{1, -2, 1 << 30})
	checkValues(t, tfpb.DataType_DT_INT64, []int64{1, -2, 1 << 60})
	checkValues(t, tfpb.DataType_DT_UINT8, []uint8{1, 2, 255})
	checkValues(t, tfpb.DataType_DT_UINT16, []uint16{1, 2, 65535})
	checkValues(t, tfpb.DataType_DT_UINT32, []uint32{1, 2, 1 << 31})
	checkValues(t, tfpb.DataType_DT_UINT64, []uint64{1, 2, 1 << 63})
	checkValues(t, tfpb.DataType_DT_BOOL, []bool{true, false, true})
	checkValues(t, tfpb.DataType_DT_COMPLEX64, []complex64{1 + 2i, -3, 4i})
	checkValues(t, tfpb.DataType_DT_COMPLEX128, []complex128{1 + 2i, -3, 4i})
	checkValues(t, tfpb.DataType_DT_STRING, []string{"", "a", "\x00\xff"})
}

func checkValues[T Element](t *testing.T, d tfpb.DataType, v []T) {
	t.Helper()
	tensor, err := FromValues([]int64{3}, v)
	if err != nil {
		t.Fatal(err)
	}
	if tensor.DType != d {
		t.Errorf("type %v, want %v", tensor.DType, d)
	}
	if got, err := Values[T](tensor); err != nil || !slices.Equal(got, v) {
		t.Errorf("%v came back as %v, %v", v, got, err)
	}
	if _, err := FromValues([]int64{2}, v); err == nil {
		t.Errorf("%v: three values for two elements", d)
	}
	if _, err := FromValues([]int64{-3}, v); err == nil {
		t.Errorf("%v: negative dimension", d)
	}
}

func TestValuesOfAnotherType(t *testing.T) {
	if _, err := Values[float64](Scalar(float32(1))); !errors.Is(err, ErrType) {
		t.Errorf("error %v, want ErrType", err)
	}
	if _, err := Values[float32](&Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 7)}); err == nil {
		t.Error("a tensor with too few bytes has values")
	}
}

func FuzzTensorProto(f *testing.F) {
	for _, p := range []*tfpb.TensorProto{
		Scalar(int64(5)).Proto(), Scalar("text").Proto(), Scalar(2 + 1i).Proto(),
		{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shapeProto([]int64{2, 3}), FloatVal: []float32{1, 2}},
		{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{2}), TensorContent: []byte("\x01\x02abb")},
		{Dtype: tfpb.DataType_DT_INT4, TensorShape: shapeProto([]int64{2}), IntVal: []int32{-8, 7}},
	} {
		b, err := proto.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p := &tfpb.TensorProto{}
		if proto.Unmarshal(b, p) != nil {
			return
		}
		if shape, err := shapeFromProto(p.GetTensorShape()); err == nil {
			if n, err := dtype.NumElements(shape); err == nil && n > 1<<20 && n <= maxFilled {
				return // legal, and slow
			}
		}
		v, err := TensorFromProto(p)
		if err != nil {
			return
		}
		if err := v.Validate(); err != nil {
			t.Fatalf("TensorFromProto gave a bad tensor: %v", err)
		}
		again, err := TensorFromProto(v.Proto())
		if err != nil || !bytes.Equal(again.Data, v.Data) || len(again.Strings) != len(v.Strings) {
			t.Fatalf("%v came back as %v, %v", v, again, err)
		}
	})
}

// Variants have messages of their own for elements; what is none is refused by name,
// or gives a message that no reader takes.
func TestVariantProto(t *testing.T) {
	variant := &tfpb.VariantTensorDataProto{TypeName: "list", Metadata: []byte("m")}
	p := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_VARIANT, TensorShape: shapeProto([]int64{2}), VariantVal: []*tfpb.VariantTensorDataProto{variant}}
	v, err := TensorFromProto(p)
	if err != nil || len(v.Strings) != 2 || !bytes.Equal(v.Strings[0], v.Strings[1]) {
		t.Fatalf("%v, %v; the last value fills the rest", v, err)
	}
	back := v.Proto()
	if len(back.VariantVal) != 2 || !proto.Equal(back.VariantVal[1], variant) {
		t.Errorf("it came back as %v", back)
	}
	v.Strings[1] = []byte{0xff}
	if again, err := TensorFromProto(v.Proto()); err == nil && bytes.Equal(again.Strings[1], v.Strings[1]) {
		t.Errorf("what is no variant came back as %v", again)
	}
	variant.TypeName = "\xff"
	if v, err := TensorFromProto(p); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a type that is no text: %v, %v", v, err)
	}
}

func TestBadTensorProtos(t *testing.T) {
	for name, c := range map[string]struct {
		p    *tfpb.TensorProto
		want string
	}{
		"unknown rank":            {&tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: &tfpb.TensorShapeProto{UnknownRank: true}}, "shape of unknown rank"},
		"resource as content":     {&tfpb.TensorProto{Dtype: tfpb.DataType_DT_RESOURCE, TensorContent: []byte("abcd")}, "resource cannot be in tensor_content"},
		"more strings than bytes": {&tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{9}), TensorContent: []byte("\x01a")}, "2 bytes does not hold 9 strings"},
		"length without an end":   {&tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{1}), TensorContent: []byte("\x80\x80")}, "2 bytes does not hold 1 strings"},
		"string past the end":     {&tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{1}), TensorContent: []byte("\x02a")}, "2 bytes does not hold 1 strings"},
		"more after the last":     {&tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{1}), TensorContent: []byte("\x01ab")}, "3 bytes does not hold 1 strings"},
	} {
		if v, err := TensorFromProto(c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, v, err, c.want)
		}
	}
	none := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: shapeProto([]int64{2})}
	if v, err := TensorFromProto(none); err != nil || len(v.Strings) != 2 || v.Strings[1] == nil {
		t.Errorf("no strings are empty ones: %v, %v", v, err)
	}
}
