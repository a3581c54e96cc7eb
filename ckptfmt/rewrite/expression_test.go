package rewrite

import (
	"encoding/binary"
	"errors"
	"math"
	"math/cmplx"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

func TestExpressions(t *testing.T) {
	for text, want := range map[string]float64{
		"a": 6, "a - b": 4, "a-b-c": 1, "a - (b - c)": 7, "a/b/c": 1, "a+b*c": 12, "(a+b)*c": 24, "-a": -6, "- -a": 6, "a*-b": -12, "+a": 6,
		"2e0*a": 12, "1.5e+1 - a": 9, ".5*a": 3, "a+a": 12, " b\t": 2, "a*(1-1e-1)": 5.4, "a+b-2*(c+1)": 0, "a_1": 6,
	} {
		e, err := ParseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var operands []float64
		for _, name := range e.Names {
			operands = append(operands, map[string]float64{"a": 6, "b": 2, "c": 3, "a_1": 6}[name])
		}
		if got := compile(e.root, func(n float64) float64 { return n })(operands); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "ends where", "1+2": "names no checkpoint", "a+": "ends where", "a b": "unexpected 'b' at character 3", "(a": "ends where", "a)": "unexpected ')'",
		"a**b": "unexpected '*'", "1e999*a": "is not a number", "1.2.3*a": "is not a number", "a%b": "unexpected '%'", strings.Repeat("(", 5000): "at most",
	} {
		if _, err := ParseExpression(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

func evaluated(t *testing.T, text string, lacking MissingPolicy, prefixes ...string) (string, error) {
	t.Helper()
	e, err := ParseExpression(text)
	if err != nil {
		t.Fatal(err)
	}
	var sources []*Source
	for _, p := range prefixes {
		sources = append(sources, open(t, p))
	}
	s, err := Evaluate(e, sources, lacking)
	if err != nil {
		return "", err
	}
	to := filepath.Join(t.TempDir(), "result")
	return to, Write(t.Context(), s, to, nil)
}

func TestEvaluate(t *testing.T) {
	n := int64(pieceElements + 5) // more than a piece
	a, b := make([]float64, n), make([]float64, n)
	var want []float64
	for i := range a {
		a[i], b[i] = float64(i), float64(i%3)
		want = append(want, a[i]-2*b[i])
	}
	left := save(t, tensor(t, "x", []int64{n}, a...), tensor(t, "only/a", nil, 7.0), ckptfmt.NamedTensor{Name: "step", Tensor: ckptfmt.Scalar(int64(9))})
	right := save(t, tensor(t, "x", []int64{n}, b...), tensor(t, "only/b", nil, 5.0), ckptfmt.NamedTensor{Name: "step", Tensor: ckptfmt.Scalar(int64(4))})
	var differ *DifferError
	if _, err := evaluated(t, "a - 2*b", FailMissing, left, right); !errors.As(err, &differ) || !slices.Equal(differ.Names, []string{"only/a", "only/b"}) {
		t.Errorf("tensors of one alone: %v", err)
	}
	skipped, err := evaluated(t, "a - 2*b", SkipMissing, left, right)
	if err != nil {
		t.Fatal(err)
	}
	if got := partNames(t, skipped); got != "step x" && got != "x step" {
		t.Errorf("left are %s", got)
	}
	if _, got := values(t, skipped, "x"); !slices.Equal(got, want) {
		t.Errorf("x begins with %v, want %v", got[:5], want[:5])
	}
	if _, step := values(t, skipped, "step"); step[0] != 9 {
		t.Errorf("step %v; want that of the first", step)
	}
	zero, err := evaluated(t, "a - 2*b", ZeroMissing, left, right)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"only/a": 7, "only/b": -10} {
		if _, got := values(t, zero, name); got[0] != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	other := save(t, tensor(t, "x", []int64{1, n}, a...), tensor(t, "only/a", nil, 7.0), ckptfmt.NamedTensor{Name: "step", Tensor: ckptfmt.Scalar(int64(9))})
	if _, err := evaluated(t, "a + b", FailMissing, left, other); err == nil || !strings.Contains(err.Error(), "in another") {
		t.Errorf("other shapes: %v", err)
	}
	sliced := filepath.Join(fixtures, "ckpt_v2/partitioned/model.ckpt")
	if _, err := evaluated(t, "a - a", FailMissing, sliced); err != nil {
		t.Errorf("slices: %v", err)
	}
}

// TestEvaluateComplex computes as NumPy does: of "a*b/c - 2*a", not part by part.
func TestEvaluateComplex(t *testing.T) {
	x, y, z := []complex128{1 + 2i, -3i, 0.5}, []complex128{2 - 1i, 1 + 1i, -4i}, []complex128{3i, 2, 1 - 1i}
	want := []complex128{-1 - 5.333333333333333i, 1.5 + 4.5i, -1i}
	for _, d := range []tfpb.DataType{tfpb.DataType_DT_COMPLEX128, tfpb.DataType_DT_COMPLEX64} {
		var prefixes []string
		for _, v := range [][]complex128{x, y, z} {
			prefixes = append(prefixes, save(t, complexTensor("x", d, v)))
		}
		prefixes[1] = save(t, complexTensor("x", tfpb.DataType_DT_COMPLEX128, y)) // types may differ
		to, err := evaluated(t, "a*b/c - 2*a", FailMissing, prefixes...)
		if err != nil {
			t.Fatal(err)
		}
		kind, got := values(t, to, "x")
		if kind != d || len(got) != 2*len(want) {
			t.Fatalf("the result is %d numbers for %v", len(got), kind)
		}
		for i, v := range want {
			if got := complex(got[2*i], got[2*i+1]); cmplx.Abs(got-v) > 1e-6 {
				t.Errorf("%v: element %d is %v, want %v", d, i, got, v)
			}
		}
	}
	other := save(t, tensor(t, "x", []int64{3}, 1.0, 2, 3))
	if _, err := evaluated(t, "a + b", FailMissing, save(t, complexTensor("x", tfpb.DataType_DT_COMPLEX64, x)), other); err == nil || !strings.Contains(err.Error(), "in another") {
		t.Errorf("complex and real numbers: %v", err)
	}
}

func complexTensor(name string, d tfpb.DataType, v []complex128) ckptfmt.NamedTensor {
	out := &ckptfmt.Tensor{DType: d, Shape: []int64{int64(len(v))}}
	for _, c := range v {
		if d == tfpb.DataType_DT_COMPLEX64 {
			out.Data, _ = binary.Append(out.Data, binary.LittleEndian, complex64(c))
		} else {
			out.Data, _ = binary.Append(out.Data, binary.LittleEndian, c)
		}
	}
	return ckptfmt.NamedTensor{Name: name, Tensor: out}
}

func TestWeights(t *testing.T) {
	sources := []*Source{open(t, save(t, tensor(t, "x", []int64{2}, 1, math.Inf(1)))), open(t, save(t, tensor(t, "x", []int64{2}, 5.0, 3)))}
	for _, c := range []struct{ weights, want []float64 }{{[]float64{0, 2}, []float64{5, 3}}, {[]float64{3, 1}, []float64{2, math.Inf(1)}}} {
		mean, err := Average(sources, c.weights)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "mean")
		if err := Write(t.Context(), mean, to, nil); err != nil {
			t.Fatal(err)
		}
		if _, got := values(t, to, "x"); !slices.Equal(got, c.want) {
			t.Errorf("weights %v make %v, want %v", c.weights, got, c.want)
		}
	}
	for _, bad := range [][]float64{{1}, {1, -1}, {math.NaN(), 1}} {
		if _, err := Average(sources, bad); err == nil {
			t.Errorf("weights %v were taken", bad)
		}
	}
}
