package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// An .npy file is
//
//	93 "NUMPY" 01 00 | length of the header: uint16 | header | elements |
//
// where the header is a Python dict in text, filled with blanks so that the
// elements begin at a multiple of 64.
const (
	npyMagic = "\x93NUMPY\x01\x00"
	npyAlign = 64
)

// npyTypes are numpy's names of the types that are not spelled by their size.
// What numpy does not know is given as its bits, or as int8 and uint8 where an
// element is narrower than a byte.
var npyTypes = map[tfpb.DataType]string{
	tfpb.DataType_DT_FLOAT: "<f4", tfpb.DataType_DT_DOUBLE: "<f8", tfpb.DataType_DT_HALF: "<f2",
	tfpb.DataType_DT_COMPLEX64: "<c8", tfpb.DataType_DT_COMPLEX128: "<c16", tfpb.DataType_DT_BOOL: "|b1",
	tfpb.DataType_DT_INT8: "|i1", tfpb.DataType_DT_INT16: "<i2", tfpb.DataType_DT_INT32: "<i4", tfpb.DataType_DT_INT64: "<i8",
	tfpb.DataType_DT_UINT8: "|u1", tfpb.DataType_DT_UINT16: "<u2", tfpb.DataType_DT_UINT32: "<u4", tfpb.DataType_DT_UINT64: "<u8",
	tfpb.DataType_DT_QINT8: "|i1", tfpb.DataType_DT_QINT16: "<i2", tfpb.DataType_DT_QINT32: "<i4",
	tfpb.DataType_DT_QUINT8: "|u1", tfpb.DataType_DT_QUINT16: "<u2",
	tfpb.DataType_DT_INT4: "|i1", tfpb.DataType_DT_INT2: "|i1", tfpb.DataType_DT_UINT4: "|u1", tfpb.DataType_DT_UINT2: "|u1",
	tfpb.DataType_DT_BFLOAT16: "<u2",
}

// writeNPY writes a tensor as a numpy file.
func writeNPY(w io.Writer, t *ckptfmt.Tensor) error {
	descr, ok := npyTypes[t.DType]
	if !ok && ckptfmt.ElementSize(t.DType) == 1 { // the 8-bit floats
		descr, ok = "|u1", true
	}
	if !ok {
		return usagef("an .npy file cannot hold %s; --raw and --json can", ckptfmt.DTypeName(t.DType))
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, pythonTuple(t.Shape))
	used := len(npyMagic) + 2 + len(header) + 1
	header += strings.Repeat(" ", (npyAlign-used%npyAlign)%npyAlign) + "\n"
	if len(header) > 0xffff {
		return fmt.Errorf("shape of rank %d does not fit into an .npy header", len(t.Shape))
	}
	head := binary.LittleEndian.AppendUint16([]byte(npyMagic), uint16(len(header)))
	if _, err := w.Write(append(head, header...)); err != nil {
		return err
	}
	_, err := w.Write(t.Data)
	return err
}

func pythonTuple(shape []int64) string {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	if len(dims) == 1 {
		return "(" + dims[0] + ",)"
	}
	return "(" + strings.Join(dims, ", ") + ")"
}
