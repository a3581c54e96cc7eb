package keras_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

func openModel(t *testing.T) *keras.Reader {
	t.Helper()
	r, err := keras.Open(filepath.Join(fixtures, "model.keras"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// same compares what a file holds with what it should.
func same(t *testing.T, b []byte, want []ckptfmt.Part) {
	t.Helper()
	r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "written")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ckptfmt.NewPartsReader(r.Parts(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Parts()) != len(want) {
		t.Errorf("%d tensors were written, want %d", len(r.Parts()), len(want))
	}
	for _, p := range want {
		a, err := p.Load()
		if err != nil {
			t.Fatal(err)
		}
		b, err := got.Lookup(p.Stored)
		if err != nil || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
			t.Errorf("%s: %v, or another tensor", p.Name, err)
		}
	}
}

func TestWrittenFilesHoldTheSame(t *testing.T) {
	like := openModel(t)
	parts := like.Parts()
	var model, weights, bare bytes.Buffer
	if err := keras.WriteModel(context.Background(), &model, parts, like); err != nil {
		t.Fatal(err)
	}
	same(t, model.Bytes(), parts)
	if err := keras.WriteWeights(context.Background(), &weights, parts, nil, false); err != nil {
		t.Fatal(err)
	}
	same(t, weights.Bytes(), parts)
	rest := slices.DeleteFunc(slices.Clone(parts), func(p ckptfmt.Part) bool { return strings.HasPrefix(p.Name, "optimizer/") })
	if err := keras.WriteWeights(context.Background(), &bare, rest, like, false); err != nil {
		t.Fatal(err)
	}
	same(t, bare.Bytes(), rest)
}

func TestTensorsThatAreNotTheModelAreRefused(t *testing.T) {
	like := openModel(t)
	parts := like.Parts()
	renamed, reshaped := slices.Clone(parts), slices.Clone(parts)
	renamed[0].Name, renamed[0].Stored = "other", ""
	reshaped[0].Shape = []int64{77}
	for name, list := range map[string][]ckptfmt.Part{"missing": parts[1:], "renamed": renamed, "another shape": reshaped} {
		if err := keras.WriteModel(context.Background(), &bytes.Buffer{}, list, like); !errors.Is(err, keras.ErrModel) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if err := keras.WriteModel(context.Background(), &bytes.Buffer{}, parts, nil); !errors.Is(err, keras.ErrModel) {
		t.Errorf("no configuration: the error is %v", err)
	}
	if err := keras.WriteWeights(context.Background(), &bytes.Buffer{}, renamed, nil, false); !errors.Is(err, keras.ErrModel) {
		t.Errorf("no path: the error is %v", err)
	}
}
