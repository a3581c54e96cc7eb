package formats_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

// TestAllocsOfListing bounds the allocations for each tensor that is listed: files have
// up to a hundred thousand of them.
func TestAllocsOfListing(t *testing.T) {
	const n = 2000
	var parts []ckptfmt.Part
	for i := range n {
		data := make([]byte, 4*(i%7))
		open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		parts = append(parts, ckptfmt.WholePart(fmt.Sprintf("layer%d/w%d", i/10, i%10), tfpb.DataType_DT_FLOAT, []int64{int64(i % 7)}, open))
	}
	for ext, c := range map[string]struct {
		write func(w io.Writer) error
		most  float64
	}{
		"safetensors": {func(w io.Writer) error { return safetensors.Write(t.Context(), w, parts, nil) }, 2},
		"npz":         {func(w io.Writer) error { return npz.Write(t.Context(), w, parts) }, 4},
		"pt":          {func(w io.Writer) error { return torch.Write(t.Context(), w, parts) }, 12},
		"h5":          {func(w io.Writer) error { return hdf5.Write(t.Context(), w, parts, nil) }, 9},
	} {
		name := filepath.Join(t.TempDir(), "m."+ext)
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.write(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got := testing.AllocsPerRun(3, func() { list(t, name, n) })
		t.Logf("%s: %.1f", ext, got/n)
		if got/n > c.most {
			t.Errorf("%s: %.1f allocations for a tensor, want %.0f at most", ext, got/n, c.most)
		}
	}
}

// list opens a file, and insists on n tensors.
func list(t *testing.T, name string, n int) {
	f, err := formats.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		n--
	}
	if n != 0 {
		t.Errorf("%s: %d tensors are missing", name, n)
	}
}
