package inspect_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

func TestDiffWithTolerance(t *testing.T) {
	open := func(name string, values []float64) ckptfmt.Reader {
		prefix := filepath.Join(t.TempDir(), name)
		w, err := ckptfmt.CreateBundle(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		tensor, err := ckptfmt.FromValues([]int64{int64(len(values))}, values)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add("x", tensor); err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		r, err := ckptfmt.Open(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	a := open("a", []float64{1, 100, 0, math.NaN(), math.NaN(), 1, math.Inf(1)})
	b := open("b", []float64{1.5, 101, 0, math.NaN(), 1, math.Inf(1), math.Inf(1)})
	for _, c := range []struct {
		within inspect.DiffOptions
		want   int64 // NaN and infinity always differ from numbers
	}{
		{inspect.DiffOptions{}, 4},
		{inspect.DiffOptions{Abs: 0.5}, 3},
		{inspect.DiffOptions{Rel: 0.01}, 3},
		{inspect.DiffOptions{Abs: 1}, 2},
		{inspect.DiffOptions{Abs: 0.25, Rel: 0.2}, 2},
		{inspect.DiffOptions{Abs: math.Inf(1)}, 2},
	} {
		got := int64(0)
		for d, err := range inspect.Diff(context.Background(), a, b, &c.within) {
			if err != nil {
				t.Fatal(err)
			}
			got = d.Elements
		}
		if got != c.want {
			t.Errorf("%+v: %d elements differ, want %d", c.within, got, c.want)
		}
	}
}

func TestDiffStatistics(t *testing.T) {
	open := func(values []float32) ckptfmt.Reader {
		x, err := ckptfmt.FromValues([]int64{int64(len(values))}, values)
		if err != nil {
			t.Fatal(err)
		}
		part := ckptfmt.WholePart("x", x.DType, x.Shape, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.Data)), nil })
		r, err := ckptfmt.NewPartsReader([]ckptfmt.Part{part}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const n = 100_000 // several pieces
	a, b := make([]float32, n), make([]float32, n)
	dot, aa, bb, sum := 0.0, 0.0, 0.0, 0.0
	for i := range a {
		a[i], b[i] = float32(i%7), float32(i%7)
		if i%1000 == 3 {
			b[i] -= float32(i) / 1000
		}
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
		sum += math.Abs(float64(a[i]) - float64(b[i]))
	}
	for d, err := range inspect.Diff(context.Background(), open(a), open(b), &inspect.DiffOptions{Cosine: true}) {
		if err != nil {
			t.Fatal(err)
		}
		cosine := dot / math.Sqrt(aa*bb)
		if d.Elements != n/1000 || d.MaxAt != 99_003 || d.MaxA != float64(a[99_003]) || d.MaxB != float64(b[99_003]) {
			t.Errorf("%d elements, the largest at %d: %v, %v", d.Elements, d.MaxAt, d.MaxA, d.MaxB)
		}
		if math.Abs(d.MeanAbs-sum/n) > 1e-12 || math.Abs(d.Cosine-cosine) > 1e-12 {
			t.Errorf("mean %v, want %v; cosine %v, want %v", d.MeanAbs, sum/n, d.Cosine, cosine)
		}
	}
}
