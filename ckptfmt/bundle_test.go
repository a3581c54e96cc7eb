package ckptfmt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

func newBundle(t *testing.T, o *BundleWriterOptions) (*BundleWriter, string) {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	w, err := CreateBundle(prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, prefix
}

// saveSmall writes a checkpoint of a few kinds of tensors.
func saveSmall(t testing.TB, prefix string) {
	t.Helper()
	w, err := CreateBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	strs, err := FromValues([]int64{3}, []string{"", "ab", strings.Repeat("c", 200)})
	if err != nil {
		t.Fatal(err)
	}
	part, err := FromValues([]int64{2}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		w.Add("global_step", Scalar(int64(7))),
		w.Add("strings", strs),
		w.AddSlice("part", []int64{4}, TensorSlice{[]int64{0}, []int64{2}}, part),
		w.AddSlice("part", []int64{4}, TensorSlice{[]int64{2}, []int64{2}}, part),
		w.Finish(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestBundleWriterRefuses(t *testing.T) {
	w, prefix := newBundle(t, nil)
	good := Scalar(float32(1))
	if err := w.Add("a", good); err != nil {
		t.Fatal(err)
	}
	whole := TensorSlice{[]int64{0}, []int64{1}}
	for _, tc := range []struct {
		name string
		err  error
		want error
	}{
		{"empty name", w.Add("", good), nil},
		{"name that begins like a slice key", w.Add("\x00a", good), nil},
		{"the same name again", w.Add("a", good), ErrExists},
		{"slices of a whole tensor", w.AddSlice("a", []int64{2}, whole, &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{1}, Data: make([]byte, 4)}), ErrExists},
		{"resource", w.Add("b", &Tensor{DType: tfpb.DataType_DT_RESOURCE}), ErrType},
		{"too few bytes", w.Add("b", &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 4)}), nil},
		{"bytes in a tensor of strings", w.Add("b", &Tensor{DType: tfpb.DataType_DT_STRING, Data: []byte("a"), Strings: [][]byte{{}}}), nil},
		{"negative dimension", w.Add("b", &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{-1}}), nil},
		{"slice outside", w.AddSlice("b", []int64{2}, TensorSlice{[]int64{2}, []int64{1}}, good), ErrSlices},
		{"slice of another shape", w.AddSlice("b", []int64{2}, whole, good), ErrSlices},
	} {
		if tc.err == nil || tc.want != nil && !errors.Is(tc.err, tc.want) {
			t.Errorf("%s: error %v, want %v", tc.name, tc.err, tc.want)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if names := tensorNames(t, prefix); !slices.Equal(names, []string{"a"}) {
		t.Errorf("tensors %q", names)
	}
}

func tensorNames(t *testing.T, prefix string) []string {
	t.Helper()
	r, err := Open(prefix, nil)
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
	return names
}

func TestBundleNotFinishedLeavesNothing(t *testing.T) {
	w, prefix := newBundle(t, nil)
	if err := w.Add("a", Scalar(float32(1))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if files := list(t, filepath.Dir(prefix)); len(files) > 0 {
		t.Errorf("files %q", files)
	}
	if err := w.Finish(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Finish after Close = %v", err)
	}
}

func TestBundleAlignment(t *testing.T) {
	w, prefix := newBundle(t, &BundleWriterOptions{Alignment: 64})
	for i := range 3 {
		if err := w.Add(fmt.Sprint(i), Scalar(uint8(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for info, err := range r.Tensors() {
		if err != nil || info.Offset%64 != 0 {
			t.Errorf("%s at %d, %v", info.Name, info.Offset, err)
		}
	}
	for name, err := range r.Verify(t.Context()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBundleMissingDirectory(t *testing.T) {
	dir := t.TempDir()
	saveSmall(t, filepath.Join(dir, "new", "model.ckpt"))
	if _, err := CreateBundle(filepath.Join(dir, "no", "such", "model.ckpt"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
}

func TestLookupUnknown(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	saveSmall(t, prefix)
	r, err := OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, name := range []string{"", "nothing", "zzz"} {
		if _, err := r.Lookup(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("Lookup(%q): %v", name, err)
		}
		if _, err := r.Info(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("Info(%q): %v", name, err)
		}
	}
	if _, err := r.LookupSlice("part", TensorSlice{[]int64{3}, []int64{2}}); !errors.Is(err, ErrSlices) {
		t.Errorf("slice past the end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range r.Verify(ctx) {
		if name != "" || !errors.Is(err, context.Canceled) {
			t.Errorf("Verify after cancel: %q, %v", name, err)
		}
	}
}

// damageSweep damages each byte of a checkpoint's file in turn and checks that
// the damage is found, except where no checksum covers it.
func damageSweep(t *testing.T, suffix string, damage func(b []byte, i int) []byte, uncovered func(size, i int) bool) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "model.ckpt")
	saveSmall(t, prefix)
	good, err := os.ReadFile(prefix + suffix)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if err := os.WriteFile(prefix+suffix, damage(slices.Clone(good), i), 0o666); err != nil {
			t.Fatal(err)
		}
		err := verifyAll(t, prefix)
		var corrupt *CorruptError
		located := errors.As(err, &corrupt) && corrupt.Name != "" && corrupt.Part != ""
		if !located && !uncovered(len(good), i) {
			t.Errorf("%s damaged at %d: error %v does not say where", suffix, i, err)
		}
	}
}

func verifyAll(t *testing.T, prefix string) error {
	r, err := Open(prefix, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, err := range r.Verify(t.Context()) {
		if err != nil {
			return err
		}
	}
	return nil
}

func flip(b []byte, i int) []byte {
	b[i] ^= 1 << (i % 8)
	return b
}

func truncate(b []byte, i int) []byte { return b[:i] }

func TestDamageSweeps(t *testing.T) {
	const footer, metaindex, index = 48, 8 + 5, 8 + 5 // sizes with trailers, at the least
	nowhere := func(int, int) bool { return false }
	t.Run("index cut", func(t *testing.T) { damageSweep(t, layout.IndexSuffix, truncate, nowhere) })
	t.Run("data cut", func(t *testing.T) { damageSweep(t, ".data-00000-of-00001", truncate, nowhere) })
	t.Run("data flipped", func(t *testing.T) { damageSweep(t, ".data-00000-of-00001", flip, nowhere) })
	t.Run("index flipped", func(t *testing.T) {
		damageSweep(t, layout.IndexSuffix, flip, func(size, i int) bool {
			// The metaindex is never read; the footer's handles have no
			// checksum, and bits of them that matter lead to a wrong block.
			inFooter := i >= size-footer && i < size-8
			inMetaindex := i >= size-footer-index-metaindex-10 && i < size-footer-index
			return inFooter || inMetaindex
		})
	})
}

func parseBundleEntry(b []byte) (e bundleEntry, err error) {
	err = e.parse(b, nil)
	return e, err
}

// Our coding of entries is protobuf's.
func TestBundleEntryIsProto(t *testing.T) {
	for _, p := range []*tfpb.BundleEntryProto{
		{Dtype: tfpb.DataType_DT_FLOAT, Shape: shapeProto([]int64{2, 3}), Size: 24, Crc32C: 0xb4a61612},
		{Dtype: tfpb.DataType_DT_INT64, Shape: shapeProto(nil), ShardId: 3, Offset: 1 << 40, Size: 8, Crc32C: 1},
		{Dtype: tfpb.DataType_DT_FLOAT, Shape: shapeProto([]int64{0}), Offset: 13, Crc32C: 0xa282ead8},
		{Dtype: tfpb.DataType_DT_HALF, Shape: shapeProto([]int64{8, 300}), Slices: []*tfpb.TensorSliceProto{
			TensorSlice{[]int64{0, 0}, []int64{3, full}}.proto(), TensorSlice{[]int64{3, 0}, []int64{5, full}}.proto(),
		}},
	} {
		want := tfproto.Marshal(p)
		e, err := parseBundleEntry(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.append(nil); !bytes.Equal(got, want) {
			t.Errorf("got  %x\nwant %x", got, want)
		}
		if diff := cmp.Diff([]any{p.Dtype, p.ShardId, p.Offset, p.Size, p.Crc32C}, []any{e.dtype, e.shard, e.offset, e.size, e.crc}); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHostileEntries(t *testing.T) {
	ok := func() *tfpb.BundleEntryProto {
		return &tfpb.BundleEntryProto{Dtype: tfpb.DataType_DT_FLOAT, Shape: shapeProto([]int64{2}), Size: 8}
	}
	for name, change := range map[string]func(*tfpb.BundleEntryProto){
		"negative dimension":      func(p *tfpb.BundleEntryProto) { p.Shape = shapeProto([]int64{-2}) },
		"overflowing shape":       func(p *tfpb.BundleEntryProto) { p.Shape = shapeProto([]int64{1 << 40, 1 << 40}) },
		"size that overflows":     func(p *tfpb.BundleEntryProto) { p.Shape, p.Size = shapeProto([]int64{1 << 62}), 0 },
		"wrong size":              func(p *tfpb.BundleEntryProto) { p.Size = 9 },
		"negative size":           func(p *tfpb.BundleEntryProto) { p.Size = -8 },
		"negative offset":         func(p *tfpb.BundleEntryProto) { p.Offset = -1 },
		"offset that overflows":   func(p *tfpb.BundleEntryProto) { p.Offset = 1<<63 - 1 },
		"negative shard":          func(p *tfpb.BundleEntryProto) { p.ShardId = -1 },
		"unknown rank":            func(p *tfpb.BundleEntryProto) { p.Shape.UnknownRank = true },
		"no type":                 func(p *tfpb.BundleEntryProto) { p.Dtype = 0 },
		"unknown type":            func(p *tfpb.BundleEntryProto) { p.Dtype = 99 },
		"more strings than bytes": func(p *tfpb.BundleEntryProto) { p.Dtype, p.Size = tfpb.DataType_DT_STRING, 1 },
		"rank 300":                func(p *tfpb.BundleEntryProto) { p.Shape, p.Size = shapeProto(slices.Repeat([]int64{1}, 300)), 4 },
		"slice of another rank": func(p *tfpb.BundleEntryProto) {
			p.Slices = []*tfpb.TensorSliceProto{TensorSlice{[]int64{0, 0}, []int64{1, 1}}.proto()}
		},
		"slice past the end": func(p *tfpb.BundleEntryProto) {
			p.Slices = []*tfpb.TensorSliceProto{TensorSlice{[]int64{2}, []int64{1}}.proto()}
		},
		"slice with a negative start": func(p *tfpb.BundleEntryProto) {
			p.Slices = []*tfpb.TensorSliceProto{TensorSlice{[]int64{-1}, []int64{1}}.proto()}
		},
		"slice whose end overflows": func(p *tfpb.BundleEntryProto) {
			p.Slices = []*tfpb.TensorSliceProto{TensorSlice{[]int64{1}, []int64{1<<63 - 1}}.proto()}
		},
	} {
		p := ok()
		change(p)
		if e, err := parseBundleEntry(tfproto.Marshal(p)); err == nil {
			t.Errorf("%s: accepted as %+v", name, e)
		}
	}
	if _, err := parseBundleEntry(tfproto.Marshal(ok())); err != nil {
		t.Error(err)
	}
}

// A claim of a huge tensor costs no memory: the file does not have the bytes.
func TestHugeClaim(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	entry := &tfpb.BundleEntryProto{Dtype: tfpb.DataType_DT_FLOAT, Shape: shapeProto([]int64{1 << 58}), Size: 1 << 60}
	writeIndexFile(t, prefix, map[string][]byte{"": tfproto.Marshal(newHeader(1)), "x": tfproto.Marshal(entry)})
	if err := os.WriteFile(layout.DataName(prefix, 0, 1), []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := OpenBundle(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var corrupt *CorruptError
	if _, err := r.Lookup("x"); !errors.As(err, &corrupt) {
		t.Errorf("error %v", err)
	}
}

func writeIndexFile(t *testing.T, prefix string, entries map[string][]byte) {
	t.Helper()
	writeTable(t, layout.IndexName(prefix), entries)
}

func writeTable(t *testing.T, name string, entries map[string][]byte) {
	t.Helper()
	if err := os.WriteFile(name, tableOf(t, entries), 0o666); err != nil {
		t.Fatal(err)
	}
}

func tableOf(t *testing.T, entries map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := sstable.NewWriter(&b, nil)
	keys := make([]string, 0, len(entries))
	for k := range entries {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if err := w.Add([]byte(k), entries[k]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMergeBundlesRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(saveShard(nil, at("a"), "w", 1), saveShard(nil, at("b"), "w", 2), saveShard(nil, at("c"), "v", 3)); err != nil {
		t.Fatal(err)
	}
	before := list(t, dir)
	if err := MergeBundles(t.Context(), []string{at("a"), at("b")}, at("m"), nil); !errors.Is(err, ErrExists) {
		t.Errorf("the same name twice: %v", err)
	}
	if err := MergeBundles(t.Context(), []string{at("a"), at("none")}, at("m"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing input: %v", err)
	}
	if err := MergeBundles(t.Context(), nil, at("m"), nil); err == nil {
		t.Error("no input: no error")
	}
	if after := list(t, dir); !slices.Equal(before, after) {
		t.Errorf("files %q became %q", before, after)
	}
	if err := MergeBundles(t.Context(), []string{at("a"), at("none"), at("c")}, at("m"), &MergeOptions{AllowMissing: true}); err != nil {
		t.Fatal(err)
	}
	if names := tensorNames(t, at("m")); len(names) != 4 {
		t.Errorf("tensors %q", names)
	}
}

func FuzzBundleIndex(f *testing.F) {
	indexes, err := filepath.Glob(filepath.Join(fixtures, v2Set, "*", "*.index"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range indexes {
		r, err := OpenBundle(strings.TrimSuffix(name, layout.IndexSuffix), nil)
		if err != nil {
			f.Fatal(err)
		}
		for raw, err := range r.table.All() {
			if err == nil && len(raw.Key) < 100 {
				f.Add(slices.Clone(raw.Key), slices.Clone(raw.Value))
			}
		}
		r.Close()
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		defer membound.Check(t, len(key)+len(value), 64)()
		parseSliceKey(key) // must not panic
		p := &tfpb.BundleEntryProto{}
		perr := proto.Unmarshal(value, p)
		e, err := parseBundleEntry(value)
		if err != nil {
			return
		}
		if perr != nil {
			return // such as a dimension's name that is not UTF-8, which we do not read
		}
		if e.dtype != p.Dtype || e.shard != p.ShardId || e.offset != p.Offset || e.size != p.Size || e.crc != p.Crc32C || len(e.slices) != len(p.Slices) {
			t.Fatalf("%+v is not %v", e, p)
		}
		again, err := parseBundleEntry(e.append(nil))
		if err != nil || !slices.Equal(again.append(nil), e.append(nil)) {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
