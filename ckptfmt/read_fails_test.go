package ckptfmt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/internal/crc32c"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// saveKinds saves a tensor of each kind that is read in a way of its own: numbers,
// strings, slices of rows, slices of columns, and nothing.
func saveKinds(t *testing.T) string {
	t.Helper()
	w, prefix := newBundle(t, &BundleWriterOptions{FS: atomicfile.NoSync(nil)})
	numbers, err := FromValues([]int64{4, 6}, make([]float32, 24))
	if err != nil {
		t.Fatal(err)
	}
	words, err := FromValues([]int64{2}, []string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(2) {
		addCut(t, w, "rows", numbers, TensorSlice{[]int64{2 * i, 0}, []int64{2, full}})
		addCut(t, w, "columns", numbers, TensorSlice{[]int64{0, 3 * i}, []int64{full, 3}})
	}
	empty := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{0, 4}}
	if err := errors.Join(w.Add("numbers", numbers), w.Add("words", words), w.Add("empty", empty), w.Finish()); err != nil {
		t.Fatal(err)
	}
	return prefix
}

// waysToRead read something of what saveKinds saves.
var waysToRead = map[string]func(ctx context.Context, r *BundleReader) error{
	"Lookup": func(_ context.Context, r *BundleReader) error {
		return eachOf(func(name string) error { _, err := r.Lookup(name); return err })
	},
	"LookupSlice": func(_ context.Context, r *BundleReader) error {
		return eachOf(func(name string) error {
			s := TensorSlice{[]int64{0, 1}, []int64{full, 3}}
			if name == "words" {
				s = TensorSlice{[]int64{1}, []int64{1}}
			}
			_, err := r.LookupSlice(name, s)
			return err
		})
	},
	"OpenTensor": func(_ context.Context, r *BundleReader) error {
		return eachOf(func(name string) error {
			if name == "words" {
				return nil
			}
			s, err := r.OpenTensor(name)
			if err == nil {
				_, err = io.Copy(io.Discard, s)
			}
			return err
		})
	},
	"CheckTensor": func(ctx context.Context, r *BundleReader) error {
		return eachOf(func(name string) error { return r.CheckTensor(ctx, name) })
	},
	"View": func(_ context.Context, r *BundleReader) error {
		return eachOf(func(name string) error { _, err := r.View(name); return err })
	},
	"LookupAll": func(ctx context.Context, r *BundleReader) error {
		_, err := r.LookupAll(ctx, nil)
		return err
	},
	"Verify": func(ctx context.Context, r *BundleReader) error {
		for _, err := range r.Verify(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"Parts": func(_ context.Context, r *BundleReader) error {
		parts, err := Parts(r)
		for i := 0; err == nil && i < len(parts); i++ {
			_, err = parts[i].Load()
		}
		return err
	},
}

func eachOf(f func(name string) error) error {
	for _, name := range []string{"numbers", "words", "rows", "columns", "empty"} {
		if err := f(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Each opening and each read fails in turn, in all ways to read: the error is that of
// the disk, not damage, and says in which file.
func TestDiskFailsWhileReading(t *testing.T) {
	prefix := saveKinds(t)
	for way, read := range waysToRead {
		for _, o := range []ReaderOptions{{Mmap: true}, {Mmap: true, SkipChecksums: true}} {
			for n := 1; ; n++ {
				fsys := faultfs.New(n)
				o.FS = fsys
				r, err := OpenBundle(prefix, &o)
				if err == nil {
					err = read(t.Context(), r)
					r.Close()
				}
				if fsys.Ops() < n || fsys.FailedKind() == "close after reading" {
					if err != nil || n < 4 {
						t.Errorf("%s: %d operations, %v", way, fsys.Ops(), err)
					}
					break
				}
				var corrupt *CorruptError
				if !errors.Is(err, faultfs.ErrInjected) || errors.As(err, &corrupt) || !strings.Contains(err.Error(), prefix) {
					t.Errorf("%s: %s: %v", way, fsys.Failed(), err)
				}
			}
		}
	}
}

// oddFS opens files whose size cannot be found, if their names have that end.
type oddFS struct {
	atomicfile.FS
	suffix string
}

type oddFile struct{ atomicfile.ReadFile }

var errNoSize = errors.New("no size")

func (oddFile) Stat() (fs.FileInfo, error) { return nil, errNoSize }

func (o oddFS) Open(name string) (atomicfile.ReadFile, error) {
	f, err := atomicfile.Open(nil, name)
	if err == nil && strings.HasSuffix(name, o.suffix) {
		f = oddFile{f}
	}
	return f, err
}

func TestFileWithoutSize(t *testing.T) {
	prefix := saveKinds(t)
	if _, err := OpenBundle(prefix, &ReaderOptions{FS: oddFS{atomicfile.OrOS(nil), layout.IndexSuffix}}); !errors.Is(err, errNoSize) {
		t.Errorf("of the index: %v", err)
	}
	r := openBundle(t, prefix, &ReaderOptions{FS: oddFS{atomicfile.OrOS(nil), "-00001"}})
	for range 2 { // it is not remembered as one of no bytes
		if _, err := r.Lookup("numbers"); !errors.Is(err, errNoSize) {
			t.Errorf("of the data: %v", err)
		}
	}
}

// A data file that is a directory is not a crash of what maps it.
func TestDataIsADirectory(t *testing.T) {
	prefix := saveKinds(t)
	data := layout.DataName(prefix, 0, 1)
	if err := errors.Join(os.Remove(data), os.Mkdir(data, 0o777)); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(data, fmt.Sprint("a file that makes it larger ", i)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := openBundle(t, prefix, &ReaderOptions{Mmap: true})
	for way, read := range map[string]func(string) (*Tensor, error){"View": r.View, "Lookup": r.Lookup} {
		if _, err := read("numbers"); err == nil || !strings.Contains(err.Error(), data) {
			t.Errorf("%s: %v", way, err)
		}
	}
	if v, err := r.View("empty"); err != nil || v.Data == nil || len(v.Data) != 0 {
		t.Errorf("a tensor of no bytes, which is not read: %v, %v", v, err)
	}
}

// What is not there is not found in any way to read, and a slice that does not fit
// is refused with the tensor's name.
func TestWaysToReadUnknown(t *testing.T) {
	r := openBundle(t, saveKinds(t), &ReaderOptions{Mmap: true})
	_, slice := r.LookupSlice("none", FullSlice(1))
	_, view := r.View("none")
	_, stream := r.OpenTensor("none")
	for way, err := range map[string]error{"LookupSlice": slice, "View": view, "OpenTensor": stream, "CheckTensor": r.CheckTensor(t.Context(), "none")} {
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `"none"`) {
			t.Errorf("%s: %v", way, err)
		}
	}
	for _, name := range []string{"numbers", "rows"} {
		if _, err := r.LookupSlice(name, rowSlice(3, 2)); !errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), fmt.Sprintf("reading %q", name)) {
			t.Errorf("a slice past the end of %s: %v", name, err)
		}
	}
}

// A part of a tensor from a machine of the other byte order; variants from there
// cannot be turned round.
func TestBigEndianSlices(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "model.ckpt")
	data := []byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4}
	header := newHeader(1)
	header.Endianness = tfpb.BundleHeaderProto_BIG
	variant, _ := encodeVariants([][]byte{[]byte("v")})
	writeIndexFile(t, prefix, map[string][]byte{
		"":  tfproto.Marshal(header),
		"n": (&bundleEntry{dtype: tfpb.DataType_DT_INT32, shape: []int64{2, 2}, size: 16, crc: crc32c.Masked(data)}).append(nil),
		"v": (&bundleEntry{dtype: tfpb.DataType_DT_VARIANT, offset: 16, size: int64(len(variant))}).append(nil),
	})
	if err := os.WriteFile(layout.DataName(prefix, 0, 1), append(data, variant...), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, skip := range []bool{false, true} {
		r := openBundle(t, prefix, &ReaderOptions{SkipChecksums: skip})
		got, err := r.LookupSlice("n", TensorSlice{[]int64{0, 1}, []int64{full, 1}})
		if want := binary.LittleEndian.AppendUint32([]byte{2, 0, 0, 0}, 4); err != nil || !bytes.Equal(got.Data, want) {
			t.Errorf("the second column is %v, %v", got, err)
		}
		if _, err := r.Lookup("v"); !errors.Is(err, ErrType) || !strings.Contains(err.Error(), "variants of a big-endian machine") {
			t.Errorf("a variant: %v", err)
		}
	}
}

// watchedFS says when a data file is read.
type watchedFS struct {
	atomicfile.FS
	read chan int64
}

type watchedFile struct {
	atomicfile.ReadFile
	read chan int64
}

func (w watchedFS) Open(name string) (atomicfile.ReadFile, error) {
	f, err := atomicfile.Open(nil, name)
	if err != nil || strings.HasSuffix(name, layout.IndexSuffix) {
		return f, err
	}
	return watchedFile{f, w.read}, nil
}

func (w watchedFile) ReadAt(b []byte, at int64) (int, error) {
	w.read <- at
	return w.ReadFile.ReadAt(b, at)
}

// A verification whose context ends says that, and nothing of the tensors that it was
// reading then.
func TestVerifyEndsWithItsContext(t *testing.T) {
	w, prefix := newBundle(t, nil)
	large := &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{sumPiece}, Data: make([]byte, sumPiece)}
	for i := range 3 { // each is read alone
		if err := w.Add(fmt.Sprint(i), large); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	fsys := watchedFS{atomicfile.OrOS(nil), make(chan int64, 3)}
	r := openBundle(t, prefix, &ReaderOptions{FS: fsys})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	for name, err := range r.Verify(ctx) {
		got = append(got, fmt.Sprintf("%s: %v", name, err))
		if len(got) == 1 {
			<-fsys.read
			<-fsys.read // of the second, which is in line
			cancel()
		}
	}
	if want := []string{"0: <nil>", ": context canceled"}; strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got %q, want %q", got, want)
	}
}

// saveLongIndex saves tensors with names so long that the index has several blocks.
func saveLongIndex(t *testing.T) (prefix string, names []string) {
	t.Helper()
	w, prefix := newBundle(t, &BundleWriterOptions{NoSync: true})
	for i := range 8 {
		name := string(rune('a'+i)) + strings.Repeat("n", 80000)
		if err := w.Add(name, Scalar(int64(i))); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	return prefix, names
}

// Damage in the second block of an index leaves the tensors of the first readable, and
// is said of the others, in the index.
func TestIndexDamagedInTheMiddle(t *testing.T) {
	prefix, names := saveLongIndex(t)
	if err := flipBit(layout.IndexName(prefix), 400_000); err != nil {
		t.Fatal(err)
	}
	r := openBundle(t, prefix, nil)
	if _, err := r.Lookup(names[0]); err != nil {
		t.Errorf("the first tensor: %v", err)
	}
	inIndex := func(what string, err error) {
		t.Helper()
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Name != layout.IndexName(prefix) || !errors.Is(err, ErrChecksum) {
			t.Errorf("%s: %.200s", what, fmt.Sprint(err))
		}
	}
	_, err := r.Lookup(names[5])
	inIndex("Lookup", err)
	_, err = Parts(r)
	inIndex("Parts", err)
	_, err = r.LookupAll(t.Context(), nil)
	inIndex("LookupAll", err)
	said := 0
	for name, err := range r.Verify(t.Context()) {
		if err != nil {
			inIndex("Verify", err)
			said++
		}
		if (err != nil) != (name == "") {
			t.Errorf("Verify says %v of %.20s", err != nil, name)
		}
	}
	if said != 1 {
		t.Errorf("Verify says it %d times", said)
	}
}

// A stream whose reader was closed says so, with the file.
func TestStreamOfClosedReader(t *testing.T) {
	prefix := saveKinds(t)
	r := openBundle(t, prefix, nil)
	s, err := r.OpenTensor("rows")
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 8)); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), prefix) {
		t.Errorf("error %v", err)
	}
}

