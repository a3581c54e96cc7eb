package hdf5

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

var update = flag.Bool("update", false, "write the file that others are compared with")

// TestWrittenBytes compares a file of every type, a group with more names than a node has,
// and attributes with one that h5py and Keras have read.
func TestWrittenBytes(t *testing.T) {
	var parts []ckptfmt.Part
	add := func(name string, d tfpb.DataType, shape ...int64) {
		n, err := dtype.NumElements(shape)
		if err != nil {
			t.Fatal(err)
		}
		b := bytes.Repeat([]byte{1}, int(n*dtype.Size(d)))
		parts = append(parts, ckptfmt.WholePart(name, d, shape, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }))
	}
	for d := tfpb.DataType_DT_FLOAT; d < tfpb.DataType_DT_HALF+1; d++ {
		if _, err := typeOf(d); err == nil {
			add("types/"+dtype.Name(d), d, 3)
		}
	}
	add("bfloat16", tfpb.DataType_DT_BFLOAT16, 2, 2)
	add("scalar", tfpb.DataType_DT_UINT32)
	add("none at all", tfpb.DataType_DT_UINT64, 0, 4)
	for i := range 9 {
		add(fmt.Sprintf("many/%d", i), tfpb.DataType_DT_INT8, 1)
	}
	attrs := Attrs{"": {"name": "top", "other": ""}, "types": {"name": "kinds"}, "empty": {"name": "top"}, "none/at/all": {}}
	var got bytes.Buffer
	if err := Write(t.Context(), &got, parts, attrs); err != nil {
		t.Fatal(err)
	}
	const name = "../../fixtures/hdf5/written.h5"
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		at := 0
		for at < min(len(want), got.Len()) && want[at] == got.Bytes()[at] {
			at++
		}
		t.Errorf("%d bytes, want %d; byte %d differs", got.Len(), len(want), at)
	}
}
