package rewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

const fixtures = "../../fixtures/"

func open(t testing.TB, name string) *Source {
	t.Helper()
	s, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// save makes a checkpoint of tensors.
func save(t testing.TB, tensors ...ckptfmt.NamedTensor) string {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "m-1")
	w, err := ckptfmt.CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, n := range tensors {
		if err := w.Add(n.Name, n.Tensor); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return prefix
}

func tensor[T ckptfmt.Element](t testing.TB, name string, shape []int64, v ...T) ckptfmt.NamedTensor {
	t.Helper()
	x, err := ckptfmt.FromValues(shape, v)
	if err != nil {
		t.Fatal(err)
	}
	return ckptfmt.NamedTensor{Name: name, Tensor: x}
}

// values returns the numbers of a tensor.
func values(t testing.TB, prefix, name string) (d tfpb.DataType, v []float64) {
	t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := r.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := inspect.NumbersOf(x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n.Len() {
		v = append(v, n.At(i))
	}
	return x.DType, v
}

func partNames(t testing.TB, prefix string) string {
	t.Helper()
	var list []string
	for _, p := range open(t, prefix).Parts() {
		list = append(list, p.Name)
	}
	return strings.Join(list, " ")
}

// Every fixture goes through every form without losing a bit.
func TestCopies(t *testing.T) {
	for _, name := range []string{"ckpt_v2/dtypes", "ckpt_v2/partitioned", "ckpt_v2/strings", "ckpt_v2/scalars_empty", "ckpt_v2/merged", "ckpt_v2/damaged/ok_big_endian", "ckpt_v1/sliced", "ckpt_v1/dtypes"} {
		for form, o := range map[string]*Options{"one": nil, "three": {Shards: 3}, "many": {FS: atomicfile.NoSync(nil), Shards: 500}} {
			from, to := filepath.Join(fixtures, name, "model.ckpt"), filepath.Join(t.TempDir(), "copy")
			if err := Write(t.Context(), open(t, from), to, o); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
				continue
			}
			same(t, from, to)
			if _, err := os.Stat(to + "_temp"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, %s: a directory of shards is left: %v", name, form, err)
			}
		}
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	ra, err := ckptfmt.Open(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ra.Close()
	rb, err := ckptfmt.Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rb.Close()
	for d, err := range inspect.Diff(t.Context(), ra, rb, nil) {
		t.Errorf("%s and %s: %+v, %v", a, b, d, err)
	}
}

func TestV1(t *testing.T) {
	from, to := fixtures+"ckpt_v1/dtypes/model.ckpt", filepath.Join(t.TempDir(), "copy")
	if err := Write(t.Context(), open(t, from), to, &Options{V1: true}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy differs: %v", err)
	}
	err = Write(t.Context(), open(t, fixtures+"ckpt_v2/dtypes/model.ckpt"), to, &Options{V1: true})
	if !errors.Is(err, ckptfmt.ErrType) {
		t.Errorf("types that V1 lacks: %v", err)
	}
}

// What is damaged is not published, and leaves nothing behind.
func TestDamaged(t *testing.T) {
	for _, name := range []string{"copy", "copy.npz", "copy.safetensors"} {
		for _, shards := range []int{1, 3} {
			dir := t.TempDir()
			s := open(t, fixtures+"ckpt_v2/damaged/data_flip/model.ckpt")
			err := s.Keep(func(name string) bool { return !strings.Contains(name, "string") && !strings.Contains(name, "text") })
			if err != nil {
				t.Fatal(err)
			}
			if err := Write(t.Context(), s, filepath.Join(dir, name), &Options{Shards: shards}); err == nil {
				t.Errorf("%s: no error", name)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("%s in %d shards: left behind: %v, %v", name, shards, left, err)
			}
		}
	}
}

func TestKeepAndRename(t *testing.T) {
	prefix := save(t, tensor(t, "a/x", nil, int64(1)), tensor(t, "a/y", nil, int64(2)), tensor(t, "b", nil, int64(3)))
	s := open(t, prefix)
	if err := s.Keep(func(name string) bool { return name != "b" }); err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(func(name string) string { return strings.Replace(name, "a/", "c/", 1) }); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "m")
	if err := Write(t.Context(), s, to, nil); err != nil {
		t.Fatal(err)
	}
	if got := partNames(t, to); got != "c/x c/y" {
		t.Errorf("got %s", got)
	}
	if err := open(t, prefix).Keep(func(string) bool { return false }); !errors.Is(err, ckptfmt.ErrNotFound) {
		t.Errorf("nothing is left: %v", err)
	}
	if err := open(t, prefix).Rename(func(string) string { return "same" }); !errors.Is(err, ckptfmt.ErrExists) {
		t.Errorf("one name for all: %v", err)
	}
}

// The last element of a key of an object's value is TensorFlow's.
func TestRenameObjects(t *testing.T) {
	const prefix = fixtures + "ckpt_v2/object_based/ckpt-5"
	if err := open(t, prefix).Rename(func(name string) string { return name + "_old" }); err == nil || !strings.Contains(err.Error(), "ends in") {
		t.Errorf("got %v", err)
	}
	s := open(t, prefix)
	if err := s.Rename(func(name string) string { return "all/" + name }); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(func(name string) bool { return !strings.Contains(name, "extras/1") }); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "m")
	if err := Write(t.Context(), s, to, nil); err != nil {
		t.Fatal(err)
	}
	r, err := ckptfmt.Open(to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	root, err := inspect.Objects(r)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(o *inspect.Object) int
	walk = func(o *inspect.Object) int {
		n := 0
		for _, v := range o.Values {
			n++
			if _, err := r.Info(v.Key); err != nil {
				t.Errorf("the graph asks for %q: %v", v.Key, err)
			}
		}
		for _, c := range o.Children {
			n += walk(c)
		}
		return n
	}
	if n := walk(root); n != 7 {
		t.Errorf("the graph asks for %d values, want 7", n)
	}
	s = open(t, prefix)
	s.DropGraph()
	for _, p := range s.Parts() {
		if p.Name == ObjectGraph {
			t.Error("the graph is still there")
		}
	}
}

func TestDropSlots(t *testing.T) {
	one := func(name string) ckptfmt.NamedTensor { return tensor(t, name, nil, float32(1)) }
	prefix := save(t, one("w"), one("w/Adam"), one("w/Adam_1"), one("v/Adam"), one("a/w"), one("training/Adam/a/w/m"), one("a/w/m"),
		one("Adam/iter"), one("m/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE"))
	s := open(t, prefix)
	if err := s.DropSlots(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.Parts() {
		got = append(got, p.Name)
	}
	if d := cmp.Diff([]string{"w", "v/Adam", "a/w", "Adam/iter"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestCast(t *testing.T) {
	nan := math.NaN()
	in := []float64{0, math.Copysign(0, -1), 1, 1 + 1./2048, 1 + 3./2048, 65504, 65519.9, 65520, 1e39, -1e39, nan, math.Inf(1),
		math.Ldexp(1, -24), math.Ldexp(1, -25), math.Ldexp(3, -25), math.Ldexp(1, -126), 1 + 1./256, 1 + 3./256}
	for to, want := range map[tfpb.DataType][]float64{
		tfpb.DataType_DT_HALF: {0, math.Copysign(0, -1), 1, 1, 1 + 1./512, 65504, 65504, math.Inf(1), math.Inf(1), math.Inf(-1), nan, math.Inf(1),
			math.Ldexp(1, -24), 0, math.Ldexp(1, -23), 0, 1 + 1./256, 1 + 3./256},
		tfpb.DataType_DT_BFLOAT16: {0, math.Copysign(0, -1), 1, 1, 1, 65536, 65536, 65536, math.Inf(1), math.Inf(-1), nan, math.Inf(1),
			math.Ldexp(1, -24), math.Ldexp(1, -25), math.Ldexp(3, -25), math.Ldexp(1, -126), 1, 1 + 1./64},
		tfpb.DataType_DT_FLOAT: {0, math.Copysign(0, -1), 1, 1 + 1./2048, 1 + 3./2048, 65504, float64(float32(65519.9)), 65520, math.Inf(1), math.Inf(-1), nan, math.Inf(1),
			math.Ldexp(1, -24), math.Ldexp(1, -25), math.Ldexp(3, -25), math.Ldexp(1, -126), 1 + 1./256, 1 + 3./256},
	} {
		s := open(t, save(t, tensor(t, "x", []int64{int64(len(in))}, in...), tensor(t, "i", nil, int64(7))))
		if err := s.Cast(to); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "m")
		if err := Write(t.Context(), s, out, nil); err != nil {
			t.Fatal(err)
		}
		d, got := values(t, out, "x")
		if d != to {
			t.Errorf("got %v, want %v", d, to)
		}
		for i := range want {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
				t.Errorf("%v: %v became %v, want %v", to, in[i], got[i], want[i])
			}
		}
		if d, v := values(t, out, "i"); d != tfpb.DataType_DT_INT64 || v[0] != 7 {
			t.Errorf("the integer became %v %v", d, v)
		}
	}
	s := open(t, save(t, tensor(t, "x", nil, 1.5)))
	if err := s.Cast(tfpb.DataType_DT_INT32); !errors.Is(err, ckptfmt.ErrType) {
		t.Errorf("to int32: %v", err)
	}
}

func TestAverage(t *testing.T) {
	e5m2 := func(codes ...byte) ckptfmt.NamedTensor {
		return ckptfmt.NamedTensor{Name: "f8", Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT8_E5M2, Shape: []int64{int64(len(codes))}, Data: codes}}
	}
	var sources []*Source
	for i := range 3 {
		v := float64(i)
		sources = append(sources, open(t, save(t,
			tensor(t, "d", []int64{4}, v, 0.1, math.MaxFloat64, math.Inf(1)), tensor(t, "c", nil, complex64(complex(v, -v))),
			tensor(t, "step", nil, int64(10*i)), tensor(t, "s", nil, fmt.Sprint(i)), tensor(t, "none", []int64{0}, []float32{}...),
			e5m2(0x3c, []byte{0x3c, 0x3d, 0x40}[i], 0x7c, 0x7f)))) // 1; 1, 1.25, 2; infinity; NaN
	}
	mean, err := Average(sources, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "m")
	if err := Write(t.Context(), mean, to, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"d": "[1 0.1 1.7976931348623157e+308 +Inf]", "c": "[1 -1]", "step": "[20]", "none": "[]",
		"f8": "[1 1.5 +Inf NaN]", // 4.25/3 lies between 1.25 and 1.5
	} {
		if _, v := values(t, to, name); fmt.Sprint(v) != want {
			t.Errorf("%s: got %v, want %s", name, v, want)
		}
	}
	if _, err := Average(nil, nil); err == nil {
		t.Error("nothing has an average")
	}
	if _, err := Average([]*Source{sources[0], open(t, save(t, tensor(t, "z", nil, 1.5)))}, nil); !errors.Is(err, ckptfmt.ErrNotFound) {
		t.Errorf("other tensors: %v", err)
	}
	wide, other := open(t, save(t, tensor(t, "d", nil, float32(1.5)))), open(t, save(t, tensor(t, "d", nil, 1.5)))
	if _, err := Average([]*Source{wide, other}, nil); err == nil || !strings.Contains(err.Error(), "float32 [] in") {
		t.Errorf("other types: %v", err)
	}
}

func TestUseAverages(t *testing.T) {
	f := func(name string, v float32) ckptfmt.NamedTensor { return tensor(t, name, nil, v) }
	prefix := save(t, f("w", 1), f("w/ExponentialMovingAverage", 2), f("w/ExponentialMovingAverage/biased", 3), f("only/ExponentialMovingAverage", 4), f("b", 5))
	for keep, want := range map[bool]string{
		false: "b only w",
		true:  "b only only/ExponentialMovingAverage w w/ExponentialMovingAverage w/ExponentialMovingAverage/biased",
	} {
		s := open(t, prefix)
		if n, err := s.UseAverages(AverageName, keep); n != 2 || err != nil {
			t.Fatalf("%d averages, %v", n, err)
		}
		to := filepath.Join(t.TempDir(), "m")
		if err := Write(t.Context(), s, to, nil); err != nil {
			t.Fatal(err)
		}
		r, err := ckptfmt.Open(to, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got []string
		for info, err := range r.Tensors() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if _, v := values(t, to, "w"); v[0] != 2 {
			t.Errorf("w is %v", v)
		}
	}
	if _, err := open(t, prefix).UseAverages("other", false); !errors.Is(err, ckptfmt.ErrNotFound) {
		t.Errorf("no averages: %v", err)
	}
	s := open(t, save(t, f("w", 1), tensor(t, "w/ExponentialMovingAverage", nil, 1.5)))
	if _, err := s.UseAverages(AverageName, false); err == nil {
		t.Error("an average of another type was taken")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"m", "m.npz", "m.safetensors"} {
		if _, err := Open(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := filepath.Join(dir, "bad.safetensors")
	text := `{"__metadata__":{"` + ObjectGraph + `":"?"}}`
	if err := os.WriteFile(bad, append([]byte{byte(len(text)), 0, 0, 0, 0, 0, 0, 0}, text...), 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *ckptfmt.CorruptError
	if _, err := Open(bad); !errors.As(err, &damage) {
		t.Errorf("no base64: %v", err)
	}
}

// The end of a context ends the writing within a tensor.
func TestCancel(t *testing.T) {
	for _, name := range []string{"m", "m.npz", "m.safetensors"} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &Source{parts: []ckptfmt.Part{ckptfmt.WholePart("x", tfpb.DataType_DT_INT8, []int64{1 << 40}, func() (io.ReadCloser, error) {
			return io.NopCloser(reader(func(b []byte) (int, error) {
				cancel()
				return len(b), nil
			})), nil
		})}}
		dir := t.TempDir()
		if err := Write(ctx, s, filepath.Join(dir, name), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

// endless gives zeros, and notes how large the heap grows meanwhile.
type endless struct {
	left int64
	peak *uint64
	n    int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), e.left))
	clear(b[:n])
	e.left -= int64(n)
	if e.n++; e.n%64 == 0 {
		runtime.GC() // what is garbage does not matter: a busy machine collects it late
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		*e.peak = max(*e.peak, m.HeapAlloc)
	}
	return n, nil
}

func (*endless) Close() error { return nil }

// Tensors several times as large as the heap may be are rewritten.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a hundred megabytes")
	}
	const limit, size = 8 << 20, 40 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	var peak uint64
	big := func() ckptfmt.Part {
		return ckptfmt.WholePart("big", tfpb.DataType_DT_FLOAT, []int64{size / 4}, func() (io.ReadCloser, error) {
			return &endless{left: size, peak: &peak}, nil
		})
	}
	dir := t.TempDir()
	o := &Options{FS: atomicfile.NoSync(nil)}
	for _, name := range []string{"m", "m.npz", "m.safetensors"} {
		s := &Source{parts: []ckptfmt.Part{big()}}
		if err := s.Cast(tfpb.DataType_DT_BFLOAT16); err != nil {
			t.Fatal(err)
		}
		if err := Write(t.Context(), s, filepath.Join(dir, name), o); err != nil {
			t.Fatal(err)
		}
		mean, err := Average([]*Source{open(t, filepath.Join(dir, name)), open(t, filepath.Join(dir, name))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(t.Context(), mean, filepath.Join(dir, "mean"), o); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{name, layout.DataName(filepath.Join(dir, name), 0, 1)} {
			os.Remove(filepath.Join(dir, filepath.Base(file)))
		}
	}
	if peak > limit {
		t.Errorf("the heap grew to %d MiB, more than %d", peak>>20, limit>>20)
	}
}