// A slice of a stored tensor is missing: nothing of the tensor is given in any way.
func TestWaysToReadWithoutASlice(t *testing.T) {
	prefix := saveKinds(t)
	entries := indexEntries(t, prefix)
	delete(entries, string(sliceKey("rows", rowSlice(2, 2))))
	delete(entries, string(sliceKey("columns", TensorSlice{[]int64{0, 3}, []int64{full, 3}})))
	writeIndexFile(t, prefix, entries)
	r := openBundle(t, prefix, &ReaderOptions{Mmap: true})
	for _, name := range []string{"rows", "columns"} {
		_, lookup := r.Lookup(name)
		_, view := r.View(name)
		_, stream := r.OpenTensor(name)
		for way, err := range map[string]error{"Lookup": lookup, "View": view, "OpenTensor": stream, "CheckTensor": r.CheckTensor(t.Context(), name)} {
			if !errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), "the index lacks its slice") {
				t.Errorf("%s of %s: %v", way, name, err)
			}
		}
	}
	for range 20 { // in order, not by chance
		_, damaged, err := IntactParts(r)
		if err != nil || len(damaged) != 2 || damaged[0].Name != "columns" || damaged[1].Name != "rows" {
			t.Fatalf("damaged %v, %v", damaged, err)
		}
	}
}

