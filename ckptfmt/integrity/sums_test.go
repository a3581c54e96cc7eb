package integrity_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	hdf5file "github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
)

// The sum of a file with a large group, which several goroutines read, is that of its bytes.
func TestSumOfLargeGroup(t *testing.T) {
	x := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{256}, Data: make([]byte, 1024)}
	var parts []ckptfmt.Part
	for i := range 2000 {
		parts = append(parts, x.Part(fmt.Sprintf("optimizer/%d", i)))
	}
	var b bytes.Buffer
	if err := hdf5file.Write(t.Context(), &b, parts, nil); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))
	root := rootOf(t, map[string]string{"model.h5": b.String()})
	for range 20 {
		var sums manifest.Tees
		if err := integrity.CheckThrough(t.Context(), root, []string{"model.h5"}, nil, sums.Reader); err != nil {
			t.Fatal(err)
		}
		got, err := sums.Describe(t.Context(), root, []string{"model.h5"})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].SHA256 != want {
			t.Fatalf("the sum is %s, want %s", got[0].SHA256, want)
		}
	}
}
