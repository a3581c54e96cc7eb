package ckptfmt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	tfpb "github.com/trainerd/trainerd/proto"
)

const v2Set = "ckpt_v2"

// Every bundle whose input is recorded comes out byte for byte.
func TestBundleGolden(t *testing.T) {
	n := 0
	for _, c := range readManifest(t, v2Set) {
		if c.Input.Op != "SaveV2" {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			dir := t.TempDir()
			save(t, filepath.Join(dir, "model.ckpt"), c.Input.Tensors)
			compareFiles(t, dir, v2Set, c)
		})
	}
	if n < 12 {
		t.Errorf("only %d cases", n)
	}
}

func TestMergeBundlesGolden(t *testing.T) {
	for _, c := range readManifest(t, v2Set) {
		if len(c.Input.Parts) == 0 {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			var expect struct {
				Dirs []string `json:"dirs_left"`
			}
			if err := json.Unmarshal(c.Expect, &expect); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var prefixes []string
			for _, p := range c.Input.Parts {
				prefix := filepath.Join(dir, "parts", filepath.Base(p.Prefix))
				save(t, prefix, p.Tensors)
				prefixes = append(prefixes, prefix)
			}
			keep := len(expect.Dirs) > 1
			err := MergeBundles(t.Context(), prefixes, filepath.Join(dir, "model.ckpt"), &MergeOptions{DeleteOldDirs: !keep})
			if err != nil {
				t.Fatal(err)
			}
			if keep {
				if left := list(t, filepath.Join(dir, "parts")); len(left) > 0 {
					t.Errorf("left in the old directory: %q", left)
				}
				os.Remove(filepath.Join(dir, "parts"))
			}
			compareFiles(t, dir, v2Set, c)
		})
	}
}

// A checkpoint that is read and written again in the order of its data is the
// same, no matter who wrote it: Savers, object-based checkpoints, variants.
func TestRewriteGolden(t *testing.T) {
	indexes, err := filepath.Glob(filepath.Join(fixtures, v2Set, "*", "*.index"))
	if err != nil || len(indexes) < 20 {
		t.Fatalf("%d bundles, %v", len(indexes), err)
	}
	for _, index := range indexes {
		from := strings.TrimSuffix(index, layout.IndexSuffix)
		t.Run(strings.TrimPrefix(from, fixtures+"/"), func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "copy")
			rewrite(t, from, to)
			for _, suffix := range suffixes(t, from) {
				got, err := os.ReadFile(to + suffix)
				if err != nil {
					t.Fatal(err)
				}
				want, err := os.ReadFile(from + suffix)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != string(want) {
					t.Errorf("%s: %d bytes differ from TensorFlow's %d", suffix, len(got), len(want))
				}
			}
		})
	}
}

// suffixes returns what the names of a bundle's files add to its prefix.
func suffixes(t *testing.T, prefix string) []string {
	files, err := filepath.Glob(prefix + ".data-*")
	if err != nil {
		t.Fatal(err)
	}
	out := []string{layout.IndexSuffix}
	for _, f := range files {
		out = append(out, strings.TrimPrefix(f, prefix))
	}
	return out
}

