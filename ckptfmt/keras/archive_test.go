package keras_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/hdf5"
	"github.com/trainerd/trainerd/ckptfmt/keras"
)

func TestMetadata(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"model.keras":      {"keras_version": "3.15.1", "date_saved": "2026-11-22@18:07:18"},
		"model.h5":         {"keras_version": "3.15.1", "backend": "tensorflow"},
		"model.weights.h5": {},
	} {
		name := filepath.Join(fixtures, file)
		r, err := keras.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Metadata()); diff != "" || !slices.Equal(r.Files(), []string{name}) {
			t.Errorf("%s: files %q, %s", file, r.Files(), diff)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
	}
	numbers := archive(t, zip.Store, map[string][]byte{
		"metadata.json": []byte(`{"keras_version": 3, "date_saved": "today"}`), "config.json": []byte("{}"), "model.weights.h5": file(t, nil, nil),
	})
	r, err := keras.NewReader(bytes.NewReader(numbers), int64(len(numbers)), "x")
	if err != nil || !cmp.Equal(r.Metadata(), map[string]string{"date_saved": "today"}) {
		t.Errorf("a version that is a number: %v, %v", r.Metadata(), err)
	}
}

// file is an HDF5 file.
func file(t *testing.T, parts []ckptfmt.Part, attrs hdf5.Attrs) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := hdf5.Write(t.Context(), &b, parts, attrs); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// found verifies all of an archive, and returns the errors after the names they came with.
func found(t *testing.T, ctx context.Context, b []byte) map[string]error {
	t.Helper()
	r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "x.keras")
	if err != nil {
		t.Fatal(err)
	}
	return maps.Collect(r.Verify(ctx))
}

// A member that opening does not read is verified, too, and hinders no tensor.
func TestDamagedAssets(t *testing.T) {
	const words = "one\ntwo\n"
	b := archive(t, zip.Store, map[string][]byte{
		"config.json": []byte("{}"), "assets/words.txt": []byte(words), "model.weights.h5": file(t, []ckptfmt.Part{scalar(t, "layers/dense/vars/0", 1)}, nil),
	})
	if diff := cmp.Diff(map[string]error{"dense/kernel": nil}, found(t, t.Context(), b)); diff != "" {
		t.Error(diff)
	}
	b[bytes.Index(b, []byte(words))] ^= 1
	errs := found(t, t.Context(), b)
	if err, ok := errs["dense/kernel"]; !ok || err != nil || len(errs) != 2 || errs[""] == nil || !strings.Contains(errs[""].Error(), `member "assets/words.txt"`) {
		t.Errorf("the errors are %v", errs)
	}
	r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "x.keras")
	if err != nil {
		t.Fatal(err)
	}
	for range r.Verify(t.Context()) { // which ends when nothing more is wanted
		break
	}
}

// doneAfter is a context that ends when it is asked for the nth time.
type doneAfter struct {
	context.Context
	left int
}

func (d *doneAfter) Err() error {
	if d.left--; d.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestVerifyEnds(t *testing.T) {
	b := archive(t, zip.Store, map[string][]byte{
		"config.json": []byte("{}"), "model.weights.h5": file(t, []ckptfmt.Part{scalar(t, "layers/dense/vars/0", 1)}, nil),
	})
	for n := range 3 {
		if errs := found(t, &doneAfter{t.Context(), n}, b); !errors.Is(errs[""], context.Canceled) {
			t.Errorf("ended after %d questions: %v", n, errs)
		}
	}
}

// Weights without a tensor have no one who reads them, but for the check of the member.
func TestDamagedWeightsWithoutTensors(t *testing.T) {
	weights := file(t, nil, nil)
	whole := archive(t, zip.Store, map[string][]byte{"config.json": []byte("{}"), "model.weights.h5": weights})
	if errs := found(t, t.Context(), whole); len(errs) != 0 {
		t.Fatalf("the errors are %v", errs)
	}
	start := bytes.Index(whole, weights)
	opened := 0
	for at := start; at < start+len(weights); at++ {
		b := slices.Clone(whole)
		b[at] ^= 1
		if r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "x"); err != nil || r.List().Len() > 0 {
			continue
		}
		opened++
		if errs := found(t, t.Context(), b); errs[""] == nil {
			t.Errorf("byte %d was flipped, and nothing is wrong", at-start)
		}
	}
	if opened == 0 {
		t.Error("no flipped byte was left to find")
	}
}

