package ckptfmt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// What no reader takes is not written: the writer refuses it, says why, and can be
// used after that.
func TestWritersRefuseWhatReadersDo(t *testing.T) {
	deep := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: slices.Repeat([]int64{1}, maxRank+1), Data: make([]byte, 4)}
	deepest := &Tensor{DType: deep.DType, Shape: deep.Shape[1:], Data: deep.Data}
	zeros := func(shape []int64, d tfpb.DataType, from io.Reader) func(w *BundleWriter) error {
		return func(w *BundleWriter) error { return w.AddFrom("x", d, shape, from) }
	}
	for name, c := range map[string]struct {
		add  func(w *BundleWriter) error
		want string
	}{
		"rank of 255":              {func(w *BundleWriter) error { return w.Add("x", deep) }, "shape of rank 255; at most 254 can be stored"},
		"rank of 255, streamed":    {zeros(deep.Shape, deep.DType, bytes.NewReader(deep.Data)), "shape of rank 255; at most 254 can be stored"},
		"elements beyond counting": {zeros([]int64{1 << 40, 1 << 40}, deep.DType, nil), "more elements than an int64 can count"},
		"bytes beyond counting":    {zeros([]int64{1 << 61}, tfpb.DataType_DT_DOUBLE, nil), "larger than any file"},
		"strings, streamed":        {zeros([]int64{1}, tfpb.DataType_DT_STRING, nil), "string has no elements of fixed size"},
		"slice outside, streamed": {func(w *BundleWriter) error {
			return w.AddSliceFrom("x", []int64{2}, TensorSlice{[]int64{2}, []int64{1}}, deep.DType, nil)
		}, "is not within shape"},
		"slices of two types": {func(w *BundleWriter) error {
			return w.AddSlice("cut", []int64{2}, TensorSlice{[]int64{1}, []int64{1}}, &Tensor{DType: tfpb.DataType_DT_INT32, Shape: []int64{1}, Data: make([]byte, 4)})
		}, "int32 of shape [2], but its other slices have float32 of shape [2]"},
		"slices of two shapes": {func(w *BundleWriter) error {
			return w.AddSlice("cut", []int64{3}, TensorSlice{[]int64{1}, []int64{1}}, &Tensor{DType: deep.DType, Shape: []int64{1}, Data: make([]byte, 4)})
		}, "float32 of shape [3], but its other slices have float32 of shape [2]"},
		"part that cannot be read": {func(w *BundleWriter) error { return w.AddPart(Part{Err: fs.ErrPermission}) }, "permission denied"},
		"part that cannot be opened": {func(w *BundleWriter) error {
			return w.AddPart(Part{Open: func() (io.ReadCloser, error) { return nil, fs.ErrPermission }})
		}, "permission denied"},
		"strings that fail": {func(w *BundleWriter) error { return w.AddPart(stringsPart(0, fs.ErrPermission)) }, "permission denied"},
		"part of a bad slice": {func(w *BundleWriter) error {
			p, _ := slicePart(2, 2, [2]int64{0, 2}, [2]int64{0, 2})
			p.Full = []int64{1, 2}
			return w.AddPart(p)
		}, "is not within shape"},
	} {
		w, prefix := newBundle(t, &BundleWriterOptions{NoSync: true})
		err := w.AddSlice("cut", []int64{2}, TensorSlice{[]int64{0}, []int64{1}}, &Tensor{DType: deep.DType, Shape: []int64{1}, Data: make([]byte, 4)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.add(w); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err := errors.Join(w.Add("deepest", deepest), w.Finish(), w.Finish()); err != nil {
			t.Fatal(err)
		}
		if got, err := openBundle(t, prefix, nil).Lookup("deepest"); err != nil || len(got.Shape) != maxRank {
			t.Errorf("%s: the deepest tensor that can be stored: %v", name, err)
		}
	}
}

// A writer that has failed, or is closed, says so until its end.
func TestWritersStayFailed(t *testing.T) {
	one := Scalar(float32(1))
	calls := func(w *BundleWriter) []error {
		return []error{w.Add("b", one), w.AddFrom("c", tfpb.DataType_DT_FLOAT, nil, bytes.NewReader(one.Data)), w.Finish()}
	}
	failed, prefix := newBundle(t, &BundleWriterOptions{Alignment: 64}) // after which there is padding to write
	cut := failed.AddFrom("a", tfpb.DataType_DT_FLOAT, []int64{2}, bytes.NewReader(one.Data))
	closed, _ := newBundle(t, nil)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range calls(failed) {
		if err == nil || err.Error() != cut.Error() || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %v: %v", cut, err)
		}
	}
	for _, err := range calls(closed) {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if err := failed.Close(); err != nil || len(list(t, filepath.Dir(prefix))) > 0 {
		t.Errorf("%q is left, %v", list(t, filepath.Dir(prefix)), err)
	}
	if err := failed.Finish(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("after %v and Close: %v", cut, err)
	}
}

// A writer that has finished takes nothing more, which nobody would read, and leaves
// alone what it has written.
func TestWritersStayFinished(t *testing.T) {
	one, fsys := Scalar(float32(1)), faultfs.New(0)
	w, _ := newBundle(t, &BundleWriterOptions{FS: fsys})
	if err := errors.Join(w.Add("a", one), w.Finish()); err != nil {
		t.Fatal(err)
	}
	ops := fsys.Ops()
	if err, again := w.Add("b", one), w.Finish(); !errors.Is(err, os.ErrClosed) || again != nil {
		t.Errorf("after Finish: %v, %v", err, again)
	}
	if closed, again := w.Close(), w.Finish(); closed != nil || again != nil || fsys.Ops() != ops {
		t.Errorf("after Finish and Close: %v, %v, %d operations more", closed, again, fsys.Ops()-ops)
	}

	v1, err := CreateV1(filepath.Join(t.TempDir(), "v1"), nil)
	if err == nil {
		err = errors.Join(v1.Add("a", one), v1.Finish())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err, again := v1.Add("b", one), v1.Finish(); !errors.Is(err, os.ErrClosed) || !errors.Is(again, os.ErrClosed) {
		t.Errorf("V1 after Finish: %v, %v", err, again)
	}
	closed, err := CreateV1(filepath.Join(t.TempDir(), "v1"), nil)
	if err == nil {
		err = closed.Close()
	}
	if add := closed.Add("b", one); err != nil || !errors.Is(add, os.ErrClosed) {
		t.Errorf("V1 after Close, %v: %v", err, add)
	}
}

// A temporary file that cannot be removed is named.
func TestWritersCannotRemove(t *testing.T) {
	fsys := stickyFS{atomicfile.OrOS(nil), ""}
	w, _ := newBundle(t, &BundleWriterOptions{FS: fsys})
	v1, err := CreateV1(filepath.Join(t.TempDir(), "v1"), &V1WriterOptions{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	if err, v1 := w.Close(), v1.Close(); !errors.Is(err, fs.ErrPermission) || !errors.Is(v1, fs.ErrPermission) {
		t.Errorf("Close: %v, %v", err, v1)
	}
}

// Without syncs nothing waits for the disk.
func TestNoSyncSyncsNothing(t *testing.T) {
	w, prefix := newBundle(t, &BundleWriterOptions{NoSync: true, FS: unsyncedFS{atomicfile.OrOS(nil)}})
	if err := errors.Join(w.Add("a", Scalar(float32(1))), w.Finish()); err != nil || len(tensorNames(t, prefix)) != 1 {
		t.Errorf("%v; tensors %q", err, tensorNames(t, prefix))
	}
}

type unsyncedFS struct{ atomicfile.FS }

func (unsyncedFS) SyncDir(string) error { return errors.New("it was synced") }

// A tensor that one bundle has whole is not joined with slices of it in another.
func TestMergeRefusesWholeAndSlices(t *testing.T) {
	dir := t.TempDir()
	prefixes := []string{filepath.Join(dir, "whole"), filepath.Join(dir, "cut")}
	tensor := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{4, 2}, Data: make([]byte, 32)}
	for _, prefix := range prefixes {
		w, err := CreateBundle(prefix, &BundleWriterOptions{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		if prefix == prefixes[0] {
			err = w.Add("w", tensor)
		} else {
			addCut(t, w, "w", tensor, rowSlice(0, 2))
		}
		if err := errors.Join(err, w.Finish()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := MergeBundles(t.Context(), prefixes, filepath.Join(dir, "m"), nil); !errors.Is(err, ErrExists) {
			t.Errorf("%q: %v", prefixes, err)
		}
		slices.Reverse(prefixes)
	}
}

// As many shards are merged as the names of data files have room for.
func TestMergeManyShards(t *testing.T) {
	m, half := &merge{}, &tfpb.BundleHeaderProto{NumShards: maxShards / 2}
	rest := &tfpb.BundleHeaderProto{NumShards: maxShards - half.NumShards}
	if err := errors.Join(m.addHeader(half), m.addHeader(rest)); err != nil {
		t.Error(err)
	}
	if err := m.addHeader(&tfpb.BundleHeaderProto{NumShards: 1}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one more: %v", err)
	}
}

// large has more bytes of each kind than a writer keeps, so a full disk is met while
// they are added.
func large(t *testing.T) map[string]*Tensor {
	t.Helper()
	const n = 300 << 10
	words, err := FromValues([]int64{2}, []string{strings.Repeat("a", n), strings.Repeat("b", n)})
	if err != nil {
		t.Fatal(err)
	}
	short, err := FromValues([]int64{n / 4}, slices.Repeat([]string{"c"}, n/4))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Tensor{
		"floats": {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{n / 4}, Data: make([]byte, n)},
		"ints":   {DType: tfpb.DataType_DT_INT32, Shape: []int64{n / 4}, Data: bytes.Repeat([]byte{0xff}, n)},
		"words":  words, "short words": short,
	}
}

// The disk is full while a tensor is added: that call says so, so does the end, and
// nothing is left, in both formats.
func TestDiskFullWhileAdding(t *testing.T) {
	for name, tensor := range large(t) {
		for n := 3; ; n++ { // after the directory and the temporary file; the name fills the buffer
			dir := t.TempDir()
			fsys := faultfs.NewFault(faultfs.Fault{At: n, Err: syscall.ENOSPC, Lasting: true})
			w, err := CreateV1(filepath.Join(dir, "v1"), &V1WriterOptions{FS: fsys})
			if err != nil {
				t.Fatal(err)
			}
			err = w.Add(strings.Repeat("x", dataBuffer), tensor)
			if err == nil { // the rest goes to the disk at the end
				if fsys.Failed() != "" || n < 4 {
					t.Errorf("V1 %s: %s was not reported, after %d", name, fsys.Failed(), n)
				}
				w.Close()
				break
			}
			again, end := w.Add("y", tensor), w.Finish()
			if !errors.Is(err, syscall.ENOSPC) || !errors.Is(again, syscall.ENOSPC) || !errors.Is(end, syscall.ENOSPC) {
				t.Errorf("V1 %s: %v, then %v, %v", name, err, again, end)
			}
			if w.Close(); len(list(t, dir)) > 0 {
				t.Errorf("V1 %s: %q is left", name, list(t, dir))
			}
		}
		for _, sequential := range []bool{false, true} {
			dir := t.TempDir()
			fsys := faultfs.NewFault(faultfs.Fault{At: 3, Err: syscall.ENOSPC, Lasting: true})
			w, err := CreateBundle(filepath.Join(dir, "v2"), &BundleWriterOptions{FS: fsys, Sequential: sequential, Alignment: 64})
			if err != nil {
				t.Fatal(err)
			}
			if err, again := w.Add("x", tensor), w.AddPart(stringsPart(0, nil)); !errors.Is(err, syscall.ENOSPC) || !errors.Is(again, syscall.ENOSPC) {
				t.Errorf("V2 %s: %v, then %v", name, err, again)
			}
			if err := w.Close(); err != nil || len(list(t, dir)) > 0 {
				t.Errorf("V2 %s: %q is left, %v", name, list(t, dir), err)
			}
		}
	}
}

// A save that uses one processor writes the bytes that others write, also those that go
// past the page cache.
func TestSequentialWritesTheSame(t *testing.T) {
	tensors := large(t)
	past := make([]byte, 2*atomicfile.DirectPiece)
	for i := range past {
		past[i] = byte(i / 5)
	}
	bytesOf := &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{int64(len(past))}, Data: past}
	var files [2][]byte
	for i, sequential := range []bool{false, true} {
		w, prefix := newBundle(t, &BundleWriterOptions{Sequential: sequential, NoSync: !sequential})
		if err := errors.Join(w.Add("bytes", bytesOf), w.Add("ints", tensors["ints"]), w.Add("words", tensors["words"]), w.Finish()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{layout.DataName(prefix, 0, 1), layout.IndexName(prefix)} {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[i] = append(files[i], b...)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("%d bytes differ from %d", len(files[0]), len(files[1]))
	}
}

// The disk fails while a long index is written, and while a V1 checkpoint is put
// together from what was added: no name of the new one appears.
func TestDiskFailsWhileFinishing(t *testing.T) {
	save := map[string]func(fsys FS, name string) error{
		"bundle": func(fsys FS, name string) (err error) {
			w, err := CreateBundle(name, &BundleWriterOptions{FS: fsys})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.Close()) }()
			for i := range 8 {
				if err := w.Add(string(rune('A'+i))+strings.Repeat("n", 80000), Scalar(int64(i))); err != nil {
					return err
				}
			}
			return w.Finish()
		},
		"V1": func(fsys FS, name string) (err error) {
			w, err := CreateV1(name, &V1WriterOptions{FS: fsys})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, w.Close()) }()
			big := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{150 << 10}, Data: make([]byte, 600<<10)}
			return errors.Join(w.Add("a", big), w.Add("b", big), w.Finish())
		},
	}
	for what, save := range save {
		for n := 1; ; n++ {
			dir := t.TempDir()
			fsys := faultfs.New(n)
			err := save(fsys, filepath.Join(dir, "m"))
			if fsys.Ops() < n {
				if err != nil || n < 10 {
					t.Errorf("%s: %d operations, %v", what, n, err)
				}
				break
			}
			_, opened := Open(filepath.Join(dir, "m"), nil)
			if err == nil && opened != nil || err != nil && !errors.Is(err, faultfs.ErrInjected) {
				t.Errorf("%s: %s: %v; opening it says %v", what, fsys.Failed(), err, opened)
			}
			published := slices.Contains([]string{"sync directory", "close after reading", "remove"}, fsys.FailedKind())
			if err != nil && !published && !errors.Is(opened, fs.ErrNotExist) {
				t.Errorf("%s: %s: opening it says %v", what, fsys.Failed(), opened)
			}
		}
	}
}

// Merging refuses what does not belong together, before anything is changed.
func TestMergeRefuses(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	big := newHeader(1)
	big.Endianness = tfpb.BundleHeaderProto_BIG
	row := func(start, n int64) []byte { return sliceKey("w", rowSlice(start, n)) }
	whole := (&bundleEntry{dtype: tfpb.DataType_DT_FLOAT, shape: []int64{4, 2}, slices: []TensorSlice{rowSlice(0, 2), rowSlice(2, 2)}}).append(nil)
	half := (&bundleEntry{dtype: tfpb.DataType_DT_FLOAT, shape: []int64{2, 2}, size: 16}).append(nil)
	listed := (&bundleEntry{dtype: tfpb.DataType_DT_FLOAT, shape: []int64{4, 2}, slices: []TensorSlice{rowSlice(0, 2)}}).append(nil)
	for name, c := range map[string]struct {
		ctx    context.Context
		first  map[string][]byte
		second map[string][]byte
		want   string
	}{
		"end of the context":    {ctx: done, want: "context canceled"},
		"another byte order":    {second: map[string][]byte{"": tfproto.Marshal(big)}, want: "byte order or version differs"},
		"too many shards":       {second: map[string][]byte{"": tfproto.Marshal(newHeader(maxShards))}, want: "more than 99999 shards"},
		"a damaged entry":       {second: map[string][]byte{"": tfproto.Marshal(newHeader(1)), "x": {0xff}}, want: `entry "x"`},
		"a slice is not there":  {first: map[string][]byte{"w": whole, string(row(0, 2)): half}, want: `tensor "w" lacks its slice "2,2:-"`},
		"a slice is not listed": {first: map[string][]byte{"w": listed, string(row(0, 2)): half, string(row(2, 2)): half}, want: `tensor "w": ckptfmt: slices do not match the tensor: the stored slices hold 4 of 8 elements; missing: 2,2:0,2`},
	} {
		dir := t.TempDir()
		var prefixes []string
		for i, entries := range []map[string][]byte{c.first, c.second} {
			if entries == nil {
				entries = map[string][]byte{}
			}
			if entries[""] == nil {
				entries[""] = tfproto.Marshal(newHeader(1))
			}
			prefixes = append(prefixes, filepath.Join(dir, string(rune('a'+i))))
			writeIndexFile(t, prefixes[i], entries)
		}
		before := strings.Join(list(t, dir), " ")
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		err := MergeBundles(c.ctx, prefixes, filepath.Join(dir, "m"), &MergeOptions{RequireWhole: true})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if after := strings.Join(list(t, dir), " "); after != before {
			t.Errorf("%s: %s became %s", name, before, after)
		}
	}
}

// Slices in several bundles that make up their tensor are merged.
func TestMergeWhole(t *testing.T) {
	dir := t.TempDir()
	prefixes := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	whole := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{4, 2}, Data: splitmix64(1, 32)}
	for i, prefix := range prefixes {
		w, err := CreateBundle(prefix, &BundleWriterOptions{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		addCut(t, w, "w", whole, rowSlice(int64(2*i), 2))
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(dir, "m")
	if err := MergeBundles(t.Context(), prefixes, to, &MergeOptions{RequireWhole: true}); err != nil {
		t.Fatal(err)
	}
	if got, err := openBundle(t, to, nil).Lookup("w"); err != nil || !bytes.Equal(got.Data, whole.Data) {
		t.Errorf("merged: %v, %v", got, err)
	}
}

// stickyFS does not delete some files.
type stickyFS struct {
	atomicfile.FS
	suffix string
}

func (f stickyFS) Remove(name string) error {
	if strings.HasSuffix(name, f.suffix) {
		return fs.ErrPermission
	}
	return f.FS.Remove(name)
}

// A merge whose inputs' indexes cannot be removed says so: the merged checkpoint is there,
// and the indexes are left, of data files that are not.
func TestMergeCannotRemoveInputs(t *testing.T) {
	for _, dirs := range []bool{false, true} {
		dir := t.TempDir()
		from := []string{filepath.Join(dir, "temp", "a"), filepath.Join(dir, "temp", "b")}
		if err := errors.Join(saveShard(nil, from[0], "v", 1), saveShard(nil, from[1], "w", 2)); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "m")
		err := MergeBundles(t.Context(), from, to, &MergeOptions{FS: stickyFS{atomicfile.OrOS(nil), "a" + layout.IndexSuffix}, DeleteOldDirs: dirs})
		if !errors.Is(err, fs.ErrPermission) || len(tensorNames(t, to)) != 4 {
			t.Errorf("%v; merged %q", err, tensorNames(t, to))
		}
		if left := list(t, filepath.Join(dir, "temp")); !slices.Equal(left, []string{"a" + layout.IndexSuffix}) {
			t.Errorf("left %q", left)
		}
	}
}

// A merge reads its inputs through its file system, as it writes them.
func TestMergeReadsThroughItsFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(saveShard(nil, filepath.Join(dir, "a"), "v", 1), saveShard(nil, filepath.Join(dir, "b"), "w", 2)); err != nil {
		t.Fatal(err)
	}
	moved := t.TempDir() // where the files are for the merge
	fsys := movedFS{faultfs.New(0), moved, dir}
	if err := MergeBundles(t.Context(), []string{filepath.Join(moved, "a"), filepath.Join(moved, "b")}, filepath.Join(moved, "m"), &MergeOptions{FS: fsys}); err != nil {
		t.Fatal(err)
	}
	if names := tensorNames(t, filepath.Join(dir, "m")); len(names) != 4 || len(list(t, moved)) > 0 {
		t.Errorf("tensors %q; %q", names, list(t, moved))
	}
	w, err := CreateV1(filepath.Join(moved, "v1"), &V1WriterOptions{FS: fsys})
	if err == nil {
		err = errors.Join(w.Add("a", Scalar(1.5)), w.Finish())
	}
	if names := tensorNames(t, filepath.Join(dir, "v1")); err != nil || len(names) != 1 {
		t.Errorf("V1: tensors %q, %v", names, err)
	}
	if layout.IsTemp(strings.Join(list(t, dir), " ")) {
		t.Errorf("left %q", list(t, dir))
	}
}

// movedFS has the files of one directory under the name of another.
type movedFS struct {
	atomicfile.FS
	name, dir string
}

func (m movedFS) at(name string) string { return strings.Replace(name, m.name, m.dir, 1) }

func (m movedFS) Create(name string) (File, error) { return m.FS.Create(m.at(name)) }
func (m movedFS) Rename(from, to string) error     { return m.FS.Rename(m.at(from), m.at(to)) }
func (m movedFS) Remove(name string) error         { return m.FS.Remove(m.at(name)) }
func (m movedFS) Mkdir(name string) error          { return m.FS.Mkdir(m.at(name)) }
func (m movedFS) SyncDir(name string) error        { return m.FS.SyncDir(m.at(name)) }
func (m movedFS) Open(name string) (atomicfile.ReadFile, error) {
	return atomicfile.Open(m.FS, m.at(name))
}
