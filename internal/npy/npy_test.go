package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
)

// file lays out a file of version major.
func file(major byte, header string, data []byte) []byte {
	b := append([]byte(magic), major, 0)
	if major == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), data...)
}

func dict(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': %s, 'fortran_order': %s, 'shape': %s, }    \n", descr, fortran, shape)
}

func read(b []byte) (*Array, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// TestGolden reads what NumPy wrote: testdata/make_arrays.py says what is in it.
func TestGolden(t *testing.T) {
	counting := func(n, size int) []byte { // 0, 1, 2, … as little-endian integers
		b := make([]byte, n*size)
		for i := range n {
			b[i*size] = byte(i)
		}
		return b
	}
	floats := []byte{0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40, 0, 0, 0xa0, 0x40}
	for name, want := range map[string]*Array{
		"f4_c":       {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 3}, Data: floats},
		"f4_big":     {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 3}, Data: floats},
		"f4_fortran": {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 3}, Data: floats},
		"f4_v2":      {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 3}, Data: floats},
		"f4_v3":      {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 3}, Data: floats},
		"i8_fortran": {DType: tfpb.DataType_DT_INT64, Shape: []int64{2, 3, 4}, Data: counting(24, 8)},
		"u2_big":     {DType: tfpb.DataType_DT_UINT16, Shape: []int64{4}, Data: counting(4, 2)},
		"bool":       {DType: tfpb.DataType_DT_BOOL, Shape: []int64{3}, Data: []byte{1, 0, 1}},
		"scalar":     {DType: tfpb.DataType_DT_INT32, Data: []byte{7, 0, 0, 0}},
		"empty":      {DType: tfpb.DataType_DT_DOUBLE, Shape: []int64{0, 5}, Data: []byte{}},
		"half":       {DType: tfpb.DataType_DT_HALF, Shape: []int64{1}, Data: []byte{0, 0x3e}},
		"strings":    {DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), []byte("bc")}},
		"unicode":    {DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), []byte("bc")}},
		// 1+2i, each part with its own byte order.
		"c8_big": {DType: tfpb.DataType_DT_COMPLEX64, Shape: []int64{1}, Data: []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadFile(filepath.Join("testdata", name+".npy"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, kind := range map[string]string{"object": "object", "record": "record", "date": "datetime64[D]"} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadFile(filepath.Join("testdata", name+".npy"))
			var bad *Error
			if !errors.As(err, &bad) || bad.Type != kind || !strings.Contains(err.Error(), "only numbers, bools and strings can be read") {
				t.Errorf("got %v", err)
			}
		})
	}
	_, err := ReadFile("testdata/none.npy")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	var bad *Error
	if _, err := ReadFile("testdata"); !errors.As(err, &bad) {
		t.Errorf("a folder: %v", err)
	}
}

