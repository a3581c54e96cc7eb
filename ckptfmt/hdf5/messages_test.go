package hdf5

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// cursorOf reads bytes in a file with addresses and lengths of 8 bytes.
func cursorOf(parts ...[]byte) *cursor {
	return &cursor{b: slices.Concat(parts...), offsets: 8, lengths: 8}
}

// u64s are numbers of 8 bytes.
func u64s(list ...uint64) []byte {
	var b []byte
	for _, v := range list {
		b = le.AppendUint64(b, v)
	}
	return b
}

// messageCase is what a message is read as, and the error.
type messageCase struct {
	name string
	b    []byte
	want string
	err  string
}

func checkMessages(t *testing.T, list []messageCase, read func(c *cursor) string) {
	t.Helper()
	for _, m := range list {
		c := cursorOf(m.b)
		got := read(c)
		switch {
		case m.err == "" && (c.err != nil || got != m.want):
			t.Errorf("%s: got %s, %v, want %s", m.name, got, c.err, m.want)
		case m.err != "" && (c.err == nil || !strings.Contains(c.err.Error(), m.err)):
			t.Errorf("%s: got %s, %v, want the error %q", m.name, got, c.err, m.err)
		}
	}
}

func TestDataspaces(t *testing.T) {
	version1 := func(rank, flags byte, numbers ...uint64) []byte {
		return append([]byte{1, rank, flags, 0, 0, 0, 0, 0}, u64s(numbers...)...)
	}
	ones := slices.Repeat([]uint64{1}, maxRank+1)
	checkMessages(t, []messageCase{
		{"a scalar", version1(0, 0), "[] []", ""},
		{"two dimensions", version1(2, 0, 3, 4), "[3 4] [3 4]", ""},
		{"that can grow", version1(2, 1, 3, 4, 5, math.MaxUint64), "[3 4] [5 -1]", ""},
		{"to the largest size", version1(1, 1, 3, math.MaxInt64/2), fmt.Sprint("[3] ", []int{math.MaxInt64 / 2}), ""},
		{"to more than that", version1(1, 1, 3, math.MaxInt64/2+1), "[3] [-1]", ""},
		{"as large as it can be", version1(1, 1, 3, 3), "[3] [3]", ""},
		{"larger than it can be", version1(1, 1, 3, 2), "", "a dimension is 3, and at most 2"},
		{"of version 2", append([]byte{2, 1, 0, spaceSimple}, u64s(3)...), "[3] [3]", ""},
		{"without elements", []byte{2, 0, 0, spaceNull}, "[0] [0]", ""},
		{"of version 0", append([]byte{0, 1, 0, 0, 0, 0, 0, 0}, u64s(3)...), "", "a dataspace has version 0; only 1 to 2 are known"},
		{"of version 3", append([]byte{3, 1, 0, 1}, u64s(3)...), "", "version 3"},
		{"of 32 dimensions", version1(maxRank, 0, ones[:maxRank]...), fmt.Sprint(ones[:maxRank], " ", ones[:maxRank]), ""},
		{"of 33", version1(maxRank+1, 0, ones...), "", "a dataspace has 33 dimensions"},
		{"larger than any file", version1(1, 0, math.MaxInt64/2+1), "", "4611686018427387904 is larger than any file"},
		{"as large as a file", version1(1, 0, math.MaxInt64/2), "[4611686018427387903] [4611686018427387903]", ""},
		{"that ends early", version1(2, 0, 3), "", "it ends early"},
	}, func(c *cursor) string {
		x := c.dataspace()
		return fmt.Sprint(x.shape, " ", x.most)
	})
}

func TestFilterPipelines(t *testing.T) {
	version1 := func(n byte, b ...byte) []byte { return append([]byte{1, n, 0, 0, 0, 0, 0, 0}, b...) }
	checkMessages(t, []messageCase{
		{"two, one with a value, which is filled up", version1(2,
			2, 0, 8, 0, 0, 0, 1, 0, 's', 'h', 'u', 'f', 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0,
			1, 0, 0, 0, 0, 0, 2, 0, 4, 0, 0, 0, 5, 0, 0, 0), "2 (shuf), 1, ", ""},
		{"of version 2: the first ones have no names", []byte{2, 2, 255, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 'a', 'b', 'c'}, "255, 256 (abc), ", ""},
		{"of version 0", []byte{0, 0, 0, 0, 0, 0, 0, 0}, "", "a filter pipeline has version 0"},
		{"of version 3", []byte{3, 0}, "", "version 3"},
		{"32", append([]byte{2, 32}, make([]byte, 32*6)...), strings.Repeat("0, ", 32), ""},
		{"33", append([]byte{2, 33}, make([]byte, 33*6)...), "", "there are 33 filters"},
		{"more values than bytes", version1(1, 1, 0, 0, 0, 0, 0, 0xff, 0xff), "", "it ends early"},
	}, func(c *cursor) (text string) {
		for _, f := range c.filters() {
			text += f.String() + ", "
		}
		return text
	})
}

