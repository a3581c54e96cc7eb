package npy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
)

func open(t *testing.T, name string) *Elements {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".npy"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(bytes.NewReader(b), int64(len(b)), tfpb.DataType_DT_INVALID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Read in pieces, an array has the bytes that it has when it is read whole.
func TestElementsInPieces(t *testing.T) {
	for _, name := range []string{"f4_c", "f4_big", "f4_fortran", "i8_fortran", "c8_big", "bool", "scalar", "empty"} {
		want, err := ReadFile(filepath.Join("testdata", name+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		e := open(t, name)
		var got []byte
		piece := make([]byte, 9)
		for {
			n, err := e.Read(piece)
			got = append(got, piece[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want.Data) {
			t.Errorf("%s: got %x, want %x", name, got, want.Data)
		}
	}
}

func TestStrings(t *testing.T) {
	for name, want := range map[string][]string{"strings": {"a", "bc"}, "unicode": {"a", "bc"}} {
		got, err := open(t, name).Strings()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, strings.Split(string(bytes.Join(got, []byte(","))), ",")); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
	}
	for name, text := range map[string][]byte{
		"surrogate":       {0, 0xd8, 0, 0},
		"beyond Unicode":  {0, 0, 0x11, 0},
		"negative number": {0, 0, 0, 0x80},
	} {
		b := file(1, dict("'<U1'", "False", "(1,)"), text)
		e, err := Open(bytes.NewReader(b), int64(len(b)), tfpb.DataType_DT_INVALID)
		if err != nil {
			t.Fatal(err)
		}
		var bad *Error
		if _, err := e.Strings(); !errors.As(err, &bad) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What NumPy writes for the types of ml_dtypes.
func TestRawBytes(t *testing.T) {
	for _, c := range []struct {
		descr      string
		like, want tfpb.DataType
	}{
		{"<V2", tfpb.DataType_DT_INVALID, tfpb.DataType_DT_BFLOAT16},
		{"|V2", tfpb.DataType_DT_INVALID, tfpb.DataType_DT_BFLOAT16},
		{"<f1", tfpb.DataType_DT_INVALID, tfpb.DataType_DT_FLOAT8_E5M2},
		{"|V1", tfpb.DataType_DT_FLOAT8_E4M3FN, tfpb.DataType_DT_FLOAT8_E4M3FN},
	} {
		b := file(1, dict("'"+c.descr+"'", "False", "(4,)"), make([]byte, 4*map[byte]int{'1': 1, '2': 2}[c.descr[2]]))
		e, err := Open(bytes.NewReader(b), int64(len(b)), c.like)
		if err != nil || e.DType != c.want {
			t.Errorf("%s: got %v, %v", c.descr, e, err)
		}
	}
	b := file(1, dict("'|V1'", "False", "(1,)"), []byte{0})
	if _, err := read(b); err == nil {
		t.Error("raw bytes were taken for something")
	}
	for _, descr := range []string{"|S0", "|S99999999999", "|S1x", "<U268435456"} {
		b := file(1, dict("'"+descr+"'", "False", "(1,)"), []byte{0})
		if _, err := Open(bytes.NewReader(b), int64(len(b)), 0); err == nil {
			t.Errorf("%s was taken", descr)
		}
	}
}

// The headers of the files that NumPy wrote.
func TestHeader(t *testing.T) {
	for name, c := range map[string]struct {
		dtype tfpb.DataType
		shape []int64
		width int
	}{
		"f4_c":    {tfpb.DataType_DT_FLOAT, []int64{2, 3}, 0},
		"bool":    {tfpb.DataType_DT_BOOL, []int64{3}, 0},
		"scalar":  {tfpb.DataType_DT_INT32, nil, 0},
		"empty":   {tfpb.DataType_DT_DOUBLE, []int64{0, 5}, 0},
		"half":    {tfpb.DataType_DT_HALF, []int64{1}, 0},
		"strings": {tfpb.DataType_DT_STRING, []int64{2}, 2},
	} {
		want, err := os.ReadFile(filepath.Join("testdata", name+".npy"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Header(c.dtype, c.shape, c.width)
		if err != nil || !bytes.HasPrefix(want, got) || len(got)%headerAlign != 0 {
			t.Errorf("%s: got %q, %v; the file begins with %q", name, got, err, want[:min(len(want), 128)])
		}
	}
	if _, err := Header(tfpb.DataType_DT_VARIANT, nil, 0); err == nil {
		t.Error("a variant has a header")
	}
	if _, err := Header(tfpb.DataType_DT_FLOAT, make([]int64, 65), 0); err == nil {
		t.Error("65 dimensions have a header")
	}
}
