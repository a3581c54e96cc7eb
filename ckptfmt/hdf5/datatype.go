package hdf5

import (
	"fmt"
	"math/bits"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Classes of datatypes.
const (
	classFixed = iota
	classFloat
	classTime
	classString
	classBits
	classOpaque
	classCompound
	classReference
	classEnum
	classVarLen
	classArray
)

var classNames = [...]string{
	"whole numbers", "floats", "times", "strings", "bit fields", "opaque bytes", "compounds", "references", "enumerations",
	"sequences of variable length", "arrays",
}

// datatype is the type of a dataset's elements.
type datatype struct {
	class     int
	size      int64 // in the file
	bigEndian bool
	signed    bool
	padding   int           // of strings
	varString bool          // string of variable length
	dtype     tfpb.DataType // DT_INVALID: none of TensorFlow's
	why       string        // why there is no such type
	swap      int64         // bytes of the numbers to be swapped
	tag       string        // of opaque bytes
}

// foreign names a type that no tensor has, such as "compound", or "float128".
func (t *datatype) foreign() string {
	names := [...]string{"int", "float", "time", "string", "bitfield", "opaque", "compound", "reference", "enum", "vlen", "array"}
	switch {
	case t.dtype != tfpb.DataType_DT_INVALID || t == noType:
		return ""
	case t.class >= len(names):
		return fmt.Sprintf("class%d", t.class)
	case t.class == classFixed && !t.signed:
		return fmt.Sprintf("uint%d", 8*t.size)
	case t.class == classFixed || t.class == classFloat:
		return fmt.Sprintf("%s%d", names[t.class], 8*t.size)
	}
	return names[t.class]
}

// noType is the type of objects that are not datasets of this file.
var noType = new(datatype)

// datatype decodes a type, or returns the one that was decoded of the same bytes.
func (s *store) datatype(c *cursor) *datatype {
	if t := s.types[string(c.b)]; t != nil {
		return t
	}
	t := c.datatype(0)
	if c.err == nil && s.types != nil && len(s.types) < maxKnown {
		s.types[string(c.b)] = &t
	}
	return &t
}

// maxKnown bounds how many types, and how many shapes, are kept while a file is walked.
const maxKnown = 1024

// datatype decodes a type. Types that no tensor has are not an error: what uses them
// says so.
func (c *cursor) datatype(depth int) datatype {
	head := c.u8()
	bits := c.uint(3)
	t := datatype{class: head & 0x0f, size: int64(c.u32()), bigEndian: bits&1 != 0}
	version := head >> 4
	if c.err == nil && (version < 1 || version > 5 || depth > maxRank) {
		c.fail("a datatype has version %d, or is too deep", version)
	}
	if c.err != nil {
		return t
	}
	switch t.class {
	case classFixed:
		t.fixed(c, bits)
	case classFloat:
		t.float(c, bits)
	case classString:
		t.padding, t.dtype = int(bits&0x0f), tfpb.DataType_DT_STRING
	case classOpaque:
		t.tag = trimZeros(c.bytes(int(bits & 0xff)))
		t.why = fmt.Sprintf("elements are %d opaque bytes", t.size)
		if t.tag != "" {
			t.why += fmt.Sprintf(", %q", t.tag)
		}
	case classCompound:
		t.complex(c, version, int(bits&0xffff), depth)
	case classEnum:
		t.enum(c, version, int(bits&0xffff), depth)
	case classVarLen:
		t.varString = bits&0x0f == 1
		c.datatype(depth + 1)
		if t.varString {
			t.dtype = tfpb.DataType_DT_STRING
		}
	}
	if t.dtype == tfpb.DataType_DT_INVALID && t.why == "" {
		t.why = "elements are of a class that is not known"
		if t.class < len(classNames) {
			t.why = "elements are " + classNames[t.class] + " that no tensor has"
		}
	}
	if c.err == nil && t.size <= 0 {
		c.fail("elements have %d bytes", t.size)
	}
	return t
}

func trimZeros(b []byte) string {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return string(b)
}

var (
	signedTypes = map[int64]tfpb.DataType{
		1: tfpb.DataType_DT_INT8, 2: tfpb.DataType_DT_INT16, 4: tfpb.DataType_DT_INT32, 8: tfpb.DataType_DT_INT64,
	}
	unsignedTypes = map[int64]tfpb.DataType{
		1: tfpb.DataType_DT_UINT8, 2: tfpb.DataType_DT_UINT16, 4: tfpb.DataType_DT_UINT32, 8: tfpb.DataType_DT_UINT64,
	}
)

func (t *datatype) fixed(c *cursor, bits uint64) {
	offset, precision := c.u16(), c.u16()
	t.signed, t.swap = bits&8 != 0, t.size
	if offset != 0 || int64(precision) != t.size*8 {
		return
	}
	t.dtype = unsignedTypes[t.size]
	if t.signed {
		t.dtype = signedTypes[t.size]
	}
}

// floatForm is where the bits of a float are.
type floatForm struct {
	size                                 int64
	sign, expAt, exp, fracAt, frac, bias int
}

var floatForms = map[floatForm]tfpb.DataType{
	{2, 15, 10, 5, 0, 10, 15}:    tfpb.DataType_DT_HALF,
	{2, 15, 7, 8, 0, 7, 127}:     tfpb.DataType_DT_BFLOAT16,
	{4, 31, 23, 8, 0, 23, 127}:   tfpb.DataType_DT_FLOAT,
	{8, 63, 52, 11, 0, 52, 1023}: tfpb.DataType_DT_DOUBLE,
	{1, 7, 3, 4, 0, 3, 7}:        tfpb.DataType_DT_FLOAT8_E4M3FN,
	{1, 7, 2, 5, 0, 2, 15}:       tfpb.DataType_DT_FLOAT8_E5M2,
}

func (t *datatype) float(c *cursor, bits uint64) {
	offset, precision := c.u16(), c.u16()
	f := floatForm{t.size, int(bits >> 8 & 0xff), c.u8(), c.u8(), c.u8(), c.u8(), c.u32()}
	t.swap = t.size
	if bits&0x40 == 0 && offset == 0 && int64(precision) == t.size*8 {
		t.dtype = floatForms[f]
	}
}

// member is one of a compound.
type member struct {
	name string
	at   int64
	t    datatype
}

func (c *cursor) members(version, n int, size int64, depth int) []member {
	var list []member
	width := (bits.Len64(uint64(size)) + 7) / 8 // of offsets, in version 3: as many bytes as the size itself has
	for range n {
		if c.err != nil {
			break
		}
		begin := c.at
		m := member{name: c.text()}
		if version < 3 {
			c.align(begin)
			width = 4
		}
		m.at = int64(c.uint(width))
		if version == 1 {
			c.skip(4 + 4 + 4 + 16)
		}
		m.t = c.datatype(depth + 1)
		list = append(list, m)
	}
	return list
}

// complex is what h5py makes of complex numbers: two floats, r and i.
func (t *datatype) complex(c *cursor, version, n, depth int) {
	list := c.members(version, n, t.size, depth)
	if c.err != nil || len(list) != 2 || list[0].name != "r" || list[1].name != "i" {
		return
	}
	r, i := list[0], list[1]
	if r.at != 0 || i.at != r.t.size || t.size != 2*r.t.size || r.t.dtype != i.t.dtype || r.t.bigEndian != i.t.bigEndian {
		return
	}
	t.bigEndian, t.swap = r.t.bigEndian, r.t.size
	switch r.t.dtype {
	case tfpb.DataType_DT_FLOAT:
		t.dtype = tfpb.DataType_DT_COMPLEX64
	case tfpb.DataType_DT_DOUBLE:
		t.dtype = tfpb.DataType_DT_COMPLEX128
	}
}

// enum treats an enumeration as its numbers, except h5py's bools: FALSE is 0, TRUE is 1.
func (t *datatype) enum(c *cursor, version, n, depth int) {
	base := c.datatype(depth + 1)
	var names []string
	for range n {
		begin := c.at
		names = append(names, c.text())
		if version < 3 {
			c.align(begin)
		}
	}
	values := c.bytes(n * int(min(base.size, 16)))
	if base.class == classFixed && base.size == t.size {
		t.dtype, t.bigEndian, t.swap = base.dtype, base.bigEndian, base.swap
	}
	if n == 2 && t.size == 1 && names[0] == "FALSE" && names[1] == "TRUE" && string(values) == "\x00\x01" {
		t.dtype = tfpb.DataType_DT_BOOL
	}
}