// upTo is the numbers from one to another.
func upTo(from, to int) (list []int) {
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list
}

func TestLayouts(t *testing.T) {
	inVersion4 := func(flags, rank byte, rest ...byte) []byte {
		return append([]byte{4, layoutChunked, flags, rank, 1}, rest...)
	}
	at := u64s(77)
	old := func(rank byte) []byte {
		b := append([]byte{3, layoutChunked, rank}, at...)
		for i := range uint32(rank) {
			b = le.AppendUint32(b, i+2)
		}
		return b
	}
	checkMessages(t, []messageCase{
		{"compact", []byte{3, layoutCompact, 2, 0, 5, 6}, "class 0 at 0, 0 bytes, [5 6]; index 0, chunk [] of 0, mask 0", ""},
		{"contiguous", contiguous(77, 9), "class 1 at 77, 9 bytes, []; index 0, chunk [] of 0, mask 0", ""},
		{"chunks of a tree", old(3), "class 2 at 77, 0 bytes, []; index 0, chunk [2 3] of 4, mask 0", ""},
		{"of no dimension", old(1), "class 2 at 77, 0 bytes, []; index 0, chunk [] of 2, mask 0", ""},
		{"of fewer", old(0), "", "a chunk has 0 dimensions"},
		{"of 32", old(maxRank + 1), fmt.Sprintf("class 2 at 77, 0 bytes, []; index 0, chunk %v of 34, mask 0", upTo(2, 33)), ""},
		{"of 33", old(maxRank + 2), "", "a chunk has 34 dimensions"},
		{"one chunk", inVersion4(0, 2, slices.Concat([]byte{5, 4, indexSingle}, at)...), "class 2 at 77, 0 bytes, []; index 1, chunk [5] of 4, mask 0", ""},
		{"one that has filters", inVersion4(2, 2, slices.Concat([]byte{5, 4, indexSingle}, u64s(6), []byte{7, 0, 0, 0}, at)...), "class 2 at 77, 6 bytes, []; index 1, chunk [5] of 4, mask 7", ""},
		{"in a row", inVersion4(0, 2, slices.Concat([]byte{5, 4, indexImplicit}, at)...), "class 2 at 77, 0 bytes, []; index 2, chunk [5] of 4, mask 0", ""},
		{"in an array", inVersion4(0, 2, slices.Concat([]byte{5, 4, indexFixed, 10}, at)...), "class 2 at 77, 0 bytes, []; index 3, chunk [5] of 4, mask 0", ""},
		{"in one that grows", inVersion4(0, 2, slices.Concat([]byte{5, 4, indexExtensible, 1, 2, 3, 4, 5}, at)...), "class 2 at 77, 0 bytes, []; index 4, chunk [5] of 4, mask 0", ""},
		{"in a tree of version 2", inVersion4(0, 2, slices.Concat([]byte{5, 4, indexTree2, 1, 2, 3, 4, 5, 6}, at)...), "class 2 at 77, 0 bytes, []; index 5, chunk [5] of 4, mask 0", ""},
		{"in something else", inVersion4(0, 2, slices.Concat([]byte{5, 4, 6}, at)...), "", "an index of chunks of kind 6 is not known"},
		{"with edges that have no filters", inVersion4(1, 2, slices.Concat([]byte{5, 4, indexImplicit}, at)...), "", "filters leave out are not supported"},
		{"of version 2", []byte{2, layoutContiguous}, "", "a layout has version 2; only 3 to 5"},
		{"of version 6", []byte{6, layoutContiguous}, "", "a layout has version 6"},
		{"virtual", []byte{4, 3}, "", "layouts of class 3"},
		{"with numbers of 9 bytes", []byte{4, layoutChunked, 0, 2, 9}, "", "a number has 9 bytes"},
	}, func(c *cursor) string {
		l := c.layout()
		return fmt.Sprintf("class %d at %d, %d bytes, %v; index %d, chunk %v of %d, mask %d", l.class, l.at, l.size, l.inline, l.index, l.chunk, l.elem, l.mask)
	})
}

