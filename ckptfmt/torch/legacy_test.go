package torch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/npz"
	"github.com/trainerd/trainerd/ckptfmt/torch"
	tfpb "github.com/trainerd/trainerd/proto"
)

func fixtureBytes(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../../fixtures/torch/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLegacyFileGivesTheTensorsThatTorchSaved(t *testing.T) {
	r, err := open(fixtureBytes(t, "legacy.pt"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Checks(), "no checksums"; !strings.Contains(got, want) {
		t.Errorf("checks are %q, want %q", got, want)
	}
	for key, want := range map[string]string{"epoch": "3", "big": "1208925819614629174706176"} {
		if got := r.Metadata()[key]; got != want {
			t.Errorf("metadata %s is %q, want %q", key, got, want)
		}
	}
	arrays, err := npz.Open("../../fixtures/torch/legacy.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer arrays.Close()
	got, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Parts()); n != len(arrays.Parts()) {
		t.Errorf("there are %d tensors, want %d", n, len(arrays.Parts()))
	}
	for _, p := range arrays.Parts() {
		want, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		have, err := got.Lookup(p.Name)
		if err != nil || !slices.Equal(have.Shape, want.Shape) || !bytes.Equal(have.Data, want.Data) {
			t.Errorf("%s is %v, %v, want %v", p.Name, have, err, want)
		}
	}
}

func TestCutLegacyFilesAreDamage(t *testing.T) {
	b := fixtureBytes(t, "legacy.pt")
	for n := 20; n < len(b); n++ { // before that nothing tells what it is
		var corrupt *ckptfmt.CorruptError
		if _, err := open(b[:n]); !errors.As(err, &corrupt) {
			t.Fatalf("cut at %d: the error is %v", n, err)
		}
	}
}

func TestGiantLegacyStorageIsDamage(t *testing.T) {
	b := fixtureBytes(t, "legacy.pt")
	count := binary.LittleEndian.AppendUint64(nil, 24) // elements of base
	for _, claim := range []uint64{25, 1 << 40, 1 << 63} {
		damaged := bytes.Replace(b, count, binary.LittleEndian.AppendUint64(nil, claim), 1)
		var corrupt *ckptfmt.CorruptError
		if _, err := open(damaged); !errors.As(err, &corrupt) || corrupt.Offset == 0 {
			t.Errorf("%d elements: the error is %v", claim, err)
		}
	}
}

func TestTensorsThatAreNoArraysHinderNoOther(t *testing.T) {
	r, err := open(fixtureBytes(t, "odd.pt"))
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{"sparse": "sparse", "quantised": "quantised", "conj": "conjugated", "meta": "device meta"}
	var intact []string
	for _, p := range r.Parts() {
		if words := refused[p.Name]; words != "" {
			if !errors.Is(p.Err, ckptfmt.ErrType) || !strings.Contains(p.Err.Error(), words) {
				t.Errorf("%s: the error is %v, want %q", p.Name, p.Err, words)
			}
			continue
		}
		if _, err := p.Load(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		intact = append(intact, p.Name)
	}
	if want := []string{"w", "numpy", "number", "default.x.0", "1.5", "None", "(1, a)", "a.b", "a.b#2"}; !slices.Equal(intact, want) {
		t.Errorf("tensors are %q, want %q", intact, want)
	}
	for key, want := range map[string]string{"args.lr": "0.5", "args.path": "a/b"} {
		if got := r.Metadata()[key]; got != want {
			t.Errorf("metadata %s is %q, want %q", key, got, want)
		}
	}
}

func TestNumPyArraysInAStateDict(t *testing.T) {
	r, err := open(fixtureBytes(t, "odd.pt"))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parts.Lookup("numpy")
	if err != nil || got.DType != tfpb.DataType_DT_FLOAT || !slices.Equal(got.Shape, []int64{2, 3}) || len(got.Data) != 24 || got.Data[22] != 0xa0 {
		t.Errorf("numpy is %v, %v, want 0 to 5", got, err)
	}
}

func TestFileWithoutChecksumsSaysSo(t *testing.T) {
	b := fixtureBytes(t, "unsummed.pt")
	r, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range r.Verify(context.Background()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, want := r.Checks(), "no checksums"; !strings.Contains(got, want) {
		t.Errorf("checks are %q, want %q", got, want)
	}
	for _, p := range r.Parts() {
		if got, err := p.Load(); err != nil || !bytes.Equal(got.Data, []byte("\x00\x00\x80\x3f\x00\x00\x80\x3f")) {
			t.Errorf("%s is %v, %v", p.Name, got, err)
		}
	}
}

func FuzzLegacy(f *testing.F) {
	f.Add(fixtureBytes(f, "legacy.pt"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if !torch.IsLegacy(b) {
			return
		}
		r, err := open(b)
		if err != nil {
			return
		}
		for _, p := range r.Parts() {
			if p.Err != nil { // a tensor that is not an array
				continue
			}
			if size, err := p.Size(); err != nil || size > 32<<20 {
				t.Fatalf("%s has %d bytes in a file of %d: %v", p.Name, size, len(b), err)
			}
			if _, err := p.Load(); err != nil && !errors.As(err, new(*ckptfmt.CorruptError)) {
				t.Fatal(err)
			}
		}
	})
}
