package ckptfmt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/trainerd/trainerd/ckptfmt/dtype"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
)

// saveLarge writes tensors whose bytes do not fit into one piece: "large" and,
// in slices of rows, "rows", in slices of columns "columns". It returns the
// values.
func saveLarge(t *testing.T, prefix string, o *BundleWriterOptions) map[string]*Tensor {
	t.Helper()
	w, err := CreateBundle(prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	tensors := map[string]*Tensor{}
	for i, name := range []string{"large", "rows", "columns"} {
		n := []int64{1100, 50, 50}[i]
		tensors[name] = &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{n, 1001}, Data: splitmix64(uint64(i), int(n*1001*4))}
	}
	if err := w.Add("large", tensors["large"]); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{30, 0, 17} {
		length := map[int64]int64{0: 17, 17: 13, 30: 20}[at]
		addCut(t, w, "rows", tensors["rows"], TensorSlice{[]int64{at, 0}, []int64{length, full}})
		addCut(t, w, "columns", tensors["columns"], TensorSlice{[]int64{0, 20 * at}, []int64{full, map[int64]int64{0: 340, 17 * 20: 260, 30 * 20: 401}[20*at]}})
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return tensors
}

func addCut(t *testing.T, w *BundleWriter, name string, whole *Tensor, s TensorSlice) {
	t.Helper()
	part := cutSlice(whole, s)
	if err := w.AddSlice(name, whole.Shape, s, part); err != nil {
		t.Fatal(err)
	}
}

func openBundle(t *testing.T, prefix string, o *ReaderOptions) *BundleReader {
	t.Helper()
	r, err := OpenBundle(prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// Each way to read a tensor gives the same elements.
func TestWaysToRead(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	tensors := saveLarge(t, prefix, nil)
	for _, o := range []*ReaderOptions{nil, {Mmap: true}, {SkipChecksums: true}} {
		r := openBundle(t, prefix, o)
		for name, want := range tensors {
			got, err := r.Lookup(name)
			if err != nil || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("Lookup(%q) with %+v differs, %v", name, o, err)
			}
			s, err := r.OpenTensor(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := iotest.TestReader(io.LimitReader(s, 1), want.Data[:1]); err != nil {
				t.Error(err)
			}
			b, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(b, want.Data[1:]) {
				t.Errorf("stream of %q with %+v differs, %v", name, o, err)
			}
			if err := r.CheckTensor(t.Context(), name); err != nil {
				t.Error(err)
			}
			if o == nil || !o.Mmap {
				continue
			}
			v, err := r.View(name)
			if err == nil && name == "large" {
				v.Data[9]++ // a copy, which the others and the file do not see
				v.Data[9]--
			}
			if err != nil || !bytes.Equal(v.Data, want.Data) || !slices.Equal(v.Shape, want.Shape) {
				t.Errorf("View(%q) differs, %v", name, err)
			}
		}
	}
}

// LookupAll and ViewAll give what Lookup gives, and the first error.
func TestAll(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	want := saveLarge(t, prefix, nil)
	r := openBundle(t, prefix, &ReaderOptions{Mmap: true})
	for _, all := range []func(context.Context, []string) ([]NamedTensor, error){r.LookupAll, r.ViewAll} {
		got, err := all(t.Context(), nil)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d tensors, %v", len(got), err)
		}
		for _, n := range got {
			if !bytes.Equal(n.Tensor.Data, want[n.Name].Data) {
				t.Errorf("%q differs", n.Name)
			}
		}
		if !slices.IsSortedFunc(got, func(a, b NamedTensor) int { return strings.Compare(a.Name, b.Name) }) {
			t.Error("not in order")
		}
		got, err = all(t.Context(), []string{"rows", "large"})
		if err != nil || got[0].Name != "rows" || got[1].Name != "large" {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := all(t.Context(), []string{"rows", "none"}); !errors.Is(err, ErrNotFound) {
			t.Errorf("of a name that is not there: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := all(ctx, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel: %v", err)
		}
	}
	if err := flipBit(layout.DataName(prefix, 0, 1), 3<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ViewAll(t.Context(), nil); !errors.Is(err, ErrChecksum) {
		t.Errorf("of damage: %v", err)
	}
}

func TestViewOfAnything(t *testing.T) {
	for _, id := range []string{"dtypes", "scalars_empty", "strings", "partitioned", "damaged/ok_big_endian"} {
		indexes, err := filepath.Glob(filepath.Join(fixtures, v2Set, id, "*.index"))
		if err != nil || len(indexes) == 0 {
			t.Fatal(id, err)
		}
		r := openBundle(t, strings.TrimSuffix(indexes[0], layout.IndexSuffix), &ReaderOptions{Mmap: true})
		for info, err := range r.Tensors() {
			if err != nil {
				t.Fatal(err)
			}
			want, err := r.Lookup(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.View(info.Name)
			if err != nil || tensorHash(got) != tensorHash(want) {
				t.Errorf("%s: %q: %v", id, info.Name, err)
			}
			s, err := r.OpenTensor(info.Name)
			if hasStrings(info.DType) {
				if !errors.Is(err, ErrType) {
					t.Errorf("%s: stream of %q: %v", id, info.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(s); err != nil || !bytes.Equal(b, want.Data) {
				t.Errorf("%s: stream of %q differs, %v", id, info.Name, err)
			}
		}
	}
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	saveSmall(t, prefix)
	if _, err := openBundle(t, prefix, nil).View("global_step"); err == nil || !strings.Contains(err.Error(), "Mmap") {
		t.Errorf("View without the option: %v", err)
	}
}

// A flipped bit is found by all that verify, after the bytes were given; the
// others give it.
func TestWaysToReadDamage(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	saveLarge(t, prefix, nil)
	data := layout.DataName(prefix, 0, 1)
	if err := flipBit(data, 3<<20); err != nil {
		t.Fatal(err)
	}
	damaged := func(what string, err error) {
		t.Helper()
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !errors.Is(err, ErrChecksum) || corrupt.Name != data {
			t.Errorf("%s: %v", what, err)
		}
	}
	r := openBundle(t, prefix, nil)
	row := TensorSlice{[]int64{0, 0}, []int64{1, 3}}
	_, err := r.Lookup("large")
	damaged("Lookup", err)
	_, err = r.LookupSlice("large", row)
	damaged("LookupSlice", err)
	damaged("CheckTensor", r.CheckTensor(t.Context(), "large"))
	s, err := r.OpenTensor("large")
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, s)
	damaged("OpenTensor", err)
	if n != s.Info.Bytes {
		t.Errorf("%d bytes came before the verdict, of %d", n, s.Info.Bytes)
	}
	r = openBundle(t, prefix, &ReaderOptions{SkipChecksums: true})
	if _, err := r.Lookup("large"); err != nil {
		t.Errorf("without checksums: %v", err)
	}
	damaged("CheckTensor without checksums", r.CheckTensor(t.Context(), "large"))
}

// A data file cut short while it is open is damage, not a crash.
func TestDataFileCutWhileOpen(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	saveLarge(t, prefix, nil)
	r := openBundle(t, prefix, &ReaderOptions{Mmap: true})
	s, err := r.OpenTensor("large")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.View("large"); err != nil { // mapped, not touched
		t.Fatal(err)
	}
	if err := os.Truncate(layout.DataName(prefix, 0, 1), 1<<20); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := r.Lookup("large"); !errors.As(err, &corrupt) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Lookup: %v", err)
	}
	if _, err := io.Copy(io.Discard, s); !errors.As(err, &corrupt) {
		t.Errorf("stream: %v", err)
	}
	for name, err := range r.Verify(t.Context()) {
		if partitioned := name == "rows" || name == "columns"; !partitioned && !errors.As(err, &corrupt) {
			t.Errorf("Verify of %s: %v", name, err)
		}
	}
}

// countingReader counts what is read.
type countingReader struct {
	io.ReaderAt
	bytes, calls int
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.bytes += len(b)
	c.calls++
	return c.ReaderAt.ReadAt(b, off)
}

// Slices read by runs are those cut out of the whole, with and without
// checksums, and without them little else is read.
func TestSliceRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for n := range 200 {
		shape := make([]int64, 1+rng.IntN(4))
		for i := range shape {
			shape[i] = 1 + rng.Int64N(40)
		}
		elements, err := dtype.NumElements(shape)
		if err != nil {
			t.Fatal(err)
		}
		whole := &Tensor{DType: tfpb.DataType_DT_INT16, Shape: shape, Data: splitmix64(uint64(n), int(2*elements))[:2*elements]}
		s := randomSlice(rng, shape)
		want := cutSlice(whole, s)
		r := runsOf(boxOf(s, shape), shape, 2)
		file := &countingReader{ReaderAt: bytes.NewReader(append(make([]byte, 7), whole.Data...))}
		got := make([]byte, len(want.Data))
		if err := r.read(file, 7, got); err != nil || !bytes.Equal(got, want.Data) {
			t.Fatalf("slice %q of %v differs, %v", s, shape, err)
		}
		if int64(file.bytes) > r.count*(r.length+maxGap) {
			t.Errorf("%d bytes were read for %d runs of %d", file.bytes, r.count, r.length)
		}
		clear(got)
		e := &bundleEntry{offset: 7, size: 2 * elements}
		if err := r.readSummed(file, e, got); !errors.Is(err, ErrChecksum) || !bytes.Equal(got, want.Data) {
			t.Fatalf("slice %q of %v differs, %v", s, shape, err)
		}
	}
}

func randomSlice(rng *rand.Rand, shape []int64) TensorSlice {
	s := FullSlice(len(shape))
	for i, d := range shape {
		if rng.IntN(2) == 0 {
			s.Start[i] = rng.Int64N(d)
			s.Length[i] = 1 + rng.Int64N(d-s.Start[i])
		}
	}
	return s
}

// A slice of a few rows of a large tensor is one small read.
func TestSliceReadsLittle(t *testing.T) {
	shape := []int64{1 << 20, 1 << 10}
	s := TensorSlice{[]int64{1 << 19, 0}, []int64{4, full}}
	r := runsOf(boxOf(s, shape), shape, 4)
	file := &countingReader{ReaderAt: zeros{}}
	if err := r.read(file, 0, make([]byte, 4*4<<10)); err != nil || file.calls != 1 || file.bytes != 16<<10 {
		t.Errorf("%d reads of %d bytes, %v", file.calls, file.bytes, err)
	}
}

type zeros struct{}

func (zeros) ReadAt(b []byte, _ int64) (int, error) { clear(b); return len(b), nil }

// What is written as a stream has the bytes of what is written at once.
func TestAddFrom(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	tensors := saveLarge(t, a, nil)
	w, err := CreateBundle(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	large := tensors["large"]
	if err := w.AddFrom("large", large.DType, large.Shape, iotest.HalfReader(bytes.NewReader(large.Data))); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		d     tfpb.DataType
		shape []int64
		want  error
	}{
		{"large", tfpb.DataType_DT_FLOAT, []int64{1}, ErrExists},
		{"text", tfpb.DataType_DT_STRING, []int64{1}, ErrType},
		{"ref", tfpb.DataType_DT_FLOAT_REF, []int64{1}, ErrType},
	} {
		if err := w.AddFrom(tc.name, tc.d, tc.shape, bytes.NewReader(make([]byte, 8))); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if err := w.AddFrom("negative", tfpb.DataType_DT_FLOAT, []int64{-1}, nil); err == nil {
		t.Error("a negative dimension was taken")
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	ra, rb := openBundle(t, a, nil), openBundle(t, b, nil)
	ia, _ := ra.Info("large")
	ib, err := rb.Info("large")
	if err != nil || ia.CRC != ib.CRC || rb.CheckTensor(t.Context(), "large") != nil {
		t.Errorf("%+v is not %+v, %v", ib, ia, err)
	}
}

func TestAddFromShortStream(t *testing.T) {
	w, prefix := newBundle(t, nil)
	err := w.AddFrom("x", tfpb.DataType_DT_FLOAT, []int64{4}, bytes.NewReader(make([]byte, 15)))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if err := w.Finish(); err == nil {
		t.Error("it was finished all the same")
	}
	if _, err := os.Stat(layout.IndexName(prefix)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestBundleWriterChoices(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    BundleWriterOptions
	}{{"snappy", BundleWriterOptions{Snappy: true}}, {"no sync", BundleWriterOptions{NoSync: true}}} {
		t.Run(tc.name, func(t *testing.T) {
			w, prefix := newBundle(t, &tc.o)
			for i := range 500 {
				if err := w.Add("layer/"+strings.Repeat("x", i%50)+string(rune('A'+i)), Scalar(int32(i))); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			if err := verifyAll(t, prefix); err != nil {
				t.Error(err)
			}
			info, err := os.Stat(layout.IndexName(prefix))
			if err != nil || (info.Size() < 8000) != tc.o.Snappy {
				t.Errorf("index of %d bytes, %v", info.Size(), err)
			}
		})
	}
}

// TestManyShards reads a checkpoint of more data files than a process may have open.
func TestManyShards(t *testing.T) {
	const n = 1100
	limitOpenFiles(t, 256)
	dir := t.TempDir()
	to := filepath.Join(dir, "to")
	var parts []string
	for i := range n {
		part := filepath.Join(dir, fmt.Sprint("part", i))
		w, err := CreateBundle(part, &BundleWriterOptions{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Add(fmt.Sprint("t", i), Scalar(int32(i))), w.Finish(), w.Close()); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	if err := MergeBundles(t.Context(), parts, to, &MergeOptions{FS: atomicfile.NoSync(nil)}); err != nil {
		t.Fatal(err)
	}
	r := openBundle(t, to, &ReaderOptions{Mmap: true})
	if r.NumShards() != n {
		t.Fatalf("%d shards", r.NumShards())
	}
	for range 2 {
		all, err := r.LookupAll(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			v, err := r.View(x.Name)
			if err != nil || x.Name != fmt.Sprint("t", binary.LittleEndian.Uint32(x.Tensor.Data)) || !bytes.Equal(v.Data, x.Tensor.Data) {
				t.Fatalf("%s is %x, %v", x.Name, x.Tensor.Data, err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lookup("t0"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestWatchEndsReading(t *testing.T) {
	r, err := Open(filepath.Join(fixtures, "ckpt_v2/one/model.ckpt"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for info, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		tr, err := r.OpenTensor(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		enough, told := errors.New("enough"), 0
		tr.Watch = func(n int) error {
			told += n
			return enough
		}
		if _, err := io.ReadFull(tr, make([]byte, info.Bytes)); !errors.Is(err, enough) || told == 0 {
			t.Errorf("%s: error %v after %d bytes", info.Name, err, told)
		}
	}
}

func flipBit(file string, at int) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	b[at] ^= 1
	return os.WriteFile(file, b, 0o666)
}