func TestFillValues(t *testing.T) {
	for kind, list := range map[int][]messageCase{
		msgOldFill: {{"old", []byte{2, 0, 0, 0, 8, 9}, "[8 9]", ""}, {"old and empty", []byte{0, 0, 0, 0}, "[]", ""}},
		msgFill: {
			{"none", []byte{2, 2, 2, 0, 2, 0, 0, 0, 8, 9}, "[]", ""},
			{"some", []byte{2, 2, 2, 1, 2, 0, 0, 0, 8, 9}, "[8 9]", ""},
			{"of version 1", []byte{1, 2, 2, 1, 1, 0, 0, 0, 8}, "[8]", ""},
			{"none of version 3", []byte{3, 0x0a, 2, 0, 0, 0, 8, 9}, "[]", ""},
			{"some of version 3", []byte{3, 0x2a, 2, 0, 0, 0, 8, 9}, "[8 9]", ""},
			{"of version 0", []byte{0, 2, 2, 1, 1, 0, 0, 0, 8}, "", "a fill value has version 0"},
			{"of version 4", []byte{4, 0x2a, 1, 0, 0, 0, 8}, "", "a fill value has version 4"},
			{"that ends early", []byte{3, 0x2a, 3, 0, 0, 0, 8, 9}, "", "it ends early"},
		},
	} {
		checkMessages(t, list, func(c *cursor) string { return fmt.Sprint(c.fillValue(kind)) })
	}
}

// inVersion sets that of a datatype.
func inVersion(version byte, b []byte) []byte {
	b = slices.Clone(b)
	b[0] = b[0]&0x0f | version<<4
	return b
}

// bitsIn sets the offset and the precision of numbers.
func bitsIn(b []byte, offset, precision uint16) []byte {
	b = slices.Clone(b)
	le.PutUint16(b[8:], offset)
	le.PutUint16(b[10:], precision)
	return b
}

// part is a member of a compound in version 3 of the format.
func part(name string, at byte, t []byte) []byte {
	return slices.Concat([]byte(name), []byte{0, at}, t)
}

func compound(size int64, parts ...[]byte) []byte {
	return append(inVersion(3, typeHead(classCompound, uint32(len(parts)), size)), slices.Concat(parts...)...)
}

// enumOf is an enumeration in version 3.
func enumOf(base []byte, size int64, names []string, values ...byte) []byte {
	b := append(inVersion(3, typeHead(classEnum, uint32(len(names)), size)), base...)
	for _, name := range names {
		b = append(append(b, name...), 0)
	}
	return append(b, values...)
}

func bigEndian(b []byte) []byte {
	b = slices.Clone(b)
	b[1] |= 1
	return b
}

func floatBits(d tfpb.DataType, at int, v byte) []byte {
	b := floatType(d)
	b[at] = v
	return b
}

// typeText describes a type as lists and errors do.
func typeText(t *datatype) string {
	s := t.foreign() + ": " + t.why
	if t.dtype != tfpb.DataType_DT_INVALID {
		s = dtype.Name(t.dtype)
	}
	if t.bigEndian && t.swap > 1 {
		s += fmt.Sprint(", big-endian by ", t.swap)
	}
	return s
}

// vlens is sequences of sequences, n of them in each other, of numbers.
func vlens(n int) []byte {
	return append(bytes.Repeat(typeHead(classVarLen, 0, 16), n), fixedType(4, true)...)
}

