package torch

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/internal/bigendian"
	"github.com/trainerd/trainerd/ckptfmt/internal/pickle"
	tfpb "github.com/trainerd/trainerd/proto"
)

// isNumPy reports whether a global makes an array of NumPy, a number or a type.
// Arrays are in the pickle itself.
func isNumPy(name string) bool {
	if _, ok := otherNumPyTypes[name]; ok {
		return true
	}
	rest, ok := strings.CutPrefix(name, "numpy.")
	if !ok {
		return false
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "_core."), "core.")
	switch rest {
	case "ndarray", "dtype", "multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer":
		return true
	}
	return strings.HasPrefix(rest, "dtypes.") && strings.HasSuffix(rest, "DType")
}

// numpyTypes are the types of NumPy by their codes.
var numpyTypes = map[string]tfpb.DataType{
	"f4": tfpb.DataType_DT_FLOAT, "f8": tfpb.DataType_DT_DOUBLE, "f2": tfpb.DataType_DT_HALF, "b1": tfpb.DataType_DT_BOOL,
	"i1": tfpb.DataType_DT_INT8, "i2": tfpb.DataType_DT_INT16, "i4": tfpb.DataType_DT_INT32, "i8": tfpb.DataType_DT_INT64,
	"u1": tfpb.DataType_DT_UINT8, "u2": tfpb.DataType_DT_UINT16, "u4": tfpb.DataType_DT_UINT32, "u8": tfpb.DataType_DT_UINT64,
	"c8": tfpb.DataType_DT_COMPLEX64, "c16": tfpb.DataType_DT_COMPLEX128,
}

// otherNumPyTypes are those of ml_dtypes, which jax has too, by their classes.
var otherNumPyTypes = map[string]tfpb.DataType{
	"ml_dtypes.bfloat16": tfpb.DataType_DT_BFLOAT16, "ml_dtypes.float8_e4m3fn": tfpb.DataType_DT_FLOAT8_E4M3FN,
	"ml_dtypes.float8_e5m2": tfpb.DataType_DT_FLOAT8_E5M2, "ml_dtypes.float8_e4m3fnuz": tfpb.DataType_DT_FLOAT8_E4M3FNUZ,
	"ml_dtypes.float8_e5m2fnuz": tfpb.DataType_DT_FLOAT8_E5M2FNUZ, "ml_dtypes.float8_e4m3b11fnuz": tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ,
}

// storedArray is a NumPy array, or a NumPy number, as stored in a pickle:
//
//	_reconstruct(ndarray, (0,), b"b"), state (1, shape, dtype, fortran, elements)
//	scalar(dtype, elements)
//	_frombuffer(elements, dtype, shape, "C", order of the axes), of protocol 5
type storedArray struct {
	typ, elements any
	shape         any // nil for a number
	order         any // of the elements: false or "C" for the last index fastest, true or "F" for the first
}

func storedIn(o *pickle.Object) (a storedArray, ok bool) {
	state, _ := o.State.(pickle.Tuple)
	class, args := string(o.Class), o.Args
	switch {
	case strings.HasSuffix(class, "multiarray.scalar") && len(args) == 2:
		return storedArray{typ: args[0], elements: args[1], order: false}, true
	case strings.HasSuffix(class, "multiarray._reconstruct") && len(state) == 5:
		return storedArray{typ: state[2], elements: state[4], shape: state[1], order: state[3]}, true
	case strings.HasSuffix(class, "numeric._frombuffer") && len(args) >= 4:
		return storedArray{typ: args[1], elements: args[0], shape: args[2], order: args[3]}, true
	}
	return a, false
}

// array is an array of NumPy, or a number of it, as this package reads it. Its elements stay in the
// pickle: others may have the same.
type array struct {
	dtype    tfpb.DataType
	shape    []int64
	elements string
	turned   bool // they are big-endian
	fortran  bool // the first index is the fastest
}

// numberSize is what a dimension takes in memory.
const numberSize = 8

