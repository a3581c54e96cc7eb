package keras_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

// TestShardsHoldTheSame writes weights in several files, and reads them again.
func TestShardsHoldTheSame(t *testing.T) {
	like := openModel(t)
	parts := slices.Clone(like.Parts())
	slices.Reverse(parts) // places do not depend on the order
	for _, size := range []int64{0, 1, 100, 1 << 30} {
		shards, err := keras.Split(parts, like, false, size)
		if err != nil {
			t.Fatal(err)
		}
		if n := shards.Len(); (n > 1) != (size == 1 || size == 100) {
			t.Errorf("%d bytes in each: %d files", size, n)
		}
		dir := t.TempDir()
		files := make([]string, shards.Len())
		for i := range files {
			files[i] = fmt.Sprintf("m_%05d.weights.h5", i)
			var b bytes.Buffer
			if err := shards.Write(context.Background(), &b, i); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, files[i]), b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		index, err := shards.Index(files)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "m.weights.json")
		if err := os.WriteFile(name, index, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := keras.OpenSharded(name)
		if err != nil {
			t.Fatalf("%d bytes in each: %v", size, err)
		}
		defer r.Close()
		if n := len(r.Files()); n != len(files)+1 {
			t.Errorf("%d bytes in each: Files has %d names, want the index and %d", size, n, len(files))
		}
		sameParts(t, r, parts)
	}
}

// sameParts compares what is open with what it should hold, by paths.
func sameParts(t *testing.T, r *keras.Reader, want []ckptfmt.Part) {
	t.Helper()
	got, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Parts()) != len(want) {
		t.Errorf("there are %d tensors, want %d", len(r.Parts()), len(want))
	}
	for _, p := range want {
		a, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		b, err := got.Lookup(p.Stored)
		if err != nil || a.DType != b.DType || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s: %v, or another tensor", p.Name, err)
		}
	}
}

// TestTensorsFindTheirPlaces gives tensors other names than the file has.
func TestTensorsFindTheirPlaces(t *testing.T) {
	like := openModel(t)
	rename := func(change func(p *ckptfmt.Part)) []ckptfmt.Part {
		parts := slices.Clone(like.Parts())
		for i := range parts {
			change(&parts[i])
		}
		return parts
	}
	for name, parts := range map[string][]ckptfmt.Part{
		"names":   rename(func(p *ckptfmt.Part) { p.Stored = "" }),
		"paths":   rename(func(p *ckptfmt.Part) { p.Name, p.Stored = p.Stored, "" }),
		"numbers": rename(func(p *ckptfmt.Part) { p.Name, p.Stored = filepath.Dir(p.Name)+"/"+filepath.Base(p.Stored), "" }),
		"within another model": rename(func(p *ckptfmt.Part) {
			if p.Stored = ""; !strings.HasPrefix(p.Name, "optimizer/") {
				p.Name = "outer/" + p.Name
			}
		}),
	} {
		var b bytes.Buffer
		if err := keras.WriteWeights(context.Background(), &b, parts, like, false); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, b.Bytes(), like.Parts())
	}
}