func TestDatatypes(t *testing.T) {
	f4, f8, i4, u1 := floatType(tfpb.DataType_DT_FLOAT), floatType(tfpb.DataType_DT_DOUBLE), fixedType(4, true), fixedType(1, false)
	bools := []string{"FALSE", "TRUE"}
	notFloats, notNumbers := "float32: elements are floats that no tensor has", ": elements are whole numbers that no tensor has"
	compounds := "compound: elements are compounds that no tensor has"
	checkMessages(t, []messageCase{
		{"i4", i4, "int32", ""},
		{"u1", u1, "uint8", ""},
		{"big-endian", bigEndian(i4), "int32, big-endian by 4", ""},
		{"with other bits before them", bitsIn(i4, 1, 32), "int32" + notNumbers, ""},
		{"with other bits after them", bitsIn(u1, 0, 7), "uint8" + notNumbers, ""},
		{"of 3 bytes", fixedType(3, false), "uint24" + notNumbers, ""},
		{"f4", f4, "float32", ""},
		{"f8, big-endian", bigEndian(f8), "float64, big-endian by 8", ""},
		{"a VAX float", floatBits(tfpb.DataType_DT_FLOAT, 1, 0x60), notFloats, ""},
		{"a float with other bits before it", bitsIn(f4, 1, 32), notFloats, ""},
		{"a float of fewer bits", bitsIn(f4, 0, 31), notFloats, ""},
		{"a float of another bias", floatBits(tfpb.DataType_DT_FLOAT, 16, 126), notFloats, ""},
		{"a string", typeHead(classString, padSpaces, 5), "string", ""},
		{"a time", typeHead(classTime, 0, 4), "time: elements are times that no tensor has", ""},
		{"bits", typeHead(classBits, 0, 1), "bitfield: elements are bit fields that no tensor has", ""},
		{"a reference", typeHead(classReference, 0, 8), "reference: elements are references that no tensor has", ""},
		{"an array", typeHead(classArray, 0, 8), "array: elements are arrays that no tensor has", ""},
		{"of class 11", typeHead(11, 0, 16), "class11: elements are of a class that is not known", ""},
		{"opaque", typeHead(classOpaque, 0, 3), "opaque: elements are 3 opaque bytes", ""},
		{"with a tag", append(typeHead(classOpaque, 8, 3), "NUMPY\x00\x00\x00"...), `opaque: elements are 3 opaque bytes, "NUMPY"`, ""},
		{"with the longest tag", append(typeHead(classOpaque, 255, 3), strings.Repeat("a", 255)...), fmt.Sprintf("opaque: elements are 3 opaque bytes, %q", strings.Repeat("a", 255)), ""},
		{"with a tag of zeros", append(typeHead(classOpaque, 8, 3), make([]byte, 8)...), "opaque: elements are 3 opaque bytes", ""},
		{"numbers, any number of them", append(typeHead(classVarLen, 0, 16), i4...), "vlen: elements are sequences of variable length that no tensor has", ""},
		{"letters, any number of them", append(typeHead(classVarLen, 1, 16), u1...), "string", ""},
		{"letters of no type", typeHead(classVarLen, 1, 16), "", "it ends early"},
		{"complex", complexType(tfpb.DataType_DT_COMPLEX64), "complex64", ""},
		{"complex of version 3", compound(16, part("r", 0, f8), part("i", 8, f8)), "complex128", ""},
		{"complex, big-endian", compound(8, part("r", 0, bigEndian(f4)), part("i", 4, bigEndian(f4))), "complex64, big-endian by 4", ""},
		{"of two orders", compound(8, part("r", 0, bigEndian(f4)), part("i", 4, f4)), compounds, ""},
		{"of whole numbers", compound(8, part("r", 0, i4), part("i", 4, i4)), compounds, ""},
		{"of two types", compound(8, part("r", 0, f4), part("i", 4, i4)), compounds, ""},
		{"of other names", compound(8, part("r", 0, f4), part("j", 4, f4)), compounds, ""},
		{"of another name", compound(8, part("q", 0, f4), part("i", 4, f4)), compounds, ""},
		{"the other way round", compound(8, part("i", 0, f4), part("r", 4, f4)), compounds, ""},
		{"with a gap before it", compound(12, part("r", 4, f4), part("i", 8, f4)), compounds, ""},
		{"with a gap within", compound(12, part("r", 0, f4), part("i", 8, f4)), compounds, ""},
		{"with a gap after it", compound(12, part("r", 0, f4), part("i", 4, f4)), compounds, ""},
		{"of one part", compound(4, part("r", 0, f4)), compounds, ""},
		{"of three", compound(12, part("r", 0, f4), part("i", 4, f4), part("k", 8, f4)), compounds, ""},
		{"of 255 bytes, with offsets of 1", compound(255, part("a", 254, u1)), compounds, ""},
		{"of 256 bytes, with offsets of 2", compound(256, slices.Concat([]byte("a\x00\xff\x00"), u1)), compounds, ""},
		{"of 65535 bytes, with offsets of 2", compound(65535, slices.Concat([]byte("a\x00\xfe\xff"), u1)), compounds, ""},
		{"of 65536 bytes, with offsets of 3", compound(65536, slices.Concat([]byte("a\x00\xff\xff\x00"), u1)), compounds, ""},
		{"of 2^24 bytes, with offsets of 4", compound(1<<24, slices.Concat([]byte("a\x00\xff\xff\xff\x00"), u1)), compounds, ""},
		{"of 2^32 - 1 bytes", compound(1<<32-1, slices.Concat([]byte("a\x00\xff\xff\xff\x00"), u1)), compounds, ""},
		{"that ends early", compound(8, part("r", 0, f4), part("i", 4, f4[:8])), "", "it ends early"},
		{"without an end of a name", compound(8, []byte("r")), "", "a name does not end"},
		{"an enumeration", enumOf(i4, 4, []string{"A"}, 1, 0, 0, 0), "int32", ""},
		{"of bools", enumOf(u1, 1, bools, 0, 1), "bool", ""},
		{"of bools the other way round", enumOf(u1, 1, bools, 1, 0), "uint8", ""},
		{"of one name of bools", enumOf(u1, 1, []string{"FALSE", "OTHER"}, 0, 1), "uint8", ""},
		{"of the other", enumOf(u1, 1, []string{"OTHER", "TRUE"}, 0, 1), "uint8", ""},
		{"of more", enumOf(u1, 1, []string{"FALSE", "TRUE", "MAYBE"}, 0, 1, 2), "uint8", ""},
		{"of bools of 4 bytes", enumOf(i4, 4, bools, 0, 0, 0, 0, 1, 0, 0, 0), "int32", ""},
		{"big-endian enumeration", enumOf(bigEndian(i4), 4, []string{"A"}, 0, 0, 0, 1), "int32, big-endian by 4", ""},
		{"of another size than its numbers", enumOf(i4, 2, []string{"A"}, 1, 0, 0, 0), "enum: elements are enumerations that no tensor has", ""},
		{"of floats", enumOf(f4, 4, []string{"A"}, 0, 0, 0, 0), "enum: elements are enumerations that no tensor has", ""},
		{"with values that end early", enumOf(i4, 4, []string{"A", "B"}, 1, 0, 0, 0, 2, 0, 0), "", "it ends early"},
		{"of version 1", boolType(), "bool", ""},
		{"numbers of version 5", inVersion(5, i4), "int32", ""},
		{"numbers of version 0", inVersion(0, i4), "", "a datatype has version 0"},
		{"numbers of version 6", inVersion(6, i4), "", "a datatype has version 6"},
		{"of 0 bytes", fixedType(0, false), "", "elements have 0 bytes"},
		{"32 in each other", vlens(maxRank), "vlen: elements are sequences of variable length that no tensor has", ""},
		{"33 in each other", vlens(maxRank + 1), "", "is too deep"},
	}, func(c *cursor) string {
		t := c.datatype(0)
		return typeText(&t)
	})
	if got := noType.foreign(); got != "" {
		t.Errorf("no type is %q", got)
	}
}

