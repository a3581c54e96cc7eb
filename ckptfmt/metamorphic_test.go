package ckptfmt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/rewrite"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/dtype"
	tfpb "github.com/trainerd/trainerd/proto"
)

// history is a checkpoint that is rewritten in one way after the other. The
// tensors in it stay what they are.
type history struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	n       int
	tensors map[string]*ckptfmt.Tensor
	done    []string // what was done
}

// randomTensors returns a tensor of each type that is stored, of random shapes.
func randomTensors(rng *rand.Rand, ok func(tfpb.DataType) bool) map[string]*ckptfmt.Tensor {
	tensors := map[string]*ckptfmt.Tensor{}
	for v := range tfpb.DataType_name {
		d := tfpb.DataType(v)
		if !ok(d) || dtype.Size(d) == 0 && d != tfpb.DataType_DT_STRING {
			continue
		}
		shape := make([]int64, rng.IntN(4))
		for i := range shape {
			shape[i] = rng.Int64N(5)
		}
		n, err := dtype.NumElements(shape)
		if err != nil {
			panic(err) // small dimensions
		}
		t := &ckptfmt.Tensor{DType: d, Shape: shape}
		if d == tfpb.DataType_DT_STRING {
			t.Strings = [][]byte{}
			for range n {
				t.Strings = append(t.Strings, bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(300)))
			}
		} else {
			t.Data = ckptfmt.Splitmix64(rng.Uint64(), int(n*dtype.Size(d)))[:n*dtype.Size(d)]
		}
		if d == tfpb.DataType_DT_BOOL {
			for i := range t.Data {
				t.Data[i] &= 1
			}
		}
		tensors[fmt.Sprintf("layer_%d/%s", rng.IntN(3), dtype.Name(d))] = t
	}
	return tensors
}

// next returns a new prefix and the one before it.
func (h *history) next() (from, to string) {
	h.n++
	return filepath.Join(h.dir, fmt.Sprint("m-", h.n-1)), filepath.Join(h.dir, fmt.Sprint("m-", h.n))
}

// steps are the ways to rewrite a checkpoint.
var steps = map[string]func(h *history, from, to string) error{
	"copy": func(_ *history, from, to string) error {
		return copyCheckpoint(context.Background(), from, to, copyOptions{})
	},
	"spread": func(h *history, from, to string) error {
		return copyCheckpoint(context.Background(), from, to, copyOptions{Options: rewrite.Options{Shards: 1 + h.rng.IntN(5)}})
	},
	"move": func(_ *history, from, to string) error { return ckptdir.Move(from, to) },
	"rename": func(_ *history, from, to string) error {
		there := func(n string) string { return "x/" + n }
		back := func(n string) string { return strings.TrimPrefix(n, "x/") }
		return errors.Join(
			copyCheckpoint(context.Background(), from, to+"-x", copyOptions{Rename: there}),
			copyCheckpoint(context.Background(), to+"-x", to, copyOptions{Rename: back}))
	},
	"split and merge": (*history).splitAndMerge,
	"stream":          (*history).stream,
	"slice":           (*history).slice,
	"old format": func(_ *history, from, to string) error {
		return errors.Join(
			copyCheckpoint(context.Background(), from, to+"-v1", copyOptions{Options: rewrite.Options{V1: true}}),
			copyCheckpoint(context.Background(), to+"-v1", to, copyOptions{}))
	},
}