// rewrite copies a bundle tensor by tensor, each shard on its own, and merges
// the shards.
func rewrite(t *testing.T, from, to string) {
	r, err := OpenBundle(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	byShard := make([][]keyedEntry, r.NumShards())
	sliced := map[string]*bundleEntry{}
	for e, err := range r.entries(nil) {
		if err != nil {
			t.Fatal(err)
		}
		kept := *e
		kept.key = slices.Clone(e.key)
		if len(e.slices) > 0 {
			sliced[string(e.key)] = &kept.bundleEntry
			continue
		}
		byShard[e.shard] = append(byShard[e.shard], kept)
	}
	var parts []string
	for i, entries := range byShard {
		part := to
		if len(byShard) > 1 {
			part = filepath.Join(to+"_temp", layout.DataName("part", i, len(byShard)))
			parts = append(parts, part)
		}
		slices.SortStableFunc(entries, func(a, b keyedEntry) int { return cmp.Compare(a.offset, b.offset) })
		rewriteShard(t, r, part, entries, sliced)
	}
	if len(parts) > 0 {
		if err := MergeBundles(t.Context(), parts, to, &MergeOptions{DeleteOldDirs: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func rewriteShard(t *testing.T, r *BundleReader, prefix string, entries []keyedEntry, sliced map[string]*bundleEntry) {
	w, err := CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, e := range entries {
		v, err := r.read(string(e.key), &e.bundleEntry)
		if err != nil {
			t.Fatal(err)
		}
		if !isSliceKey(e.key) {
			err = w.Add(string(e.key), v)
		} else {
			name, s, perr := parseSliceKey(e.key)
			if perr != nil {
				t.Fatal(perr)
			}
			err = w.AddSlice(name, sliced[name].shape, s, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

// verdict is what TensorFlow's readers made of a checkpoint.
type verdict struct {
	Open    string
	Tensors map[string]json.RawMessage
	Restore map[string]json.RawMessage `json:"restore_v2"`
	Reader  *verdict
}

// errorOf maps the beginnings of TensorFlow's messages to our errors.
var errorOf = []struct {
	text string
	is   error
}{
	{"Checksum does not match", ErrChecksum},
	{"length checksum does not match", ErrChecksum},
	{"block checksum mismatch", ErrChecksum},
	{"Read less bytes than requested", io.ErrUnexpectedEOF},
	{"No such file or directory", fs.ErrNotExist},
	{"Failed to find any matching files", fs.ErrNotExist},
	{"too short to be an sstable", sstable.ErrTooShort},
	{"bad magic number", sstable.ErrMagic},
	{"min consumer version", ErrVersion},
	{"disallows consumer version", ErrVersion},
	{"", nil}, // any error that says where
}

// Damaged checkpoints are refused where TensorFlow refuses them, and for the
// same reason.
func TestDamagedGolden(t *testing.T) {
	n := 0
	for _, c := range readManifest(t, v2Set) {
		if !strings.HasPrefix(c.ID, "damaged/") {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			var v verdict
			if err := json.Unmarshal(c.Expect, &v); err != nil {
				t.Fatal(err)
			}
			if v.Reader != nil {
				v.Open, v.Tensors = v.Reader.Open, v.Reader.Tensors
			}
			checkVerdict(t, filepath.Join(fixtures, v2Set, c.ID, "model.ckpt"), c.ID, &v)
		})
	}
	if n < 38 {
		t.Errorf("only %d cases", n)
	}
}

func checkVerdict(t *testing.T, prefix, id string, v *verdict) {
	switch id {
	case "damaged/no_header":
		// TensorFlow takes the first tensor's entry for the header. We do not.
		v.Open = "there is none"
	case "damaged/entry_shard_1":
		// TensorFlow looks for a file of that number. We name the entry.
		for name, want := range v.Tensors {
			v.Tensors[name] = bytes.ReplaceAll(want, []byte("No such file or directory"), nil)
		}
		v.Restore = nil
	}
	r, err := OpenBundle(prefix, nil)
	switch {
	case v.Open != "ok" && v.Open != "":
		checkError(t, "open", err, v.Open)
		return
	case err != nil:
		t.Fatal(err)
	}
	defer r.Close()
	for name, want := range v.Tensors {
		got, err := r.Lookup(name)
		checkTensor(t, name, got, err, want)
	}
	for spec, want := range v.Restore {
		name, spec, _ := strings.Cut(spec, "|")
		if spec != "" {
			continue // of the slices' own test
		}
		got, err := r.Lookup(name)
		if err == nil && id == "damaged/entry_dtype_int32" && name == "dense/kernel" {
			continue // refused by RestoreV2, which asked for another type
		}
		checkTensor(t, name, got, err, want)
	}
}

func checkTensor(t *testing.T, name string, got *Tensor, err error, want json.RawMessage) {
	t.Helper()
	var message string
	if json.Unmarshal(want, &message) == nil {
		checkError(t, name, err, message)
		return
	}
	var w struct {
		Shape  []int64
		Sha256 string
		DType  tfpb.DataType
	}
	if jerr := json.Unmarshal(want, &w); jerr != nil {
		t.Fatal(jerr)
	}
	switch {
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case !slices.Equal(got.Shape, w.Shape) || tensorHash(got) != w.Sha256 || w.DType != 0 && got.DType != w.DType:
		t.Errorf("%s: %v %v %s, want %v %v %s", name, got.DType, got.Shape, tensorHash(got), w.DType, w.Shape, w.Sha256)
	}
}

func checkError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, TensorFlow says %q", name, want)
		return
	}
	for _, e := range errorOf {
		if !strings.Contains(want, e.text) {
			continue
		}
		if e.is != nil && !errors.Is(err, e.is) {
			t.Errorf("%s: %v is not %v, TensorFlow says %q", name, err, e.is, want)
		}
		break
	}
	var corrupt *CorruptError
	located := errors.As(err, &corrupt) && corrupt.Name != "" && corrupt.Part != ""
	if !located && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrVersion) {
		t.Errorf("%s: %v does not say where", name, err)
	}
}

// Whole tensors and parts of them come out of slices as RestoreV2 gives them.
func TestSlicesGolden(t *testing.T) {
	n := 0
	for _, c := range readManifest(t, v2Set) {
		var v verdict
		if json.Unmarshal(c.Expect, &v) != nil || strings.HasPrefix(c.ID, "damaged/") {
			continue
		}
		for spec, want := range v.Restore {
			n++
			r, err := OpenBundle(filepath.Join(fixtures, v2Set, c.ID, "model.ckpt"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			name, spec, _ := strings.Cut(spec, "|")
			_, slice, _, err := ParseShapeAndSlice(spec)
			if err != nil {
				t.Fatal(err)
			}
			var got *Tensor
			if spec == "" {
				got, err = r.Lookup(name)
			} else {
				got, err = r.LookupSlice(name, slice)
			}
			checkTensor(t, c.ID+" "+name+" "+spec, got, err, want)
		}
	}
	if n == 0 {
		t.Error("no cases")
	}
}