// TestTypesInTypes has types within each other, as far as they may be.
func TestTypesInTypes(t *testing.T) {
	for name, within := range map[string]func(b []byte) []byte{
		"compounds":    func(b []byte) []byte { return compound(4, part("a", 0, b)) },
		"enumerations": func(b []byte) []byte { return append(inVersion(3, typeHead(classEnum, 0, 4)), b...) },
	} {
		b := fixedType(4, true)
		for range maxRank {
			b = within(b)
		}
		if c := cursorOf(b); c.datatype(0).class < 0 || c.err != nil {
			t.Errorf("%d %s: %v", maxRank, name, c.err)
		}
		if c := cursorOf(within(b)); c.datatype(0).class < 0 || c.err == nil {
			t.Errorf("%d %s: no error", maxRank+1, name)
		}
	}
}

func TestTypesOfElements(t *testing.T) {
	scalar := []int64{2}
	at := func(n uint64) []byte { return contiguous(blocksAt, n) }
	of := func(b []byte, n uint64, elements string) []byte { return made(ofType(b, scalar, at(n)), elements) }
	for _, c := range []madeCase{
		{"bools", of(boolType(), 2, "\x01\x00"), "\x01\x00", ""},
		{"a byte that is no bool", of(boolType(), 2, "\x02\x00"), "", "the byte 0x02 is not a bool"},
		{"another one", of(boolType(), 2, "\x00\x03"), "", "the byte 0x03 is not a bool"},
		{"big-endian", of(bigEndian(fixedType(4, true)), 8, "abcdefgh"), "dcbahgfe", ""},
		{"of 2 bytes", of(bigEndian(fixedType(2, true)), 4, "abcd"), "badc", ""},
		{"of 8 bytes", of(bigEndian(fixedType(8, true)), 16, "abcdefghABCDEFGH"), "hgfedcbaHGFEDCBA", ""},
		{"of 1 byte", of(bigEndian(fixedType(1, true)), 2, "ab"), "ab", ""},
		{"complex", of(compound(8, part("r", 0, bigEndian(floatType(tfpb.DataType_DT_FLOAT))), part("i", 4, bigEndian(floatType(tfpb.DataType_DT_FLOAT)))), 16, "abcdefghABCDEFGH"), "dcbahgfeDCBAHGFE", ""},
		{"more than are swapped at once", made(ofType(bigEndian(fixedType(2, true)), []int64{pageSize}, at(2*pageSize)), strings.Repeat("abcd", pageSize/2)), strings.Repeat("badc", pageSize/2), ""},
		{"types 32 in each other", of(vlens(maxRank), 32, strings.Repeat("a", 32)), "", "type: elements are sequences"},
		{"types 33 in each other", of(vlens(maxRank+1), 32, strings.Repeat("a", 32)), "", "is too deep"},
		{"strings up to a zero", of(typeHead(classString, padTerminated, 3), 6, "a\x00cdef"), "a|def", ""},
		{"filled up with zeros", of(typeHead(classString, 1, 3), 6, "a\x00cd\x00\x00"), "a\x00c|d", ""},
		{"filled up with spaces", of(typeHead(classString, padSpaces, 3), 6, "a bc  "), "a b|c", ""},
	} {
		c.check(t)
	}
}

