package rewrite_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	"github.com/trainerd/trainerd/ckptfmt/safetensors"
)

// scaled is a source with scales of a type that TensorFlow lacks.
func scaled(t *testing.T, scales string) *rewrite.Source {
	t.Helper()
	p := ckptfmt.WholePart("scale", 0, []int64{int64(len(scales))}, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(scales)), nil })
	p.Foreign, p.Bytes = "float8_e8m0fnu", int64(len(scales))
	x, err := ckptfmt.FromValues([]int64{1}, []float32{1})
	if err != nil {
		t.Fatal(err)
	}
	w := ckptfmt.WholePart("w", x.DType, x.Shape, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.Data)), nil })
	name := filepath.Join(t.TempDir(), "m.safetensors")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(safetensors.Write(t.Context(), f, []ckptfmt.Part{p, w}, nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := rewrite.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Scales that are the same in all sources stay; others have no mean.
func TestTypesThatAreNotCombined(t *testing.T) {
	e, err := rewrite.ParseExpression("a + b")
	if err != nil {
		t.Fatal(err)
	}
	for _, second := range []string{"\x7f\x80", "\x7f\x81"} {
		sources := []*rewrite.Source{scaled(t, "\x7f\x80"), scaled(t, second)}
		mean, err := rewrite.Average(sources, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := rewrite.Evaluate(e, sources, rewrite.FailMissing)
		if err != nil {
			t.Fatal(err)
		}
		for what, s := range map[string]*rewrite.Source{"mean": mean, "sum": sum} {
			to := filepath.Join(t.TempDir(), "to.safetensors")
			err := rewrite.Write(t.Context(), s, to, nil)
			if second != "\x7f\x80" {
				if !errors.Is(err, ckptfmt.ErrType) || !strings.Contains(err.Error(), `"scale" is of float8_e8m0fnu, whose elements are not combined`) {
					t.Errorf("%s of different scales: %v", what, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(to)
			if err != nil || !bytes.Contains(b, []byte("\x7f\x80")) {
				t.Errorf("%s of equal scales: %v, %q", what, err, b)
			}
		}
	}
}