// Tensors that Keras has not arranged are verified before they are read, as all are.
func TestPlainWeightsInAnArchive(t *testing.T) {
	b := archive(t, zip.Store, map[string][]byte{"config.json": []byte("{}"), "model.weights.h5": file(t, []ckptfmt.Part{scalar(t, "w", 7)}, nil)})
	b[bytes.LastIndex(b, []byte("\x00\x00\xe0\x40"))] ^= 1
	r, err := keras.NewReader(bytes.NewReader(b), int64(len(b)), "x")
	if err != nil {
		t.Fatal(err)
	}
	if r.Layout() != keras.Plain || len(r.Parts()) != 1 {
		t.Fatalf("layout %d, %d tensors", r.Layout(), len(r.Parts()))
	}
	if _, err := r.Parts()[0].Load(); !errors.Is(err, zip.ErrChecksum) {
		t.Errorf("a flipped byte: %v", err)
	}
}

// Weights whose sizes in the archive contradict each other, or the file, are not weights.
func TestSizesOfStoredWeights(t *testing.T) {
	weights := file(t, []ckptfmt.Part{scalar(t, "layers/dense/vars/0", 1)}, nil)
	n := uint64(len(weights))
	const name = "model.weights.h5"
	const rest = 46 + uint64(len(name)) + 22 // the directory, and its end
	for _, c := range []struct {
		about            string
		stored, original uint64
		want             string
	}{
		{"right ones", n, n, ""},
		{"two sizes", n, n - 1, "it has"},
		{"all of the rest", n + rest, n + rest, ""},
		{"more than that", n + rest + 1, n + rest + 1, "it has"},
		{"just more than a part of it", n - 100, n - 100, "superblock"},
		{"more than a number", math.MaxUint64 - 7, math.MaxUint64 - 7, "it has"},
	} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Store, CompressedSize64: c.stored, UncompressedSize64: c.original})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(weights); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = keras.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "x")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.about, err)
		}
	}
}

// failing is a writer that takes so many bytes.
type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// An error of the writer comes back, wherever it happens.
func TestWritersThatFail(t *testing.T) {
	like := openModel(t)
	shards, err := keras.Split(like.Parts(), like, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	for about, write := range map[string]func(w io.Writer) error{
		"weights": func(w io.Writer) error { return keras.WriteWeights(t.Context(), w, like.Parts(), like, false) },
		"a model": func(w io.Writer) error { return keras.WriteModel(t.Context(), w, like.Parts(), like) },
		"a shard": func(w io.Writer) error { return shards.Write(t.Context(), w, 0) },
	} {
		var whole bytes.Buffer
		if err := write(&whole); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 5000, whole.Len() / 2, whole.Len() - 5000, whole.Len() - 1} {
			if err := write(&failing{n}); !errors.Is(err, errFull) {
				t.Errorf("%s: full after %d of %d bytes: %v", about, n, whole.Len(), err)
			}
		}
	}
}

// sharded writes files of weights with an index, and opens it.
func sharded(t *testing.T, index string, files map[string][]byte) (*keras.Reader, error) {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(dir, "m.weights.json")
	if err := os.WriteFile(name, []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	return keras.OpenSharded(name)
}

// The name of a layer, and some of its variables, may be in another file than the first ones.
func TestGroupInTwoShards(t *testing.T) {
	const index = `{"metadata": {}, "weight_map": {"/layers/dense/vars": ["a.h5", "b.h5"], "/layers/gone/vars": "c.h5"}}`
	files := map[string][]byte{
		"a.h5": file(t, []ckptfmt.Part{scalar(t, "layers/dense/vars/0", 1)}, nil),
		"b.h5": file(t, []ckptfmt.Part{scalar(t, "layers/dense/vars/1", 2)}, hdf5.Attrs{"layers/dense/vars": {"name": "head"}}),
	}
	r, err := sharded(t, index, files)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]error)
	for _, p := range r.Parts() {
		names[p.Name] = p.Err
	}
	if len(names) != 3 || !errors.Is(names["layers/gone/vars"], fs.ErrNotExist) || names["head/kernel"] != nil || names["head/bias"] != nil {
		t.Errorf("there are %v", names)
	}
	if at, ok := r.List().(interface{ Stored(string) (int, bool) }).Stored("layers/dense/vars/1"); !ok || r.List().Name(at) != "head/bias" {
		t.Errorf("the path of a variable is that of %d, %v", at, ok)
	}
	second := r.Parts()[1]
	if x, err := second.Load(); err != nil || x.Data[3] != 0x40 {
		t.Errorf("%s: %v", second.Name, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := second.Load(); err == nil {
		t.Error("a file is still open")
	}
	delete(files, "b.h5")
	files["c.h5"] = files["a.h5"][:60]
	for from, want := range map[string]string{"a.h5": "index: a.h5 lacks what it has in the index", "c.h5": "c.h5: offset "} {
		r, err := sharded(t, strings.Replace(index, "c.h5", from, 1), files)
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]error)
		for _, p := range r.Parts() {
			names[p.Name] = p.Err
		}
		if err := names["layers/gone/vars"]; err == nil || !strings.Contains(err.Error(), want) || names["head/kernel"] != nil {
			t.Errorf("a group that is in none of its files: %v", names)
		}
		r.Close()
	}
}