// Runs that are far apart are read one after the other, and each read may fail.
func TestRunsFarApart(t *testing.T) {
	w, prefix := newBundle(t, &BundleWriterOptions{NoSync: true})
	whole := &Tensor{DType: tfpb.DataType_DT_UINT8, Shape: []int64{4, 2 * maxGap}, Data: splitmix64(1, 8*maxGap)}
	if err := errors.Join(w.Add("x", whole), w.Finish()); err != nil {
		t.Fatal(err)
	}
	s := TensorSlice{[]int64{0, 5}, []int64{full, 2}}
	failures := 0
	for n := 1; ; n++ {
		fsys := faultfs.New(n)
		r, err := OpenBundle(prefix, &ReaderOptions{SkipChecksums: true, FS: fsys})
		if err != nil {
			continue
		}
		got, err := r.LookupSlice("x", s)
		if fsys.Failed() == "" {
			if want := cutSlice(whole, s); err != nil || !bytes.Equal(got.Data, want.Data) || failures != 5 {
				t.Errorf("%v, %v; %d failures before, want the opening and four reads", got, err, failures)
			}
			r.Close()
			return
		}
		failures++
		if !errors.Is(err, faultfs.ErrInjected) {
			t.Errorf("%s: %v, %v", fsys.Failed(), got, err)
		}
		r.Close()
	}
}

