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
// Elements of F4, F6_E2M3, F6_E3M2 and F8_E8M0, and of types of later versions of the
// format, are read as bytes. Strings, complex128, 4-bit and quantised integers do not
// exist in this format; they are refused.
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

// elementType is a type of the header. Their order is the library's: it writes the
// last first.
type elementType struct {
	name    string
	t       tfpb.DataType
	foreign string // what Part.Foreign is, where TensorFlow does not have the type, or not packed into less than bytes
	bits    int64  // of an element; 0 where the type is not known
}

var dtypes = []elementType{
	{"BOOL", tfpb.DataType_DT_BOOL, "", 8},
	{"F4", 0, "F4", 4},
	{"F6_E2M3", 0, "F6_E2M3", 6},
	{"F6_E3M2", 0, "F6_E3M2", 6},
	{"U8", tfpb.DataType_DT_UINT8, "", 8},
	{"I8", tfpb.DataType_DT_INT8, "", 8},
	{"F8_E5M2", tfpb.DataType_DT_FLOAT8_E5M2, "", 8},
	{"F8_E4M3", tfpb.DataType_DT_FLOAT8_E4M3FN, "", 8},
	{"F8_E8M0", 0, "float8_e8m0fnu", 8},
	{"F8_E4M3FNUZ", tfpb.DataType_DT_FLOAT8_E4M3FNUZ, "", 8},
	{"F8_E5M2FNUZ", tfpb.DataType_DT_FLOAT8_E5M2FNUZ, "", 8},
	{"I16", tfpb.DataType_DT_INT16, "", 16},
	{"U16", tfpb.DataType_DT_UINT16, "", 16},
	{"F16", tfpb.DataType_DT_HALF, "", 16},
	{"BF16", tfpb.DataType_DT_BFLOAT16, "", 16},
	{"I32", tfpb.DataType_DT_INT32, "", 32},
	{"U32", tfpb.DataType_DT_UINT32, "", 32},
	{"F32", tfpb.DataType_DT_FLOAT, "", 32},
	{"C64", tfpb.DataType_DT_COMPLEX64, "", 64},
	{"F64", tfpb.DataType_DT_DOUBLE, "", 64},
	{"I64", tfpb.DataType_DT_INT64, "", 64},
	{"U64", tfpb.DataType_DT_UINT64, "", 64},
}

// longestType is the length of the longest name of a type that is read.
const longestType = 32

// rank returns the place of a part's type in dtypes, or -1.
func rank(p *ckptfmt.Part) int {
	return slices.IndexFunc(dtypes, func(d elementType) bool { return d.t == p.DType && d.foreign == p.Foreign })
}

// typeOf returns the type with that name in a header, which may be one of a later
// version of the format; nil if it cannot be.
func typeOf(name string) *elementType {
	for i := range dtypes {
		if dtypes[i].name == name {
			return &dtypes[i]
		}
	}
	if isTypeName(name) {
		return &elementType{name: name, foreign: name}
	}
	return nil
}

// isTypeName reports whether a name looks like one of the format's types.
func isTypeName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if isLetter := 'A' <= c && c <= 'Z'; !isLetter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= longestType
}

// typeName returns the name of a part's type in a header, or "" if it has none.
func typeName(p *ckptfmt.Part) string {
	if i := rank(p); i >= 0 {
		return dtypes[i].name
	}
	if p.DType == tfpb.DataType_DT_INVALID && isTypeName(p.Foreign) {
		return p.Foreign
	}
	return ""
}

// Check returns an error that says why a file cannot hold a tensor, or nil if
// it can.
func Check(p ckptfmt.Part) error {
	switch {
	case p.Err != nil:
		return p.Err
	case !p.IsWhole():
		return fmt.Errorf("%w: %q is a slice; a safetensors file holds whole tensors", ckptfmt.ErrSlices, p.Name)
	case typeName(&p) == "":
		return fmt.Errorf("%w: a safetensors file cannot hold %q of %s", ckptfmt.ErrType, p.Name, p.TypeName())
	case p.Name == metadataKey || !utf8.ValidString(p.Name):
		return fmt.Errorf("the name %q cannot be that of a tensor in a safetensors file; rename it", p.Name)
	}
	return nil
}