// Python 2 wrote its longs with an L.
func TestLongDimensions(t *testing.T) {
	got, err := read(file(1, dict("'|u1'", "False", "(2L, 3L)"), make([]byte, 6)))
	if err != nil || !slices.Equal(got.Shape, []int64{2, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDamaged(t *testing.T) {
	f4 := dict("'<f4'", "False", "(2,)")
	eight := make([]byte, 8)
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":        {nil, "not a NumPy file"},
		"zip":            {[]byte("PK\x03\x04 and more after it"), "not a NumPy file"},
		"version 4":      {file(4, f4, eight), "version 4.0"},
		"minor version":  {append([]byte(magic), 1, 1, 0, 0), "version 1.1"},
		"long header":    {append([]byte(magic), 2, 0, 0xff, 0xff, 0xff, 0xff), "4294967295 bytes is longer"},
		"short header":   {append([]byte(magic), 1, 0, 99, 0, '{'), "ends within the header of 99 bytes"},
		"cut length":     {append([]byte(magic), 2, 0, 9, 0), "ends within the header's length"},
		"no dict":        {file(1, "[1]", eight), `found '['; want '{'`},
		"two dicts":      {file(1, f4+f4, eight), "after the dict"},
		"no end":         {file(1, "{'descr': '<f4'", eight), "it ends; want"},
		"missing key":    {file(1, "{'descr': '<f4', 'shape': (2,)}", eight), `"fortran_order" is missing`},
		"key twice":      {file(1, "{'descr': '<f4', 'descr': '<f4'}", eight), "comes twice"},
		"strange key":    {file(1, "{'dtype': '<f4'}", eight), `"dtype" is not known`},
		"strange type":   {file(1, dict("'<f16'", "False", "(2,)"), eight), `"<f16" of the elements is not known`},
		"no byte order":  {file(1, dict("'f4'", "False", "(2,)"), eight), `"f4" of the elements is not known`},
		"wrong order":    {file(1, dict("'|f4'", "False", "(2,)"), eight), `"|f4" of the elements is not known`},
		"strange bool":   {file(1, dict("'<f4'", "None", "(2,)"), eight), "neither True nor False"},
		"number":         {file(1, dict("'<f4'", "False", "(2)"), eight), "not a tuple"},
		"negative":       {file(1, dict("'<f4'", "False", "(-2,)"), eight), "not a whole number"},
		"no comma":       {file(1, dict("'<f4'", "False", "(1,2 3)"), eight), "a comma is missing"},
		"overflow":       {file(1, dict("'<f4'", "False", "(9223372036854775807, 9223372036854775807)"), eight), "larger than any file"},
		"beyond int64":   {file(1, dict("'<f4'", "False", "(9223372036854775808,)"), eight), "not a whole number"},
		"huge":           {file(1, dict("'<f4'", "False", "(1000000000000,)"), eight), "takes 4000000000000 bytes, but 8 follow"},
		"rank":           {file(1, dict("'<f4'", "False", "("+strings.Repeat("1,", 65)+")"), eight), "more than 64 dimensions"},
		"too few":        {file(1, f4, eight[:7]), "takes 8 bytes, but 7 follow"},
		"too many":       {file(1, f4, append(eight, 0)), "takes 8 bytes, but 9 follow"},
		"no bool":        {file(1, dict("'|b1'", "False", "(2,)"), []byte{1, 2}), "0x02 is not a bool"},
		"escape":         {file(1, `{'de\x73cr': '<f4'}`, eight), "in a string"},
		"endless string": {file(1, "{'descr", eight), "it ends within a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(test.file)
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestCut cuts a file at each byte: no part of it is an array.
func TestCut(t *testing.T) {
	for _, major := range []byte{1, 2, 3} {
		whole := file(major, dict("'>i2'", "True", "(2, 3)"), make([]byte, 12))
		if _, err := read(whole); err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			var bad *Error
			if _, err := read(whole[:i]); !errors.As(err, &bad) || bad.Offset > int64(i) {
				t.Errorf("version %d, cut at %d: %v", major, i, err)
			}
			// The size may be of before the cut.
			if _, err := Read(bytes.NewReader(whole[:i]), int64(len(whole))); !errors.As(err, &bad) {
				t.Errorf("version %d, cut at %d while reading: %v", major, i, err)
			}
		}
	}
}

func TestSlowReader(t *testing.T) {
	whole := file(2, dict("'<i2'", "False", "(2,)"), []byte{1, 0, 2, 0})
	got, err := Read(iotest.OneByteReader(bytes.NewReader(whole)), int64(len(whole)))
	if err != nil || !bytes.Equal(got.Data, []byte{1, 0, 2, 0}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.npy")
	if err != nil || len(names) == 0 {
		f.Fatal("no files to begin with", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer membound.Check(t, len(b), 64)()
		a, err := Read(io.LimitReader(bytes.NewReader(b), int64(len(b))), int64(len(b)))
		var bad *Error
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("an error of type %T: %v", err, err)
		}
		if err != nil {
			return
		}
		size := 0
		for _, k := range kinds {
			if k.dtype == a.DType {
				size = k.size
			}
		}
		if n, ok := product(a.Shape, int64(size)); !ok || n != int64(len(a.Data)) || len(a.Data) > len(b) {
			t.Errorf("%v %v has %d bytes", a.DType, a.Shape, len(a.Data))
		}
	})
}
