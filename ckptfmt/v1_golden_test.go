package ckptfmt

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/dtype"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/membound"
	tfpb "github.com/trainerd/trainerd/proto"
)

const v1Set = "ckpt_v1"

func saveV1(t testing.TB, name string, tensors []goldenTensor) {
	t.Helper()
	w, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	addGolden(t, w, tensors)
}

func TestV1Golden(t *testing.T) {
	n := 0
	for _, c := range readManifest(t, v1Set) {
		if c.Input.Op != "SaveSlices" {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			dir := t.TempDir()
			saveV1(t, filepath.Join(dir, "model.ckpt"), c.Input.Tensors)
			compareFiles(t, dir, v1Set, c)
		})
	}
	if n < 8 {
		t.Errorf("only %d cases", n)
	}
}

// Whatever TensorFlow wrote comes out again byte for byte, one shard at a time.
func TestV1RewriteGolden(t *testing.T) {
	n := 0
	for _, c := range readManifest(t, v1Set) {
		for name := range c.Files {
			if base := filepath.Base(name); strings.HasPrefix(c.ID, "damaged/") || base == "checkpoint" || strings.HasSuffix(base, ".meta") {
				continue
			}
			want, err := os.ReadFile(filepath.Join(fixtures, v1Set, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // too large to keep
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
			to := filepath.Join(t.TempDir(), "copy")
			rewriteV1(t, filepath.Join(fixtures, v1Set, name), to)
			got, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s: %d bytes differ from TensorFlow's %d", name, len(got), len(want))
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d files", n)
	}
}

func rewriteV1(t *testing.T, from, to string) {
	r, err := OpenV1(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := CreateV1(to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, meta := range r.tensors {
		for _, s := range meta.slices {
			v, err := r.LookupSlice(name, s.TensorSlice)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.AddSlice(name, meta.shape, s.TensorSlice, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

func TestV1ShardsTogether(t *testing.T) {
	r, err := Open(filepath.Join(fixtures, v1Set, "saver_sharded", "model.ckpt-3-?????-of-00002"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for info, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	if got := strings.Join(names, " "); got != "b k s" {
		t.Errorf("tensors %q", got)
	}
}

func TestV1DamagedGolden(t *testing.T) {
	for _, c := range readManifest(t, v1Set) {
		if !strings.HasPrefix(c.ID, "damaged/") {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			var v verdict
			if err := json.Unmarshal(c.Expect, &v); err != nil {
				t.Fatal(err)
			}
			r, err := OpenV1(filepath.Join(fixtures, v1Set, c.ID+".ckpt"))
			if v.Open != "ok" {
				checkError(t, "open", err, v.Open)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for name, want := range v.Tensors {
				got, err := r.Lookup(name)
				checkTensor(t, name, got, err, want)
			}
		})
	}
}

func TestV1SlicesGolden(t *testing.T) {
	for _, c := range readManifest(t, v1Set) {
		var expect struct {
			Slices map[string]json.RawMessage `json:"restore_slice"`
		}
		if err := json.Unmarshal(c.Expect, &expect); err != nil {
			t.Fatal(err)
		}
		for spec, want := range expect.Slices {
			r, err := OpenV1(filepath.Join(fixtures, v1Set, c.ID, "model.ckpt"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			name, spec, _ := strings.Cut(spec, "|")
			_, slice, _, err := ParseShapeAndSlice(spec)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.LookupSlice(name, slice)
			checkTensor(t, c.ID+" "+name+" "+spec, got, err, want)
		}
	}
}

func TestV1Refuses(t *testing.T) {
	w, err := CreateV1(filepath.Join(t.TempDir(), "model.ckpt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	vec := func(d tfpb.DataType, n int64) *Tensor {
		return &Tensor{DType: d, Shape: []int64{n}, Data: make([]byte, n*dtype.Size(d))}
	}
	ok := vec(tfpb.DataType_DT_FLOAT, 2)
	if err := w.AddSlice("a", []int64{4}, TensorSlice{[]int64{0}, []int64{2}}, ok); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		tensor string
		full   []int64
		start  int64
		t      *Tensor
		want   error
	}{
		{"bfloat16", "b", []int64{2}, 0, vec(tfpb.DataType_DT_BFLOAT16, 2), ErrType},
		{"uint64", "b", []int64{2}, 0, vec(tfpb.DataType_DT_UINT64, 2), ErrType},
		{"the same slice again", "a", []int64{4}, 0, ok, ErrExists},
		{"another full shape", "a", []int64{5}, 2, ok, ErrSlices},
		{"another type", "a", []int64{4}, 2, vec(tfpb.DataType_DT_DOUBLE, 2), ErrSlices},
		{"slice past the end", "a", []int64{4}, 3, ok, ErrSlices},
	} {
		err := w.AddSlice(tc.tensor, tc.full, TensorSlice{[]int64{tc.start}, []int64{2}}, tc.t)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
	if err := w.Finish(); err != nil {
		t.Errorf("the writer is no longer good: %v", err)
	}
}

func TestV1MissingShardIsNotFound(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none-?????-of-00002"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	var corrupt *CorruptError
	name := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(name, nil); !errors.As(err, &corrupt) || !errors.Is(err, sstable.ErrTooShort) {
		t.Errorf("error %v", err)
	}
}

// FuzzV1 reads tables whose list of tensors and slice are anything.
func FuzzV1(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(fixtures, v1Set, "*", "model.ckpt*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		r, err := OpenV1(name)
		if err != nil {
			f.Fatal(err)
		}
		meta, err := r.files[0].table.Get([]byte(headerKey))
		if err != nil {
			f.Fatal(err)
		}
		for e, err := range r.files[0].table.From([]byte{0}) {
			if err == nil && len(e.Value) < 1000 {
				f.Add(meta, slices.Clone(e.Key), slices.Clone(e.Value))
			}
		}
		r.Close()
	}
	f.Fuzz(func(t *testing.T, meta, key, value []byte) {
		defer membound.Check(t, len(meta)+len(key)+len(value), 256)()
		if len(key) == 0 {
			return
		}
		name := filepath.Join(t.TempDir(), "v1")
		writeTable(t, name, map[string][]byte{headerKey: meta, string(key): value})
		r, err := OpenV1(name)
		if err != nil {
			return
		}
		defer r.Close()
		checkTensors(t, r)
	})
}
