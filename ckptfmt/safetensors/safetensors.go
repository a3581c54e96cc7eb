// Package safetensors reads and writes the files of the safetensors library.
//
// # Format
//
//	offset  bytes  what
//	0       8      N, length of the header, little-endian
//	8       N      header: a JSON object in UTF-8, padded with blanks
//	                 {"__metadata__":{"format":"pt"},
//	                  "w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, ...}
//	8+N     …      the elements, row-major and little-endian
//
// Offsets count from the end of the header. The tensors follow each other
// without holes or overlap and fill the file. There are no checksums.
//
// The writer produces the same bytes as the library: tensors ordered by the
// size of their elements, largest first, so that each is aligned, and within
// one type by name; a header padded to a multiple of 8 bytes.
//
// A model in several files has an index, a JSON file next to them, through which
// package formats opens it:
//
//	{"metadata": {...}, "weight_map": {"name of a tensor": "file", ...}}
//
// # Types
//
//	BOOL  I8 I16 I32 I64  U8 U16 U32 U64  F16 BF16 F32 F64  C64
//	F8_E5M2 F8_E4M3 F8_E5M2FNUZ F8_E4M3FNUZ
//
// F4, F6_E2M3, F6_E3M2 and F8_E8M0 are listed, but cannot be read. Strings,
// complex128, 4-bit and quantised integers do not exist in this format; they are
// refused.
//
// Nothing in a file is trusted before it is checked. Damage is a
// [*ckptfmt.CorruptError].
//
//	r, err := safetensors.Open("model.safetensors")
//	if err != nil { ... }
//	defer r.Close()
//	for _, p := range r.Parts() { ... }
package safetensors

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// IndexSuffix ends the name of the index of a model in several files.
const IndexSuffix = ".safetensors.index.json"

// Wire format.
const (
	lengthSize  = 8
	headerAlign = 8
	// maxHeader is the largest header that the library reads.
	maxHeader   = 100_000_000
	metadataKey = "__metadata__"
	// maxRank is the largest number of dimensions that a tensor of TensorFlow has.
	maxRank = 254
)

// elementType is a type with its name in the header. Their order is the library's:
// it writes the last first.
type elementType struct {
	name string
	t    tfpb.DataType
}

var dtypes = []elementType{
	{"BOOL", tfpb.DataType_DT_BOOL},
	{"U8", tfpb.DataType_DT_UINT8},
	{"I8", tfpb.DataType_DT_INT8},
	{"F8_E5M2", tfpb.DataType_DT_FLOAT8_E5M2},
	{"F8_E4M3", tfpb.DataType_DT_FLOAT8_E4M3FN},
	{"F8_E4M3FNUZ", tfpb.DataType_DT_FLOAT8_E4M3FNUZ},
	{"F8_E5M2FNUZ", tfpb.DataType_DT_FLOAT8_E5M2FNUZ},
	{"I16", tfpb.DataType_DT_INT16},
	{"U16", tfpb.DataType_DT_UINT16},
	{"F16", tfpb.DataType_DT_HALF},
	{"BF16", tfpb.DataType_DT_BFLOAT16},
	{"I32", tfpb.DataType_DT_INT32},
	{"U32", tfpb.DataType_DT_UINT32},
	{"F32", tfpb.DataType_DT_FLOAT},
	{"C64", tfpb.DataType_DT_COMPLEX64},
	{"F64", tfpb.DataType_DT_DOUBLE},
	{"I64", tfpb.DataType_DT_INT64},
	{"U64", tfpb.DataType_DT_UINT64},
}

// longestType is the length of the longest name of a type.
const longestType = len("F8_E4M3FNUZ")

// otherBits are the types that only torch has, with the bits of an element.
var otherBits = map[string]int64{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8}

// rank returns the place of a type in dtypes, or -1.
func rank(t tfpb.DataType) int {
	return slices.IndexFunc(dtypes, func(d elementType) bool { return d.t == t })
}

func byName(name string) (tfpb.DataType, bool) {
	i := slices.IndexFunc(dtypes, func(d elementType) bool { return d.name == name })
	if i < 0 {
		return tfpb.DataType_DT_INVALID, false
	}
	return dtypes[i].t, true
}

// Check returns an error that says why a file cannot hold a tensor, or nil if
// it can.
func Check(p ckptfmt.Part) error {
	switch {
	case p.Err != nil:
		return p.Err
	case !p.IsWhole():
		return fmt.Errorf("%w: %q is a slice; a safetensors file holds whole tensors", ckptfmt.ErrSlices, p.Name)
	case rank(p.DType) < 0:
		return fmt.Errorf("%w: a safetensors file cannot hold %q of %s", ckptfmt.ErrType, p.Name, dtype.Name(p.DType))
	case p.Name == metadataKey || !utf8.ValidString(p.Name):
		return fmt.Errorf("the name %q cannot be that of a tensor in a safetensors file; rename it", p.Name)
	}
	return nil
}