// TestOpaqueBytes are those that Keras names in an attribute, and bfloat16.
func TestOpaqueBytes(t *testing.T) {
	text := typeHead(classString, padTerminated, 16)
	named := func(list ...string) body {
		var value []byte
		for _, name := range list {
			value = append(append(value, name...), make([]byte, 16-len(name))...)
		}
		m := attributeIn(1, 0, text, dataspaceOf([]int64{int64(len(list))}), value)
		m.b = bytes.Replace(m.b, []byte{5, 0}, []byte{6, 0}, 1)
		m.b = bytes.Replace(m.b, []byte("name\x00\x00\x00\x00"), []byte("dtype\x00\x00\x00"), 1)
		return m
	}
	tagged := append(typeHead(classOpaque, 8, 2), "NUMPY\x00\x00\x00"...)
	for _, c := range []struct {
		name string
		t    []byte
		more []body
		want tfpb.DataType
	}{
		{"two bytes", typeHead(classOpaque, 0, 2), nil, tfpb.DataType_DT_BFLOAT16},
		{"two bytes with a tag", tagged, nil, tfpb.DataType_DT_INVALID},
		{"one byte", typeHead(classOpaque, 0, 1), nil, tfpb.DataType_DT_INVALID},
		{"named bfloat16", typeHead(classOpaque, 0, 2), []body{named("bfloat16")}, tfpb.DataType_DT_BFLOAT16},
		{"named bfloat16, with a tag", tagged, []body{named("bfloat16")}, tfpb.DataType_DT_BFLOAT16},
		{"named float8", typeHead(classOpaque, 0, 1), []body{named("float8_e4m3fn")}, tfpb.DataType_DT_FLOAT8_E4M3FN},
		{"named a type of another size", typeHead(classOpaque, 0, 2), []body{named("float8_e4m3fn")}, tfpb.DataType_DT_INVALID},
		{"named half", typeHead(classOpaque, 0, 2), []body{named("float16")}, tfpb.DataType_DT_HALF},
		{"named as no type", typeHead(classOpaque, 0, 2), []body{named("other")}, tfpb.DataType_DT_INVALID},
		{"with two names", typeHead(classOpaque, 0, 1), []body{named("float8_e4m3fn", "int8")}, tfpb.DataType_DT_INVALID},
		{"with two names for two bytes", typeHead(classOpaque, 0, 2), []body{named("float16", "float16")}, tfpb.DataType_DT_BFLOAT16},
		{"without names", typeHead(classOpaque, 0, 2), []body{named()}, tfpb.DataType_DT_BFLOAT16},
	} {
		b := made(ofType(c.t, []int64{1}, contiguous(blocksAt, 2), c.more...), "ab")
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		info, err := r.Info(0)
		if info.DType != c.want || (err == nil) != (c.want != tfpb.DataType_DT_INVALID) {
			t.Errorf("%s: %v, %v, want %v", c.name, info.DType, err, c.want)
		}
	}
}