// arrayOf returns an array of NumPy, or a number of it; ok is false for anything else. An error
// says why there is none.
func arrayOf(o *pickle.Object) (a array, ok bool, err error) {
	from, ok := storedIn(o)
	if !ok {
		return a, false, nil
	}
	if from.shape != nil {
		if a.shape, ok = dims(nil, from.shape); !ok {
			return a, true, fmt.Errorf("%w: an array of NumPy has no shape", ckptfmt.ErrType)
		}
	}
	a.fortran = from.order == any(true) || from.order == any("F")
	a.dtype, a.turned = numpyType(from.typ)
	b, isBytes := from.elements.(pickle.Bytes)
	a.elements = string(b)
	n, err := dtype.NumElements(a.shape)
	switch size := int64(len(b)); {
	case err != nil:
		return a, true, err
	case a.dtype == tfpb.DataType_DT_INVALID || !isBytes:
		return a, true, fmt.Errorf("%w: an array of NumPy of another type than numbers", ckptfmt.ErrType)
	case !a.fortran && from.order != any(false) && from.order != any("C"):
		return a, true, fmt.Errorf("%w: an array of NumPy whose axes are in another order; numpy.ascontiguousarray makes one that can be read", ckptfmt.ErrType)
	case n != size/dtype.Size(a.dtype) || size%dtype.Size(a.dtype) != 0:
		return a, true, fmt.Errorf("%w: an array of NumPy of shape %v has %d bytes", ckptfmt.ErrType, a.shape, len(b))
	}
	return a, true, nil
}

// part returns the array as a tensor of that name.
func (a array) part(name string) ckptfmt.Part {
	return ckptfmt.WholePart(name, a.dtype, a.shape, func() (io.ReadCloser, error) { return io.NopCloser(a.reader()), nil })
}

// reader returns what reads the elements in row-major order.
func (a array) reader() io.Reader {
	of := element{dtype: a.dtype, size: dtype.Size(a.dtype)}
	var from io.Reader = strings.NewReader(a.elements)
	if a.fortran {
		from = rowMajor(a.elements, of.size, a.shape)
	}
	if a.turned {
		from = bigendian.NewReader(from, int(of.number()))
	}
	return from
}

// whole returns the only number of an array, if that is a whole number, else nil.
func (a array) whole() any {
	var b [8]byte
	n, _ := io.ReadFull(a.reader(), b[:]) // fewer than eight bytes, as a rule
	v, unused := binary.LittleEndian.Uint64(b[:]), 64-8*n
	switch name := dtype.Name(a.dtype); {
	case strings.HasPrefix(name, "int"):
		return int64(v<<unused) >> unused
	case strings.HasPrefix(name, "uint"):
		return v
	}
	return nil
}

// word returns what makes the text that a numpy.str_ or numpy.bytes_ is, nil of anything else.
func word(o *pickle.Object) func() string {
	a, _ := storedIn(o)
	typ, isType := a.typ.(*pickle.Object)
	b, isBytes := a.elements.(pickle.Bytes)
	if a.shape != nil || !isType || !isBytes || len(typ.Args) == 0 {
		return nil
	}
	switch code, _ := typ.Args[0].(string); {
	case strings.HasPrefix(code, "S"):
		return func() string { return string(b) }
	case strings.HasPrefix(code, "U"):
		var order binary.ByteOrder = binary.LittleEndian
		if state, _ := typ.State.(pickle.Tuple); len(state) > 1 && state[1] == any(">") {
			order = binary.BigEndian
		}
		return func() string { return lettersOf(b, order) }
	}
	return nil
}

// lettersOf reads letters of four bytes each.
func lettersOf(b pickle.Bytes, order binary.ByteOrder) string {
	var letters []rune
	for at := 0; at+4 <= len(b); at += 4 {
		letters = append(letters, rune(order.Uint32([]byte(b[at:at+4]))))
	}
	return string(letters)
}

// rowMajor reads elements that are in Fortran's order, the first index fastest, in that of
// tensors.
func rowMajor(elements string, size int64, shape []int64) io.Reader {
	t := &tensor{form: &form{shape: shape, stride: make([]int64, len(shape))}}
	n := int64(1)
	for i, dim := range shape {
		t.stride[i] = n
		n *= dim
	}
	return &strided{t: t, size: size, index: make([]int64, len(shape)), left: n, from: strings.NewReader(elements)}
}

// numpyType reads dtype("f8", False, True) with the state (3, "<", ...).
func numpyType(v any) (d tfpb.DataType, bigEndian bool) {
	o, _ := v.(*pickle.Object)
	if o == nil || len(o.Args) == 0 {
		return tfpb.DataType_DT_INVALID, false
	}
	state, ok := o.State.(pickle.Tuple)
	if !ok || len(state) < 2 {
		return tfpb.DataType_DT_INVALID, false
	}
	switch code := o.Args[0].(type) {
	case string:
		d = numpyTypes[code]
	case pickle.Global:
		d = otherNumPyTypes[string(code)]
	}
	return d, state[1] == any(">")
}
