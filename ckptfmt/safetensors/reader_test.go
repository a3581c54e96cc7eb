package safetensors

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// failing is a file whose disk fails at an offset.
type failing struct {
	io.ReaderAt
	at int64
}

var errDisk = errors.New("the disk fails")

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	if at >= f.at {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestDiskFails is not damage of the file, which may be read later.
func TestDiskFails(t *testing.T) {
	b := file(`{"a":`+entry("U8", "[2]", "[0,2]")+`}`, "ab")
	for _, at := range []int64{0, lengthSize} {
		_, err := NewReader(&failing{bytes.NewReader(b), at}, int64(len(b)), "x.safetensors")
		if !errors.Is(err, errDisk) || errors.As(err, new(*ckptfmt.CorruptError)) || !strings.HasPrefix(err.Error(), "x.safetensors: ") {
			t.Errorf("at %d: got %v", at, err)
		}
	}
	r, err := NewReader(&failing{bytes.NewReader(b), int64(len(b)) - 2}, int64(len(b)), "x.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Parts()[0].Load(); !errors.Is(err, errDisk) {
		t.Errorf("got %v", err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("closing what it did not open: %v", err)
	}
}

// TestAnyOrder of the entries is read: the library writes one of its own.
func TestAnyOrder(t *testing.T) {
	r, err := read(file(`{"b":`+entry("U8", "[1]", "[2,3]")+`,"a":`+entry("I16", "[1]", "[0,2]")+`,"e":`+entry("U8", "[0]", "[2,2]")+`}`, "xyz"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []ckptfmt.TensorInfo{
		{Name: "a", DType: tfpb.DataType_DT_INT16, Shape: []int64{1}, Bytes: 2},
		{Name: "e", DType: tfpb.DataType_DT_UINT8, Shape: []int64{0}},
		{Name: "b", DType: tfpb.DataType_DT_UINT8, Shape: []int64{1}, Bytes: 1},
	} {
		got, err := r.Info(i)
		if err != nil || got.Name != want.Name || got.DType != want.DType || got.Bytes != want.Bytes || !slices.Equal(got.Shape, want.Shape) {
			t.Errorf("%d is %+v, %v; want %+v", i, got, err, want)
		}
	}
	if got, err := r.Parts()[2].Load(); err != nil || string(got.Data) != "z" {
		t.Errorf("b is %v, %v", got, err)
	}
}

// TestNamesOfTypes of later versions of the format are capital letters, digits and underscores.
func TestNamesOfTypes(t *testing.T) {
	for name, ok := range map[string]bool{
		"A": true, "Z": true, "I4": true, "F8_E3M09": true, "F_": true, strings.Repeat("F", longestType): true,
		"": false, strings.Repeat("F", longestType+1): false, "4F": false, "_F": false, "f": false, "F/": false, "F:": false, "@": false, "[": false, "F-": false,
	} {
		if got := typeOf(name) != nil; got != ok {
			t.Errorf("%q: %t", name, got)
		}
	}
	r, err := read(file(`{"a":`+entry("Q9", "[3]", "[0,0]")+`}`, ""))
	if err != nil || r.Part(0).Foreign != "Q9" {
		t.Errorf("no bytes of a type whose size is not known: %v", err)
	}
}