// What the index has of a tensor counts once, and only where it belongs: the size of a
// partitioned tensor is that of its slices; a slice that a whole tensor does not list
// damages nothing else; damage to a tensor's own entry is not said of its slices too.
func TestWhatIsSaidOfSlices(t *testing.T) {
	prefix := partitioned(t)
	entries := indexEntries(t, prefix)
	for info, err := range openBundle(t, prefix, nil).Tensors() {
		if err != nil || info.Name == "w" && info.Bytes != 32 {
			t.Errorf("%+v, %v", info, err)
		}
	}
	verdicts := func() (bad []string) {
		for name, err := range openBundle(t, prefix, nil).Verify(t.Context()) {
			if err != nil {
				bad = append(bad, name)
			}
		}
		return bad
	}
	stray := string(sliceKey("other", TensorSlice{[]int64{0}, []int64{1}}))
	entries[stray] = (&bundleEntry{dtype: tfpb.DataType_DT_FLOAT, shape: []int64{1}, size: 4, crc: 1}).append(nil)
	writeIndexFile(t, prefix, entries)
	if _, damaged, err := IntactParts(openBundle(t, prefix, nil)); err != nil || len(damaged) > 0 {
		t.Errorf("a stray slice damages %v, %v", damaged, err)
	}
	if bad := verdicts(); len(bad) != 1 || bad[0] != "other 0,1" {
		t.Errorf("a stray slice: bad %q", bad)
	}
	delete(entries, stray)
	entries["w"] = []byte{0xff}
	writeIndexFile(t, prefix, entries)
	if bad := verdicts(); len(bad) != 1 || bad[0] != "w" {
		t.Errorf("a damaged entry: bad %q", bad)
	}
	delete(entries, "w")
	writeIndexFile(t, prefix, entries)
	if bad := verdicts(); len(bad) != 4 {
		t.Errorf("no entry: bad %q", bad)
	}
}

// A slice whose entry cannot be read is damage of the tensor that lists it.
func TestDamagedEntryOfSlice(t *testing.T) {
	prefix := partitioned(t)
	entries := indexEntries(t, prefix)
	for key := range entries {
		if key != "" && key != "w" {
			entries[key] = []byte{0xff}
		}
	}
	writeIndexFile(t, prefix, entries)
	if got, err := openBundle(t, prefix, nil).Lookup("w"); !errors.As(err, new(*CorruptError)) || errors.Is(err, ErrNotFound) {
		t.Errorf("%v, %v", got, err)
	}
}