func (h *history) splitAndMerge(from, to string) error {
	var parts []string
	for i := range 3 {
		part := fmt.Sprint(to, "_temp/part-", i)
		mine := func(name string) bool { return len(name)%3 == i }
		err := copyCheckpoint(context.Background(), from, part, copyOptions{Keep: mine})
		if errors.Is(err, ckptfmt.ErrNotFound) {
			continue // none has such a name
		}
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	h.rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return ckptfmt.MergeBundles(context.Background(), parts, to, &ckptfmt.MergeOptions{DeleteOldDirs: true})
}

// stream moves elements through readers and writers, in any order of names.
func (h *history) stream(from, to string) (err error) {
	r, err := ckptfmt.Open(from, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w, err := ckptfmt.CreateBundle(to, &ckptfmt.BundleWriterOptions{Alignment: 1 << h.rng.IntN(7), Snappy: h.rng.IntN(2) == 0, NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for name := range h.tensors {
		s, err := r.OpenTensor(name)
		if errors.Is(err, ckptfmt.ErrType) {
			t, err := r.Lookup(name)
			if err := errors.Join(err, w.Add(name, t)); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if err := w.AddFrom(name, s.Info.DType, s.Info.Shape, s); err != nil {
			return err
		}
	}
	return w.Finish()
}

// slice stores each tensor in two slices, cut at random.
func (h *history) slice(from, to string) (err error) {
	r, err := ckptfmt.Open(from, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	w, err := ckptfmt.CreateBundle(to, &ckptfmt.BundleWriterOptions{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for name, t := range h.tensors {
		for _, s := range h.cuts(t.Shape) {
			part, err := r.LookupSlice(name, s)
			if err == nil {
				err = w.AddSlice(name, t.Shape, s, part)
			}
			if err != nil {
				return fmt.Errorf("%q %s: %w", name, s, err)
			}
		}
	}
	return w.Finish()
}

// cuts returns slices that make up a shape.
func (h *history) cuts(shape []int64) []ckptfmt.TensorSlice {
	whole := ckptfmt.FullSlice(len(shape))
	n, err := dtype.NumElements(shape)
	i := slices.IndexFunc(shape, func(d int64) bool { return d > 1 })
	if err != nil || n == 0 || i < 0 {
		return []ckptfmt.TensorSlice{whole}
	}
	a, b := ckptfmt.FullSlice(len(shape)), ckptfmt.FullSlice(len(shape))
	a.Length[i] = 1 + h.rng.Int64N(shape[i]-1)
	b.Start[i], b.Length[i] = a.Length[i], shape[i]-a.Length[i]
	return []ckptfmt.TensorSlice{b, a}
}

// check compares all that can be read with what there should be.
func (h *history) check(prefix string) {
	h.t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	if err != nil {
		h.t.Fatal(h.done, err)
	}
	defer r.Close()
	n := 0
	for info, err := range r.Tensors() {
		n++
		want := h.tensors[info.Name]
		if err != nil || want == nil {
			h.t.Fatal(h.done, info, err)
		}
		got, err := r.Lookup(info.Name)
		if err != nil || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || ckptfmt.TensorHash(got) != ckptfmt.TensorHash(want) {
			h.t.Errorf("after %q: %q differs, %v", h.done, info.Name, err)
		}
	}
	if n != len(h.tensors) {
		h.t.Errorf("after %q: %d tensors of %d", h.done, n, len(h.tensors))
	}
	for name, err := range r.Verify(h.t.Context()) {
		if err != nil {
			h.t.Errorf("after %q: %s: %v", h.done, name, err)
		}
	}
}

// However a checkpoint is rewritten, its tensors stay the same.
func TestRewritesMetamorphic(t *testing.T) {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range steps {
			if !yield(name) {
				return
			}
		}
	})
	for seed := range uint64(4) {
		v1 := seed%2 == 0 // only types that the old format has
		h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 9)), dir: t.TempDir()}
		h.tensors = randomTensors(h.rng, func(d tfpb.DataType) bool { return !v1 || ckptfmt.MaxV1Bytes[d] > 0 })
		_, to := h.next()
		w, err := ckptfmt.CreateBundle(to, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, tensor := range h.tensors {
			if err := w.Add(name, tensor); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Finish(), w.Close()); err != nil {
			t.Fatal(err)
		}
		for range 9 {
			step := names[h.rng.IntN(len(names))]
			if step == "old format" && !v1 {
				continue
			}
			h.done = append(h.done, step)
			from, to := h.next()
			if err := steps[step](h, from, to); err != nil {
				t.Fatalf("seed %d: %q: %v", seed, h.done, err)
			}
			h.check(to)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}
