package inspect

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/jsonfloat"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Numbers presents the elements of a numeric tensor as float64, whatever their
// type, without copying them. A complex element is two numbers; a bool is 0 or
// 1.
type Numbers struct {
	data []byte
	size int
	get  func(b []byte) float64
	text func(b, number []byte) []byte
}

// NumbersOf returns the numbers of t, which must not change while they are in
// use. If t is not numeric, the error matches [ckptfmt.ErrType].
func NumbersOf(t *ckptfmt.Tensor) (*Numbers, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	get, size := decoder(t.DType)
	if get == nil {
		return nil, fmt.Errorf("%w: elements of %s are not numbers", ckptfmt.ErrType, dtype.Name(t.DType))
	}
	return &Numbers{data: t.Data, size: size, get: get, text: printer(t.DType, get)}, nil
}

// Len returns how many numbers there are.
func (n *Numbers) Len() int { return len(n.data) / n.size }

// At returns number i.
func (n *Numbers) At(i int) float64 { return n.get(n.data[i*n.size:]) }

// AppendText appends number i in decimal, which must be finite: an integer with all its digits,
// of any other number the fewest digits that give the same element, also where JSON is read.
func (n *Numbers) AppendText(b []byte, i int) []byte { return n.text(b, n.data[i*n.size:]) }

// printer returns what appends the digits of one number of a type, which get decodes.
func printer(d tfpb.DataType, get func([]byte) float64) func(b, number []byte) []byte {
	le := binary.LittleEndian
	switch d {
	case tfpb.DataType_DT_INT64:
		return func(b, number []byte) []byte { return strconv.AppendInt(b, int64(le.Uint64(number)), 10) }
	case tfpb.DataType_DT_UINT64:
		return func(b, number []byte) []byte { return strconv.AppendUint(b, le.Uint64(number), 10) }
	case tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_COMPLEX128:
		return func(b, number []byte) []byte { return appendFloat(b, get(number), 64) }
	}
	if strings.Contains(dtype.Name(d), "int") { // also qint8; a float64 holds all of them
		return func(b, number []byte) []byte { return strconv.AppendInt(b, int64(get(number)), 10) }
	}
	return func(b, number []byte) []byte { return appendFloat(b, get(number), 32) }
}

func appendFloat(b []byte, x float64, bits int) []byte {
	if x == 0 && math.Signbit(x) {
		return append(b, jsonfloat.NegativeZero...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}

// decoder returns what reads one number of a type, and the number's size.
func decoder(d tfpb.DataType) (get func([]byte) float64, size int) {
	le := binary.LittleEndian
	switch d {
	case tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_COMPLEX64:
		return func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }, 4
	case tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_COMPLEX128:
		return func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }, 8
	case tfpb.DataType_DT_HALF:
		return func(b []byte) float64 { return float64(float16.FromHalf(le.Uint16(b))) }, 2
	case tfpb.DataType_DT_BFLOAT16:
		return func(b []byte) float64 { return float64(float16.FromBfloat16(le.Uint16(b))) }, 2
	case tfpb.DataType_DT_INT64:
		return func(b []byte) float64 { return float64(int64(le.Uint64(b))) }, 8
	case tfpb.DataType_DT_UINT64:
		return func(b []byte) float64 { return float64(le.Uint64(b)) }, 8
	case tfpb.DataType_DT_UINT32:
		return func(b []byte) float64 { return float64(le.Uint32(b)) }, 4
	case tfpb.DataType_DT_BOOL:
		return func(b []byte) float64 { return float64(min(b[0], 1)) }, 1
	}
	if f, ok := smallFormats[d]; ok {
		return func(b []byte) float64 { return f.decode(uint32(b[0])) }, 1
	}
	return integerDecoder(d)
}

// integerDecoder is decoder for integers of at most 32 bits. Those of 4 and of
// 2 bits take a byte each, in which they are sign-extended.
func integerDecoder(d tfpb.DataType) (get func([]byte) float64, size int) {
	le := binary.LittleEndian
	switch d {
	case tfpb.DataType_DT_INT8, tfpb.DataType_DT_QINT8, tfpb.DataType_DT_INT4, tfpb.DataType_DT_INT2:
		return func(b []byte) float64 { return float64(int8(b[0])) }, 1
	case tfpb.DataType_DT_UINT8, tfpb.DataType_DT_QUINT8, tfpb.DataType_DT_UINT4, tfpb.DataType_DT_UINT2:
		return func(b []byte) float64 { return float64(b[0]) }, 1
	case tfpb.DataType_DT_INT16, tfpb.DataType_DT_QINT16:
		return func(b []byte) float64 { return float64(int16(le.Uint16(b))) }, 2
	case tfpb.DataType_DT_UINT16, tfpb.DataType_DT_QUINT16:
		return func(b []byte) float64 { return float64(le.Uint16(b)) }, 2
	case tfpb.DataType_DT_INT32, tfpb.DataType_DT_QINT32:
		return func(b []byte) float64 { return float64(int32(le.Uint32(b))) }, 4
	}
	return nil, 0
}

// floatFormat is a floating-point format of at most 8 bits.
type floatFormat struct {
	exponent, mantissa int // bits
	bias               int
	specials           specials
}

// specials says which bit patterns are not finite numbers.
type specials int

const (
	ieee       specials = iota // largest exponent: infinity, or NaN with a mantissa
	nanOnly                    // all bits one: NaN; no infinity
	nanForZero                 // the pattern of -0: NaN; no infinity
	allFinite                  // none
)

var smallFormats = map[tfpb.DataType]floatFormat{
	tfpb.DataType_DT_FLOAT8_E5M2:        {5, 2, 15, ieee},
	tfpb.DataType_DT_FLOAT8_E4M3FN:      {4, 3, 7, nanOnly},
	tfpb.DataType_DT_FLOAT8_E4M3FNUZ:    {4, 3, 8, nanForZero},
	tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ: {4, 3, 11, nanForZero},
	tfpb.DataType_DT_FLOAT8_E5M2FNUZ:    {5, 2, 16, nanForZero},
	tfpb.DataType_DT_FLOAT4_E2M1FN:      {2, 1, 1, allFinite},
}

func (f floatFormat) decode(bits uint32) float64 {
	sign := bits >> (f.exponent + f.mantissa) & 1
	maxExp := uint32(1)<<f.exponent - 1
	exp := bits >> f.mantissa & maxExp
	maxMant := uint32(1)<<f.mantissa - 1
	mant := bits & maxMant
	switch {
	case f.specials == ieee && exp == maxExp && mant != 0,
		f.specials == nanOnly && exp == maxExp && mant == maxMant,
		f.specials == nanForZero && sign == 1 && exp == 0 && mant == 0:
		return math.NaN()
	case f.specials == ieee && exp == maxExp:
		return math.Inf(1 - 2*int(sign))
	}
	if exp == 0 {
		exp = 1 // subnormal: no leading one
	} else {
		mant += maxMant + 1
	}
	v := math.Ldexp(float64(mant), int(exp)-f.bias-f.mantissa)
	if sign == 1 {
		return math.Copysign(v, -1)
	}
	return v
}
