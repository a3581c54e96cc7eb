// Package npz reads and writes NumPy's files of several arrays, as numpy.savez
// and numpy.savez_compressed write and numpy.load reads.
//
// # Format
//
// An .npz file is a zip archive. Each member is an .npy file (see package
// internal/npy for its bytes), whose name is that of the array with ".npy"
// after it; a name may have slashes:
//
//	| local header "dense/kernel.npy" | 93 NUMPY … elements | descriptor |
//	| local header "step.npy"         | 93 NUMPY … elements | descriptor |
//	| directory: a record for each member | end of directory |
//
// The numbers of the zip format are little-endian. A member's CRC-32 is
// verified after its last byte.
//
// # Types
//
// NumPy has no name for some of TensorFlow's types. bfloat16 is written as
// NumPy writes that of package ml_dtypes (raw elements of two bytes, V2), the
// 8-bit floats as raw bytes (V1), int4, uint4 and the quantised types as
// integers of their size. The member's comment in the archive's directory,
// which NumPy ignores, then has the type ("dtype=int4"), so that reading the
// file restores it. Variants are refused.
//
// Arrays of other types, such as records, dates, long doubles and pickled objects, and
// members that are not arrays are listed, but cannot be read.
//
// Strings are written as bytes of one width (S), unless one of them ends in a
// zero byte, which would be lost: object graphs often do. Such a tensor is
// written as raw bytes (V) with the comment "dtype=string" if all strings have
// the same length. Otherwise the comment is "dtype=string,length" and each
// element is the string, zeros, and in the last 8 bytes the string's length,
// little-endian:
//
//	a = numpy.load("x.npz")["name"]
//	s = [e[: int.from_bytes(e[-8:], "little")] for e in (x.tobytes() for x in a.flat)]
//
//	r, err := npz.Open("weights.npz")
//	if err != nil { ... }
//	defer r.Close()
//	for _, p := range r.Parts() { ... }
package npz

import (
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Wire format.
const (
	suffix     = ".npy"   // of a member's name
	typeMark   = "dtype=" // before the type in a member's comment
	lengthMark = ",length"
	lengthSize = 8 // of raw strings that are not all of one length
	bufferSize = 64 << 10
	maxTurned  = 1 << 30 // bytes of a compressed array that is put into row-major order in memory
)

// plain are the types that NumPy's header can name.
var plain = map[tfpb.DataType]bool{
	tfpb.DataType_DT_FLOAT: true, tfpb.DataType_DT_DOUBLE: true, tfpb.DataType_DT_HALF: true, tfpb.DataType_DT_BFLOAT16: true,
	tfpb.DataType_DT_COMPLEX64: true, tfpb.DataType_DT_COMPLEX128: true, tfpb.DataType_DT_BOOL: true,
	tfpb.DataType_DT_INT8: true, tfpb.DataType_DT_INT16: true, tfpb.DataType_DT_INT32: true, tfpb.DataType_DT_INT64: true,
	tfpb.DataType_DT_UINT8: true, tfpb.DataType_DT_UINT16: true, tfpb.DataType_DT_UINT32: true, tfpb.DataType_DT_UINT64: true,
	tfpb.DataType_DT_STRING: true,
}

func typeComment(d tfpb.DataType) string {
	if plain[d] {
		return ""
	}
	return typeMark + dtype.Name(d)
}

// Check returns an error that says why an .npz file cannot hold a tensor, or
// nil if it can.
func Check(p ckptfmt.Part) error {
	switch {
	case p.Err != nil:
		return p.Err
	case !p.IsWhole():
		return fmt.Errorf("%w: %q is a slice; an .npz file holds whole tensors", ckptfmt.ErrSlices, p.Name)
	case p.DType == tfpb.DataType_DT_VARIANT, p.Foreign != "":
		return fmt.Errorf("%w: an .npz file cannot hold %q of %s", ckptfmt.ErrType, p.Name, p.TypeName())
	}
	return nil
}
