package digest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	tfpb "github.com/trainerd/trainerd/proto"
)

const fixtures = "../../fixtures"

func total(t *testing.T, name string) string {
	t.Helper()
	f, err := formats.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	whole := NewWhole()
	for x, err := range Tensors(t.Context(), r, nil) {
		if err != nil {
			t.Fatal(err)
		}
		whole.Add(&x)
	}
	return fmt.Sprintf("%x", whole.Sum())
}

// The bytes are those that the package's documentation defines.
func TestDefinition(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "c")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	elements := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}
	words := [][]byte{[]byte("a"), nil}
	for _, x := range []ckptfmt.NamedTensor{
		{Name: "b", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 1}, Data: elements}},
		{Name: "a/words", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: words}},
		{Name: "step", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Data: make([]byte, 8)}},
	} {
		if err := w.Add(x.Name, x.Tensor); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Finish(), w.Close()); err != nil {
		t.Fatal(err)
	}
	want := sha256.New()
	add := func(name, bytes string) {
		sum := sha256.Sum256([]byte(bytes))
		binary.Write(want, binary.LittleEndian, uint64(len(name)))
		want.Write([]byte(name))
		want.Write(sum[:])
	}
	add("a/words", "string [2]\n\x01\x00\x00\x00\x00\x00\x00\x00a\x00\x00\x00\x00\x00\x00\x00\x00")
	add("b", "float32 [2,1]\n"+string(elements))
	add("step", "int64 []\n\x00\x00\x00\x00\x00\x00\x00\x00")
	if got, want := total(t, prefix), fmt.Sprintf("%x", want.Sum(nil)); got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}

// No form that a checkpoint can have changes its hash.
func TestForms(t *testing.T) {
	for _, name := range []string{"ckpt_v2/partitioned/model.ckpt", "ckpt_v2/strings/model.ckpt", "ckpt_v2/object_based/ckpt-3", "ckpt_v2/damaged/ok_big_endian/model.ckpt", "ckpt_v1/sliced/model.ckpt", "torch/state.pt"} {
		from := filepath.Join(fixtures, name)
		want := total(t, from)
		forms := map[string]*rewrite.Options{"v2": nil, "shards": {Shards: 3}, "v1": {V1: true}, "x.npz": nil}
		if name == "torch/state.pt" || name == "ckpt_v1/sliced/model.ckpt" {
			forms["x.safetensors"] = nil
		}
		for form, o := range forms {
			s, err := rewrite.Open(from)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join(t.TempDir(), form)
			if err := errors.Join(rewrite.Write(t.Context(), s, to, o), s.Close()); errors.Is(err, ckptfmt.ErrType) {
				continue // V1 has fewer types
			} else if err != nil {
				t.Fatal(err)
			}
			if got := total(t, to); got != want {
				t.Errorf("%s as %s: hash %s, want %s", name, form, got, want)
			}
		}
	}
	if a, b := total(t, fixtures+"/torch/state.pt"), total(t, fixtures+"/torch/state.npz"); a != b {
		t.Errorf("a state dict of torch has hash %s, its arrays %s", a, b)
	}
}

// Damage has no hash and names its tensor; the others have theirs.
func TestDamage(t *testing.T) {
	r, err := ckptfmt.Open(fixtures+"/ckpt_v2/damaged/data_flip/model.ckpt", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	bad, good := 0, 0
	for x, err := range Tensors(t.Context(), r, nil) {
		var corrupt *ckptfmt.CorruptError
		switch {
		case err == nil:
			good++
		case x.Info.Name != "" && errors.As(err, &corrupt):
			bad++
		default:
			t.Fatal(err)
		}
	}
	if bad == 0 || good == 0 {
		t.Errorf("%d damaged, %d intact", bad, good)
	}
}

// The end of the context, and of the iteration, end the workers.
func TestEnds(t *testing.T) {
	r, err := ckptfmt.Open(fixtures+"/ckpt_v2/dtypes/model.ckpt", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range Tensors(t.Context(), r, nil) {
		break
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var last error
	for _, err := range Tensors(ctx, r, nil) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("after the end of the context: %v", last)
	}
}
