package formats_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

const kerasShards = "../../fixtures/keras/sharded"

func openIn(t *testing.T, dir string, want formats.Kind) (*formats.Reader, error) {
	t.Helper()
	f, err := formats.FindIn(dir)
	if err != nil || f.Kind != want {
		t.Fatalf("%s is %v, %v, want %v", dir, f.Kind, err, want)
	}
	r, err := f.Open()
	if err == nil {
		t.Cleanup(func() { r.Close() })
	}
	return r, err
}

func TestWeightsOfKerasInSeveralFiles(t *testing.T) {
	r, err := openIn(t, kerasShards, formats.KerasSharded)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for info, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	// The name of the head is in another file than its variables.
	if want := []string{"body/bias", "body/kernel", "head/bias", "head/kernel"}; !slices.Equal(names, want) {
		t.Errorf("tensors are %q, want %q", names, want)
	}
	for _, name := range []string{"head/bias", "layers/dense_1/vars/1"} {
		got, err := r.Lookup(name)
		if err != nil || !bytes.Equal(got.Data, []byte{0, 0x80, 0x3b, 0x45, 0, 0x90, 0x3b, 0x45}) { // 3000, 3001
			t.Errorf("%s is %v, %v", name, got, err)
		}
	}
	if n := len(r.Files()); n != 3 {
		t.Errorf("there are %d files, want 3", n)
	}
	for name, err := range r.Verify(context.Background()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissingShardOfKerasIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kerasShards)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "m_00001.weights.h5")); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, dir, formats.KerasSharded); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// stateDict is a file of torch with one tensor.
func stateDict(t *testing.T, name string, value byte) string {
	t.Helper()
	p := ckptfmt.WholePart(name, tfpb.DataType_DT_UINT8, []int64{1}, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader([]byte{value})), nil
	})
	var b bytes.Buffer
	if err := torch.Write(context.Background(), &b, []ckptfmt.Part{p}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestModelOfTorchInSeveralFiles(t *testing.T) {
	const index = "pytorch_model.bin.index.json"
	files := map[string]string{
		"a.bin": stateDict(t, "x", 1), "b.bin": stateDict(t, "y", 2), index: `{"weight_map":{"x":"a.bin","y":"b.bin"}}`,
	}
	r, err := openIn(t, write(t, files), formats.TorchSharded)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]byte{"x": 1, "y": 2} {
		if got, err := r.Lookup(name); err != nil || !bytes.Equal(got.Data, []byte{want}) {
			t.Errorf("%s is %v, %v, want %d", name, got, err, want)
		}
	}
	for name, text := range map[string]string{
		"missing tensor": `{"weight_map":{"x":"a.bin","z":"b.bin"}}`,
		"outside":        `{"weight_map":{"x":"../a.bin"}}`,
		"a number":       `{"weight_map":{"x":7,"y":"b.bin"}}`,
		"no JSON":        `{"weight_map":{"x":"a.bin"`,
	} {
		files[index] = text
		var corrupt *ckptfmt.CorruptError
		if _, err := openIn(t, write(t, files), formats.TorchSharded); !errors.As(err, &corrupt) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