// How many variables a layer has, and so their names, is known when all files are.
func TestVariablesInTwoShards(t *testing.T) {
	const bn, dense = "layers/batch_normalization/vars", "layers/dense/vars"
	r, err := sharded(t, `{"metadata": {}, "weight_map": {"/`+bn+`": ["a.h5", "b.h5"], "/`+dense+`": "a.h5"}}`, map[string][]byte{
		"a.h5": file(t, []ckptfmt.Part{scalar(t, bn+"/0", 1), scalar(t, dense+"/0", 1)}, nil),
		"b.h5": file(t, []ckptfmt.Part{scalar(t, bn+"/1", 1), scalar(t, bn+"/2", 1), scalar(t, bn+"/3", 1)}, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[string]string{dense + "/0": "dense/kernel"}
	for i, name := range []string{"gamma", "beta", "moving_mean", "moving_variance"} {
		want[bn+"/"+string(rune('0'+i))] = "batch_normalization/" + name
	}
	if names, _ := namesAt(r); !maps.Equal(names, want) {
		t.Error(cmp.Diff(want, names))
	}
}

// Datasets that Keras has not arranged are all there, too.
func TestPlainShards(t *testing.T) {
	r, err := sharded(t, `{"metadata": {}, "weight_map": {"/": ["a.h5", "b.h5"]}}`, map[string][]byte{
		"a.h5": file(t, []ckptfmt.Part{scalar(t, "x", 1)}, nil), "b.h5": file(t, []ckptfmt.Part{scalar(t, "y", 2)}, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := r.List().Len(); n != 2 {
		t.Errorf("there are %d tensors", n)
	}
}

// Files have as many bytes as may be in each, in the order of the model, and names for what they
// have alone.
func TestSplit(t *testing.T) {
	attrs := hdf5.Attrs{"layers/dense/vars": {"name": "z"}, "layers/dense_1/vars": {"name": "y"}, "layers/dense_2/vars": {"name": "x"}}
	paths := []string{"layers/dense/vars/0", "layers/dense_1/vars/0", "layers/dense_2/vars/0"}
	var parts []ckptfmt.Part
	for i, path := range paths {
		parts = append(parts, scalar(t, path, float32(i)))
	}
	like := weightsFile(t, parts, attrs)
	slices.Reverse(parts)
	for size, want := range map[int64][]string{
		0: {"z y x"}, 1: {"z", "y", "x"}, 4: {"z", "y", "x"}, 7: {"z", "y", "x"}, 8: {"z y", "x"}, 11: {"z y", "x"}, 12: {"z y x"}, math.MaxInt64: {"z y x"},
	} {
		shards, err := keras.Split(slices.Clone(parts), like, false, size)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range shards.Len() {
			var b bytes.Buffer
			if err := shards.Write(t.Context(), &b, i); err != nil {
				t.Fatal(err)
			}
			r, err := hdf5.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "shard")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range r.Len() {
				name, err := r.Attr(filepath.Dir(r.Name(i)), "name")
				if err != nil {
					t.Error(err)
				}
				names = append(names, name...)
			}
			if n := len(slices.Collect(r.Paths())); n != len(names) {
				t.Errorf("%d bytes: %d groups of file %d have names, %d have variables", size, n, i, len(names))
			}
			got = append(got, strings.Join(names, " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d bytes: %s", size, diff)
		}
		index, err := shards.Index(make([]string, shards.Len()))
		if err != nil || !strings.Contains(string(index), `"total_size": 12`) {
			t.Errorf("%s, %v", index, err)
		}
	}
	shards, err := keras.Split(slices.Clone(parts), nil, false, 4)
	if err != nil {
		t.Fatal(err)
	}
	index, err := shards.Index([]string{"a", "b", "c"})
	for _, line := range []string{`"/layers/dense/vars": "a"`, `"/layers/dense_1/vars": "b"`, `"/layers/dense_2/vars": "c"`} {
		if err != nil || !strings.Contains(string(index), line) {
			t.Errorf("no model: there is no %s in %s, %v", line, index, err)
		}
	}
}
