package formats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestMissingShardOfKerasHindersNoOther(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kerasShards)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "m_00001.weights.h5")); err != nil {
		t.Fatal(err)
	}
	r, err := openIn(t, dir, formats.KerasSharded)
	if err != nil {
		t.Fatal(err)
	}
	var intact, lost int
	for name, err := range r.Verify(t.Context()) {
		switch {
		case err == nil:
			intact++
		case errors.As(err, new(*ckptfmt.CorruptError)) && strings.Contains(err.Error(), "m_00001.weights.h5"):
			lost++
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	if intact == 0 || lost == 0 {
		t.Errorf("%d tensors are intact, %d groups are lost", intact, lost)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.weights.h5"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openIn(t, dir, formats.KerasSharded); !errors.As(err, new(*ckptfmt.CorruptError)) {
		t.Errorf("without any file: %v", err)
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
		"outside":  `{"weight_map":{"x":"../a.bin"}}`,
		"a number": `{"weight_map":{"x":7,"y":"b.bin"}}`,
		"no JSON":  `{"weight_map":{"x":"a.bin"`,
	} {
		files[index] = text
		var corrupt *ckptfmt.CorruptError
		if _, err := openIn(t, write(t, files), formats.TorchSharded); !errors.As(err, &corrupt) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// TestMissingShardHidesNoOtherTensor has the tensors of a file that is gone as damage, and so
// those of files that are damaged, or of another save.
func TestMissingShardHidesNoOtherTensor(t *testing.T) {
	files := map[string]string{
		"a.bin": stateDict(t, "x", 1), "c.bin": stateDict(t, "other", 3), "d.bin": stateDict(t, "v", 3)[:100],
		"pytorch_model.bin.index.json": `{"weight_map":{"x":"a.bin","y":"b.bin","w":"b.bin","z":"c.bin","u":"c.bin","v":"d.bin"},"metadata":{}}`,
	}
	r, err := openIn(t, write(t, files), formats.TorchSharded)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for info, err := range r.Tensors() {
		var corrupt *ckptfmt.CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", info.Name, err)
		}
		got[info.Name] = fmt.Sprint(err)
	}
	want := map[string]string{"x": "<nil>", "other": "<nil>", "y": "b.bin: no such file", "w": "b.bin: no such file",
		"z": "index: c.bin lacks what it has in the index", "u": "index: c.bin lacks what it has in the index", "v": "d.bin: "}
	for name, text := range want {
		if !strings.Contains(got[name], text) {
			t.Errorf("%s: %s, want %s", name, got[name], text)
		}
	}
	if len(got) != len(want) || got["z"] != got["u"] {
		t.Errorf("tensors are %v", got)
	}
	if got, err := r.Lookup("x"); err != nil || !bytes.Equal(got.Data, []byte{1}) {
		t.Errorf("x is %v, %v", got, err)
	}
	delete(files, "a.bin")
	delete(files, "c.bin")
	delete(files, "d.bin")
	if _, err := openIn(t, write(t, files), formats.TorchSharded); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file is there: %v", err)
	}
}

// TestTensorThatTheIndexLacks is listed with the others of its file.
func TestTensorThatTheIndexLacks(t *testing.T) {
	var two bytes.Buffer
	var parts []ckptfmt.Part
	for _, name := range []string{"x", "extra"} {
		parts = append(parts, ckptfmt.WholePart(name, tfpb.DataType_DT_UINT8, []int64{1}, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte{7})), nil
		}))
	}
	if err := torch.Write(t.Context(), &two, parts); err != nil {
		t.Fatal(err)
	}
	dir := write(t, map[string]string{"a.bin": two.String(), "pytorch_model.bin.index.json": `{"weight_map":{"x":"a.bin"}}`})
	r, err := openIn(t, dir, formats.TorchSharded)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Lookup("extra"); err != nil || !bytes.Equal(got.Data, []byte{7}) {
		t.Errorf("extra is %v, %v", got, err)
	}
}

// TestFoldersOfOtherPrograms are named, or opened where they hold one file.
func TestFoldersOfOtherPrograms(t *testing.T) {
	if r, err := openIn(t, write(t, map[string]string{"pytorch_model.bin": stateDict(t, "x", 1), "config.json": "{}"}), formats.Torch); err != nil {
		t.Error(err)
	} else if _, err := r.Lookup("x"); err != nil {
		t.Error(err)
	}
	for want, files := range map[string][]string{
		"Orbax":     {"_CHECKPOINT_METADATA", "_METADATA", "a/.zarray"},
		"DeepSpeed": {"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"},
	} {
		parent := filepath.Join(t.TempDir(), "a[b")
		dir := filepath.Join(parent, "10")
		for _, name := range files {
			name = filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte("x"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(parent, "latest"), []byte("10"), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{parent, dir} {
			var kind *formats.KindError
			if _, err := formats.FindIn(dir); !errors.As(err, &kind) || !strings.Contains(kind.Is, want) {
				t.Errorf("%s: %v, want %s", dir, err, want)
			}
		}
	}
}
