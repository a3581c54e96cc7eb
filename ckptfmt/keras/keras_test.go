package keras_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/keras"
	"github.com/trainerd/trainerd/ckptfmt/npz"
)

const fixtures = "../../fixtures/keras"

// path is that of a variable as Keras names it, in a file. The model is called
// "each" where it is used.
func path(name string) string {
	if strings.HasPrefix(name, "inner/") {
		return "each/" + name
	}
	return name
}

func TestReaderGivesTheVariablesOfTheModel(t *testing.T) {
	want, err := npz.Open(filepath.Join(fixtures, "want.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	for file, layout := range map[string]keras.Layout{"model.keras": keras.Weights, "model.weights.h5": keras.Weights, "model.h5": keras.Legacy} {
		r, err := keras.Open(filepath.Join(fixtures, file))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if r.Layout() != layout {
			t.Errorf("%s has layout %d, want %d", file, r.Layout(), layout)
		}
		tensors, err := ckptfmt.NewPartsReader(r.Parts(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range want.Parts() {
			name := path(p.Name)
			if file == "model.weights.h5" && strings.Contains(name, "batch_normalization") {
				continue // without the configuration, three variables may be any of four
			}
			tensor, err := p.Load()
			if err != nil {
				t.Fatal(err)
			}
			got, err := tensors.Lookup(name)
			if err != nil || !bytes.Equal(got.Data, tensor.Data) {
				t.Errorf("%s: %s: %v, or other elements", file, name, err)
			}
		}
	}
}

func TestBothNamesAreFound(t *testing.T) {
	r, err := keras.Open(filepath.Join(fixtures, "model.keras"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tensors, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for stored, name := range map[string]string{
		"layers/dense/vars/0":                                             "head/kernel",
		"layers/dense_1/vars/1":                                           "small/bias",
		"layers/bidirectional/backward_layer/cell/vars/1":                 "both/backward_rnn/lstm_cell/recurrent_kernel",
		"layers/time_distributed/layer/layers/dense/vars/0":               "each/inner/in_a/kernel",
		"optimizer/vars/0":                                                "optimizer/iteration",
		"layers/time_distributed/layer/layers/batch_normalization/vars/1": "each/inner/batch_normalization/moving_mean",
	} {
		a, err := tensors.Lookup(stored)
		if err != nil {
			t.Fatal(err)
		}
		info, err := tensors.Info(stored)
		if err != nil || info.Name != name {
			t.Errorf("%s is %q, want %q", stored, info.Name, name)
		}
		b, err := tensors.Lookup(name)
		if err != nil || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s and %s differ: %v", stored, name, err)
		}
	}
}

func TestVerifyNamesItsStrongestCheck(t *testing.T) {
	for file, want := range map[string]string{"model.keras": "CRC-32", "model.weights.h5": "no checksums"} {
		r, err := keras.Open(filepath.Join(fixtures, file))
		if err != nil {
			t.Fatal(err)
		}
		checks, err := ckptfmt.VerifyFile(context.Background(), r)
		if err != nil || !strings.Contains(checks, want) {
			t.Errorf("%s: %q, %v", file, checks, err)
		}
	}
	r, err := hdf5.Open(filepath.Join(fixtures, "model.weights.h5"))
	if err != nil {
		t.Fatal(err)
	}
	checks, err := ckptfmt.VerifyFile(context.Background(), r)
	if err != nil || !strings.Contains(checks, "sizes only") {
		t.Errorf("%q, %v", checks, err)
	}
}

// TestEveryFlippedByteOfAnArchiveIsDamage flips bytes of the members, each of
// which has a CRC-32.
func TestEveryFlippedByteOfAnArchiveIsDamage(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(fixtures, "model.keras"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		start, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		for at := start; at < start+int64(f.CompressedSize64); at += 1 + int64(f.CompressedSize64)/30 {
			damaged := slices.Clone(b)
			damaged[at] ^= 4
			if _, err := verify(damaged); err == nil {
				t.Errorf("%s: byte %d was flipped, and nothing is wrong", f.Name, at)
			}
		}
	}
}

func verify(b []byte) (string, error) {
	r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "f.keras")
	if err != nil {
		return "", err
	}
	return ckptfmt.VerifyFile(context.Background(), r)
}

func archive(t testing.TB, method uint16, members map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range members {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestArchives(t *testing.T) {
	weights, err := os.ReadFile(filepath.Join(fixtures, "model.weights.h5"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := verify(archive(t, zip.Deflate, map[string][]byte{"config.json": []byte("{}"), "model.weights.h5": weights})); err != nil {
		t.Errorf("compressed members: %v", err)
	}
	bomb := make([]byte, 300<<20)
	for name, members := range map[string]map[string][]byte{
		"no weights":  {"config.json": []byte("{}")},
		"no JSON":     {"config.json": []byte("{"), "model.weights.h5": weights},
		"no HDF5":     {"config.json": []byte("{}"), "model.weights.h5": []byte("no")},
		"JSON bomb":   {"config.json": bomb[:70<<20], "model.weights.h5": weights},
		"weight bomb": {"config.json": []byte("{}"), "model.weights.h5": bomb},
	} {
		var corrupt *ckptfmt.CorruptError
		if _, err := verify(archive(t, zip.Deflate, members)); !errors.As(err, &corrupt) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func FuzzKeras(f *testing.F) {
	for _, name := range []string{"model.keras", "model.weights.h5", "model.h5"} {
		b, err := os.ReadFile(filepath.Join(fixtures, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = verify(b)
		r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "x")
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		byVariable, _ := r.OptimizerNames()
		for _, name := range byVariable {
			if seen[name] {
				t.Errorf("two variables are %q", name)
			}
			seen[name] = true
		}
	})
}

// What an optimizer keeps has three names in the layout of Keras 2. One of them is
// that of the file in the layout of Keras 3, for the same tensor.
func TestOptimizerNames(t *testing.T) {
	open := func(file string) (*keras.Reader, *ckptfmt.PartsReader) {
		r, err := keras.Open(filepath.Join(fixtures, file))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		tensors, err := ckptfmt.NewPartsReader(r.Parts(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r, tensors
	}
	legacy, old := open("model.h5")
	weights, numbered := open("model.keras")
	byVariable, byNumber := legacy.OptimizerNames()
	for key, want := range map[string][2]string{
		"adam/iteration":                               {"optimizer/iteration", ""},
		"adam/head_bias_velocity":                      {"optimizer/head/bias/velocity", "optimizer/21"},
		"adam/inner_batch_normalization_beta_momentum": {"optimizer/each/inner/batch_normalization/beta/momentum", "optimizer/4"},
	} {
		if got := [2]string{byVariable[key], byNumber[key]}; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if len(byVariable) != 26 || len(byNumber) != 24 {
		t.Errorf("%d and %d names, want 26 and 24", len(byVariable), len(byNumber))
	}
	for key, name := range byNumber {
		a, errA := old.Lookup(key)
		b, errB := numbered.Lookup(name)
		if errA != nil || errB != nil || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s and %s: %v, %v, or other elements", key, name, errA, errB)
		}
	}
	if byVariable, byNumber = weights.OptimizerNames(); byVariable != nil || byNumber != nil {
		t.Errorf("a file in the layout of Keras 3 has %d and %d more names", len(byVariable), len(byNumber))
	}
}

// The optimizer in a LossScaleOptimizer has names of its own for what it keeps, and a scope
// that the variables of a Sequential model begin with.
func TestOptimizerNamesOfAnOptimizerInAnother(t *testing.T) {
	slots := []string{
		"loss_scale_optimizer/iteration", "loss_scale_optimizer/learning_rate", "loss_scale_optimizer/step_counter", "loss_scale_optimizer/dynamic_scale",
		"adam/iteration", "adam/learning_rate", "loss_scale_optimizer/adam/sequential_first_kernel_momentum",
	}
	const weight = "sequential/first/kernel"
	parts := []ckptfmt.Part{scalar(t, "model_weights/first/"+weight, 1)}
	attrs := hdf5.Attrs{"model_weights": {"layer_names": "first"}, "model_weights/first": {"weight_names": weight}, "optimizer_weights": {}}
	for i, slot := range slots {
		parts = append(parts, scalar(t, "optimizer_weights/"+slot, 2))
		attrs["optimizer_weights"][fmt.Sprintf("weight_names%d", i)] = slot
	}
	var b bytes.Buffer
	if err := hdf5.Write(context.Background(), &b, parts, attrs); err != nil {
		t.Fatal(err)
	}
	r, err := keras.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "scaled.h5")
	if err != nil {
		t.Fatal(err)
	}
	byVariable, byNumber := r.OptimizerNames()
	for i, want := range []string{
		"iteration", "learning_rate", "step_counter", "dynamic_scale", "adam/iteration", "adam/learning_rate", "adam/first/kernel/momentum",
	} {
		if got := byVariable[slots[i]]; got != "optimizer/"+want {
			t.Errorf("%s is %q, want optimizer/%s", slots[i], got, want)
		}
		if number := byNumber[slots[i]]; i > 1 && number != fmt.Sprintf("optimizer/%d", i) {
			t.Errorf("%s is %q, want optimizer/%d", slots[i], number, i)
		}
	}
}
