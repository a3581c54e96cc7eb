package hdf5

import (
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestTypesThatAreNearly has compounds and enumerations that are nearly complex numbers and bools,
// and their older versions, whose names are filled up.
func TestTypesThatAreNearly(t *testing.T) {
	const float, complex64, none = tfpb.DataType_DT_FLOAT, tfpb.DataType_DT_COMPLEX64, tfpb.DataType_DT_INVALID
	f := floatType(float)
	old := func(version byte, class int, n uint32, size int64, parts ...[]byte) []byte {
		return append(inVersion(version, typeHead(class, n, size)), slices.Concat(parts...)...)
	}
	filled := func(name string, at byte, t []byte) []byte {
		return slices.Concat([]byte(name), make([]byte, 8-len(name)), []byte{at, 0, 0, 0}, t)
	}
	one, two := fixedType(1, true), []string{"FALSE", "TRUE"}
	for _, c := range []struct {
		about string
		b     []byte
		want  tfpb.DataType
		fails bool
	}{
		{"complex", compound(8, part("r", 0, f), part("i", 4, f)), complex64, false},
		{"of version 2", old(2, classCompound, 2, 8, filled("r", 0, f), filled("i", 4, f)), complex64, false},
		{"both parts at one place", compound(8, part("r", 4, f), part("i", 4, f)), none, false},
		{"a gap between them", compound(12, part("r", 0, f), part("i", 8, f)), none, false},
		{"another type of the second", compound(8, part("r", 0, f), part("i", 4, fixedType(4, true))), none, false},
		{"another name of the second", compound(8, part("r", 0, f), part("j", 4, f)), none, false},
		{"another name of the first", compound(8, part("x", 0, f), part("i", 4, f)), none, false},
		{"of a byte", compound(1, part("a", 0, one)), none, false},
		{"bools", enumOf(one, 1, two, 0, 1), tfpb.DataType_DT_BOOL, false},
		{"bools of version 2", old(2, classEnum, 2, 1, one, []byte("FALSE\x00\x00\x00TRUE\x00\x00\x00\x00\x00\x01")), tfpb.DataType_DT_BOOL, false},
		{"of two bytes each", enumOf(one, 2, two, 0, 1), none, false},
		{"of other names", enumOf(one, 1, []string{"FALSE", "MAYBE"}, 0, 1), tfpb.DataType_DT_INT8, false},
		{"of others of both", enumOf(one, 1, []string{"NO", "TRUE"}, 0, 1), tfpb.DataType_DT_INT8, false},
		{"of other values", enumOf(one, 1, two, 1, 0), tfpb.DataType_DT_INT8, false},
		{"a third", enumOf(one, 1, []string{"FALSE", "TRUE", "MAYBE"}, 0, 1, 2), tfpb.DataType_DT_INT8, false},
		{"one alone", enumOf(one, 1, []string{"FALSE"}, 0), tfpb.DataType_DT_INT8, false},
		{"a name that does not end", append(inVersion(3, typeHead(classEnum, 1, 1)), append(slices.Clone(one), "FALSE"...)...), none, true},
		{"a type that ends early", typeHead(classFixed, 0, 4)[:7], none, true},
	} {
		cursor := cursorOf(c.b)
		if got := cursor.datatype(0); (cursor.err != nil) != c.fails || !c.fails && got.dtype != c.want {
			t.Errorf("%s: %v, %v, want %v", c.about, got.dtype, cursor.err, c.want)
		}
	}
}
