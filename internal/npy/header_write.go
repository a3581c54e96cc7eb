package npy

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	tfpb "github.com/trainerd/trainerd/proto"
)

// names are NumPy's names of the types. Types that it lacks are written as
// what holds their values, or as raw bytes: bfloat16 as the V2 that NumPy
// writes for the bfloat16 of package ml_dtypes, the floats of 8 and of 4 bits as V1.
var names = map[tfpb.DataType]string{
	tfpb.DataType_DT_FLOAT: "<f4", tfpb.DataType_DT_DOUBLE: "<f8", tfpb.DataType_DT_HALF: "<f2",
	tfpb.DataType_DT_COMPLEX64: "<c8", tfpb.DataType_DT_COMPLEX128: "<c16", tfpb.DataType_DT_BOOL: "|b1",
	tfpb.DataType_DT_INT8: "|i1", tfpb.DataType_DT_INT16: "<i2", tfpb.DataType_DT_INT32: "<i4", tfpb.DataType_DT_INT64: "<i8",
	tfpb.DataType_DT_UINT8: "|u1", tfpb.DataType_DT_UINT16: "<u2", tfpb.DataType_DT_UINT32: "<u4", tfpb.DataType_DT_UINT64: "<u8",
	tfpb.DataType_DT_QINT8: "|i1", tfpb.DataType_DT_QINT16: "<i2", tfpb.DataType_DT_QINT32: "<i4",
	tfpb.DataType_DT_QUINT8: "|u1", tfpb.DataType_DT_QUINT16: "<u2",
	tfpb.DataType_DT_INT4: "|i1", tfpb.DataType_DT_INT2: "|i1", tfpb.DataType_DT_UINT4: "|u1", tfpb.DataType_DT_UINT2: "|u1",
	tfpb.DataType_DT_BFLOAT16:    "<V2",
	tfpb.DataType_DT_FLOAT8_E5M2: "|V1", tfpb.DataType_DT_FLOAT8_E4M3FN: "|V1", tfpb.DataType_DT_FLOAT8_E4M3FNUZ: "|V1",
	tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ: "|V1", tfpb.DataType_DT_FLOAT8_E5M2FNUZ: "|V1", tfpb.DataType_DT_FLOAT4_E2M1FN: "|V1",
}

const (
	headerAlign = 64
	// growthDigits is the room that NumPy leaves for a first dimension that
	// may grow.
	growthDigits = 21
)

// Header returns what comes before the elements of an array, as NumPy writes
// it. width is that of strings.
func Header(d tfpb.DataType, shape []int64, width int) ([]byte, error) {
	descr, ok := names[d]
	if d == tfpb.DataType_DT_STRING {
		descr, ok = "|S"+strconv.Itoa(width), true
	}
	if !ok {
		return nil, fmt.Errorf("NumPy has no type for %s", d)
	}
	return header1(descr, shape)
}

// RawHeader returns what comes before the elements of an array of raw bytes,
// each of that width.
func RawHeader(shape []int64, width int) ([]byte, error) {
	return header1("|V"+strconv.Itoa(width), shape)
}

// header1 returns a header of version 1.0.
func header1(descr string, shape []int64) ([]byte, error) {
	if len(shape) > maxRank {
		return nil, fmt.Errorf("NumPy's arrays have at most %d dimensions, this has %d", maxRank, len(shape))
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, tuple(shape))
	if len(shape) > 0 {
		text += strings.Repeat(" ", growthDigits-len(strconv.FormatInt(shape[0], 10)))
	}
	const before = len(magic) + 2 + 2 // version, length
	text += strings.Repeat(" ", (headerAlign-(before+len(text)+1)%headerAlign)%headerAlign) + "\n"
	b := append([]byte(magic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...), nil
}

// tuple writes a shape as Python does.
func tuple(shape []int64) string {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.FormatInt(d, 10)
	}
	if len(dims) == 1 {
		return "(" + dims[0] + ",)"
	}
	return "(" + strings.Join(dims, ", ") + ")"
}
