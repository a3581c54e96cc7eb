package ckptfmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// maxFilled bounds the bytes to which a message of few values may expand.
const maxFilled = 1 << 31

// TensorFromProto returns the tensor that p describes, by TensorFlow's rules:
// the elements are in tensor_content, or in the list of the type; a list that
// is too short is filled with its last value, an empty one with zeros. Nothing
// of p is kept.
func TensorFromProto(p *tfpb.TensorProto) (*Tensor, error) {
	shape, err := shapeFromProto(p.GetTensorShape())
	if err != nil {
		return nil, err
	}
	n, err := dtype.NumElements(shape)
	if err != nil {
		return nil, err
	}
	t := &Tensor{DType: p.GetDtype(), Shape: shape}
	if len(p.GetTensorContent()) > 0 && n > 0 {
		err = t.setContent(n, p.GetTensorContent())
	} else {
		err = t.setList(n, p, true)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func shapeFromProto(p *tfpb.TensorShapeProto) ([]int64, error) {
	if p.GetUnknownRank() {
		return nil, errors.New("ckptfmt: shape of unknown rank")
	}
	shape := make([]int64, len(p.GetDim()))
	for i, d := range p.GetDim() {
		shape[i] = d.GetSize()
	}
	return shape, nil
}

func shapeProto(shape []int64) *tfpb.TensorShapeProto {
	p := &tfpb.TensorShapeProto{}
	for _, d := range shape {
		p.Dim = append(p.Dim, &tfpb.TensorShapeProto_Dim{Size: d})
	}
	return p
}

// setContent takes n elements from a tensor_content.
func (t *Tensor) setContent(n int64, content []byte) error {
	if t.DType == tfpb.DataType_DT_STRING {
		var err error
		t.Strings, err = splitStrings(n, content)
		return err
	}
	size := dtype.Size(t.DType)
	if size == 0 {
		return fmt.Errorf("%w: %s cannot be in tensor_content", ErrType, dtype.Name(t.DType))
	}
	if int64(len(content))/size != n || int64(len(content))%size != 0 {
		return fmt.Errorf("ckptfmt: tensor_content of %d bytes for %d elements of %s", len(content), n, dtype.Name(t.DType))
	}
	t.Data = append(make([]byte, 0, len(content)), content...)
	return nil
}

// splitStrings reads TensorFlow's list of strings: n varint lengths, then the
// strings.
func splitStrings(n int64, b []byte) ([][]byte, error) {
	errShort := fmt.Errorf("ckptfmt: tensor_content of %d bytes does not hold %d strings", len(b), n)
	if n > int64(len(b)) {
		return nil, errShort
	}
	lengths := make([]uint64, n)
	for i := range lengths {
		v, m := binary.Uvarint(b)
		if m <= 0 {
			return nil, errShort
		}
		lengths[i], b = v, b[m:]
	}
	out := make([][]byte, n)
	for i, size := range lengths {
		if size > uint64(len(b)) {
			return nil, errShort
		}
		out[i], b = slices.Clone(b[:size]), b[size:]
	}
	if len(b) > 0 {
		return nil, errShort
	}
	return out, nil
}

// setList takes n elements from the list of t's type. With fill false there
// must be n of them.
func (t *Tensor) setList(n int64, p *tfpb.TensorProto, fill bool) error {
	have, err := listLen(t.DType, p)
	if err != nil {
		return err
	}
	if !fill && int64(have) < n {
		return fmt.Errorf("ckptfmt: %d values for %d elements of %s", have, n, dtype.Name(t.DType))
	}
	size := max(dtype.Size(t.DType), 1)
	if int64(have) < n && n > maxFilled/size {
		return fmt.Errorf("ckptfmt: %d values are to fill %d elements of %s, more than %d bytes", have, n, dtype.Name(t.DType), int64(maxFilled))
	}
	if hasStrings(t.DType) {
		return t.setStrings(n, have, p)
	}
	take := min(int64(have), n)
	t.Data = make([]byte, n*size)
	appendList(t.Data[:0], t.DType, int(take), p) // has room, so it stays in t.Data
	if take == 0 {
		return nil
	}
	// Doubling copies fill a large tensor at the speed of memory.
	for done := take * size; done < n*size; {
		from := t.Data[(take-1)*size : done]
		done += int64(copy(t.Data[done:], from))
	}
	return nil
}

func (t *Tensor) setStrings(n int64, have int, p *tfpb.TensorProto) error {
	t.Strings = make([][]byte, n)
	for i := range t.Strings {
		j := min(i, have-1)
		switch {
		case j < 0:
			t.Strings[i] = []byte{}
		case t.DType == tfpb.DataType_DT_STRING:
			t.Strings[i] = append([]byte{}, p.StringVal[j]...)
		default:
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.VariantVal[j])
			if err != nil {
				return err
			}
			t.Strings[i] = b
		}
	}
	return nil
}

// listLen returns the number of elements in the list of type d.
func listLen(d tfpb.DataType, p *tfpb.TensorProto) (int, error) {
	switch d {
	case tfpb.DataType_DT_FLOAT:
		return len(p.FloatVal), nil
	case tfpb.DataType_DT_DOUBLE:
		return len(p.DoubleVal), nil
	case tfpb.DataType_DT_STRING:
		return len(p.StringVal), nil
	case tfpb.DataType_DT_COMPLEX64:
		return len(p.ScomplexVal) / 2, nil
	case tfpb.DataType_DT_INT64:
		return len(p.Int64Val), nil
	case tfpb.DataType_DT_BOOL:
		return len(p.BoolVal), nil
	case tfpb.DataType_DT_COMPLEX128:
		return len(p.DcomplexVal) / 2, nil
	case tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16:
		return len(p.HalfVal), nil
	case tfpb.DataType_DT_VARIANT:
		return len(p.VariantVal), nil
	case tfpb.DataType_DT_UINT32:
		return len(p.Uint32Val), nil
	case tfpb.DataType_DT_UINT64:
		return len(p.Uint64Val), nil
	}
	if isFloat8(d) {
		return len(p.Float8Val), nil
	}
	if isIntVal(d) {
		return len(p.IntVal), nil
	}
	return 0, fmt.Errorf("%w: no tensor can be made of %s", ErrType, dtype.Name(d))
}

// isFloat8 reports whether elements of type d are in float8_val.
func isFloat8(d tfpb.DataType) bool {
	switch d {
	case tfpb.DataType_DT_FLOAT8_E5M2, tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
		tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ, tfpb.DataType_DT_FLOAT8_E5M2FNUZ, tfpb.DataType_DT_FLOAT4_E2M1FN:
		return true
	}
	return false
}

// isIntVal reports whether elements of type d are in int_val.
func isIntVal(d tfpb.DataType) bool {
	switch d {
	case tfpb.DataType_DT_INT32, tfpb.DataType_DT_INT16, tfpb.DataType_DT_INT8, tfpb.DataType_DT_UINT8, tfpb.DataType_DT_UINT16,
		tfpb.DataType_DT_QINT8, tfpb.DataType_DT_QUINT8, tfpb.DataType_DT_QINT16, tfpb.DataType_DT_QUINT16, tfpb.DataType_DT_QINT32,
		tfpb.DataType_DT_INT4, tfpb.DataType_DT_UINT4, tfpb.DataType_DT_INT2, tfpb.DataType_DT_UINT2:
		return true
	}
	return false
}

// appendList appends the bytes of the first n elements of type d to b.
func appendList(b []byte, d tfpb.DataType, n int, p *tfpb.TensorProto) []byte {
	switch d {
	case tfpb.DataType_DT_FLOAT:
		return appendAll(b, p.FloatVal[:n])
	case tfpb.DataType_DT_COMPLEX64:
		return appendAll(b, p.ScomplexVal[:2*n])
	case tfpb.DataType_DT_DOUBLE:
		return appendAll(b, p.DoubleVal[:n])
	case tfpb.DataType_DT_COMPLEX128:
		return appendAll(b, p.DcomplexVal[:2*n])
	case tfpb.DataType_DT_INT64:
		return appendAll(b, p.Int64Val[:n])
	case tfpb.DataType_DT_UINT64:
		return appendAll(b, p.Uint64Val[:n])
	case tfpb.DataType_DT_UINT32:
		return appendAll(b, p.Uint32Val[:n])
	case tfpb.DataType_DT_BOOL:
		return appendAll(b, p.BoolVal[:n])
	case tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16:
		return appendInts(b, 2, p.HalfVal[:n])
	}
	if isFloat8(d) {
		return append(b, p.Float8Val[:n]...)
	}
	return appendInts(b, dtype.Size(d), p.IntVal[:n])
}

// appendAll appends the little-endian bytes of v.
func appendAll[T bool | int32 | int64 | uint32 | uint64 | float32 | float64](b []byte, v []T) []byte {
	b, _ = binary.Append(b, binary.LittleEndian, v) // which can be done with each of these types
	return b
}

// appendInts appends the low size bytes of each value.
func appendInts(b []byte, size int64, vals []int32) []byte {
	for _, v := range vals {
		switch size {
		case 1:
			b = append(b, byte(v))
		case 2:
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		default:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// Proto returns t as TensorFlow's Python library writes constants: a single
// element in the list of its type, more of them as tensor_content, strings
// always in string_val. The message does not share memory with t. A tensor
// that [Tensor.Validate] refuses gives a message that no reader accepts.
func (t *Tensor) Proto() *tfpb.TensorProto {
	p := &tfpb.TensorProto{Dtype: t.DType, TensorShape: shapeProto(t.Shape)}
	size := dtype.Size(t.DType)
	switch {
	case t.DType == tfpb.DataType_DT_STRING:
		for _, s := range t.Strings {
			p.StringVal = append(p.StringVal, append([]byte{}, s...))
		}
	case t.DType == tfpb.DataType_DT_VARIANT:
		for _, s := range t.Strings {
			v := &tfpb.VariantTensorDataProto{}
			if err := proto.Unmarshal(s, v); err != nil {
				return p
			}
			p.VariantVal = append(p.VariantVal, v)
		}
	case int64(len(t.Data)) == size:
		setElement(p, t.Data)
	default:
		p.TensorContent = append([]byte{}, t.Data...)
	}
	return p
}

// setElement puts one element into the list of p's type.
func setElement(p *tfpb.TensorProto, b []byte) {
	le := binary.LittleEndian
	float := func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }
	double := func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }
	switch p.Dtype {
	case tfpb.DataType_DT_FLOAT:
		p.FloatVal = []float32{float(b)}
	case tfpb.DataType_DT_COMPLEX64:
		p.ScomplexVal = []float32{float(b), float(b[4:])}
	case tfpb.DataType_DT_DOUBLE:
		p.DoubleVal = []float64{double(b)}
	case tfpb.DataType_DT_COMPLEX128:
		p.DcomplexVal = []float64{double(b), double(b[8:])}
	case tfpb.DataType_DT_INT64:
		p.Int64Val = []int64{int64(le.Uint64(b))}
	case tfpb.DataType_DT_UINT64:
		p.Uint64Val = []uint64{le.Uint64(b)}
	case tfpb.DataType_DT_UINT32:
		p.Uint32Val = []uint32{le.Uint32(b)}
	case tfpb.DataType_DT_BOOL:
		p.BoolVal = []bool{b[0] != 0}
	case tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16:
		p.HalfVal = []int32{int32(le.Uint16(b))}
	default:
		if isFloat8(p.Dtype) {
			p.Float8Val = append([]byte{}, b...)
		} else if isIntVal(p.Dtype) {
			p.IntVal = []int32{intVal(p.Dtype, b)}
		}
	}
}

// intVal returns an element of a type that [isIntVal] knows, sign-extended
// when the type is signed.
func intVal(d tfpb.DataType, b []byte) int32 {
	switch d {
	case tfpb.DataType_DT_INT8, tfpb.DataType_DT_QINT8, tfpb.DataType_DT_INT4, tfpb.DataType_DT_INT2:
		return int32(int8(b[0]))
	case tfpb.DataType_DT_UINT8, tfpb.DataType_DT_QUINT8, tfpb.DataType_DT_UINT4, tfpb.DataType_DT_UINT2:
		return int32(b[0])
	case tfpb.DataType_DT_INT16, tfpb.DataType_DT_QINT16:
		return int32(int16(binary.LittleEndian.Uint16(b)))
	case tfpb.DataType_DT_UINT16, tfpb.DataType_DT_QUINT16:
		return int32(binary.LittleEndian.Uint16(b))
	}
	return int32(binary.LittleEndian.Uint32(b))
}
