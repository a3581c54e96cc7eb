package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/sstable"
)

// indexEntries returns the entries of an index, the header among them.
func indexEntries(t *testing.T, prefix string) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile(layout.IndexName(prefix))
	if err != nil {
		t.Fatal(err)
	}
	r, err := sstable.NewReader(strings.NewReader(string(b)), int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	entries := make(map[string][]byte)
	for e, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		entries[string(e.Key)] = slices.Clone(e.Value)
	}
	return entries
}

// partitioned saves a tensor "w" of shape [4,2] in slices of one row, and
// "other", which is whole.
func partitioned(t *testing.T) string {
	t.Helper()
	w, prefix := newBundle(t, nil)
	for i := range 4 {
		row, err := FromValues([]int64{1, 2}, []float32{float32(i), 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddSlice("w", []int64{4, 2}, rowSlice(int64(i), 1), row); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Add("other", Scalar(int64(1))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	return prefix
}

func rowSlice(start, n int64) TensorSlice {
	return TensorSlice{Start: []int64{start, 0}, Length: []int64{n, full}}
}

// changeEntry decodes an entry, changes it and encodes it again.
func changeEntry(t *testing.T, entries map[string][]byte, key string, change func(*bundleEntry)) {
	t.Helper()
	e, err := parseBundleEntry(entries[key])
	if err != nil {
		t.Fatal(err)
	}
	change(&e)
	entries[key] = e.append(nil)
}

// What an index may lack of a partitioned tensor, and which tensor that damages.
func TestSlicesMustCoverTheirTensor(t *testing.T) {
	key := func(i int64) string { return string(sliceKey("w", rowSlice(i, 1))) }
	for _, tc := range []struct {
		name   string
		change func(map[string][]byte)
		want   string // in the error; "" where TensorFlow reads all
		verify bool   // finds something all the same
	}{
		{name: "nothing", change: func(map[string][]byte) {}},
		{name: "one slice", change: func(m map[string][]byte) { delete(m, key(2)) }, want: `the index lacks its slice "2,1:-"`},
		{name: "all slices", change: func(m map[string][]byte) {
			for i := range int64(4) {
				delete(m, key(i))
			}
		}, want: `the index lacks its slice "0,1:-"`},
		{name: "one slice, also in the list", change: func(m map[string][]byte) {
			delete(m, key(1))
			changeEntry(t, m, "w", func(e *bundleEntry) { e.slices = slices.Delete(e.slices, 1, 2) })
		}, want: "the stored slices hold 6 of 8 elements; missing: 1,1:0,2"},
		{name: "the tensor's own entry", change: func(m map[string][]byte) { delete(m, "w") }, want: `tensor "w" has no entry of its own`},
		{name: "the place of a slice", change: func(m map[string][]byte) {
			changeEntry(t, m, key(3), func(e *bundleEntry) { e.shard = 7 })
		}, want: "shard 7 of 1"},
		{name: "the type of a slice", change: func(m map[string][]byte) {
			changeEntry(t, m, key(3), func(e *bundleEntry) { e.dtype = 3 })
		}, want: `slice "3,1:-" is int32`},
		{name: "a slice that is not listed", change: func(m map[string][]byte) {
			m[string(sliceKey("w", rowSlice(0, 2)))] = m[key(0)]
			changeEntry(t, m, string(sliceKey("w", rowSlice(0, 2))), func(e *bundleEntry) { e.shape = []int64{1, 2} })
		}, verify: true},
		{name: "a slice listed twice", change: func(m map[string][]byte) {
			changeEntry(t, m, "w", func(e *bundleEntry) { e.slices = append(e.slices, e.slices[0]) })
		}, want: "overlapping slices"},
		{name: "a slice that is the tensor", change: func(m map[string][]byte) {
			changeEntry(t, m, "w", func(e *bundleEntry) { e.slices = []TensorSlice{FullSlice(2)} })
		}, want: `the list of slices has all of the tensor, "-:-"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prefix := partitioned(t)
			entries := indexEntries(t, prefix)
			tc.change(entries)
			writeIndexFile(t, prefix, entries)
			if err := verifyAll(t, prefix); (err != nil) != (tc.want != "" || tc.verify) {
				t.Errorf("Verify: %v", err)
			}
			checkStored(t, prefix, tc.want)
		})
	}
}

// checkStored checks that "w" is damaged in that way, nothing else is, and a
// copy says so; without "w" it is made.
func checkStored(t *testing.T, prefix, want string) {
	t.Helper()
	r, err := Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parts, damaged, err := IntactParts(r)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(parts, func(p Part) bool { return p.Name == "other" }) {
		t.Error("the other tensor is lost")
	}
	for info, err := range r.Tensors() {
		if bad := want != "" && info.Name != "other"; bad != (err != nil) {
			t.Errorf("listing %q: %v, want an error: %v", info.Name, err, bad)
		}
	}
	to := filepath.Join(t.TempDir(), "copy")
	err = copyParts(prefix, to, "")
	if want == "" {
		if len(damaged) > 0 || err != nil {
			t.Errorf("damaged %v, copying: %v", damaged, err)
		}
		return
	}
	if len(damaged) != 1 || damaged[0].Name != "w" || !strings.Contains(damaged[0].Err.Error(), want) {
		t.Errorf("damaged %v, want %q", damaged, want)
	}
	if err == nil || !strings.Contains(err.Error(), want) || layout.Exists(to) {
		t.Errorf("copying: %v", err)
	}
	if err := copyParts(prefix, to, "w"); err != nil {
		t.Errorf("copying the others: %v", err)
	}
}

// copyParts writes what a checkpoint holds, but for the tensor of one name.
func copyParts(from, to, without string) (err error) {
	r, err := Open(from, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	parts, damaged, err := IntactParts(r)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		if d.Name != without {
			return d.Err
		}
	}
	w, err := CreateBundle(to, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, p := range parts {
		if p.Name == without {
			continue
		}
		if err := w.AddPart(p); err != nil {
			return err
		}
	}
	return w.Finish()
}

// One bad entry hides no other, and the error says where it is.
func TestBadEntryIsLocated(t *testing.T) {
	prefix := partitioned(t)
	entries := indexEntries(t, prefix)
	changeEntry(t, entries, "other", func(e *bundleEntry) { e.size = 7 })
	writeIndexFile(t, prefix, entries)
	index, err := os.ReadFile(layout.IndexName(prefix))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for info, err := range r.Tensors() {
		names = append(names, info.Name)
		var corrupt *CorruptError
		if errors.As(err, &corrupt) != (info.Name == "other") {
			t.Errorf("%s: %v", info.Name, err)
		}
		if corrupt != nil && !strings.Contains(string(index[corrupt.Offset:corrupt.Offset+8]), "other") {
			t.Errorf("%v: there is %q", err, index[corrupt.Offset:corrupt.Offset+8])
		}
	}
	if !slices.Equal(names, []string{"other", "w"}) {
		t.Errorf("names %q", names)
	}
}

// Parts that are not of one tensor are not merged, although they cover it.
func TestMergeOfOtherSlices(t *testing.T) {
	for name, change := range map[string]func(*bundleEntry){
		"type":  func(e *bundleEntry) { e.dtype = 3 },
		"shape": func(e *bundleEntry) { e.shape = []int64{2, 1} },
	} {
		prefix := partitioned(t)
		entries := indexEntries(t, prefix)
		changeEntry(t, entries, string(sliceKey("w", rowSlice(3, 1))), change)
		writeIndexFile(t, prefix, entries)
		merged := filepath.Join(t.TempDir(), "merged")
		err := MergeBundles(t.Context(), []string{prefix}, merged, &MergeOptions{RequireWhole: true})
		if !errors.Is(err, ErrSlices) || !strings.Contains(err.Error(), `tensor "w": slice "3,1:-" is `) || layout.Exists(merged) {
			t.Errorf("%s: %v", name, err)
		}
		if !layout.Exists(prefix) {
			t.Errorf("%s: the input is gone", name)
		}
	}
}

// A data file that is not there is damage of the tensors in it, and of no others.
func TestMissingDataFile(t *testing.T) {
	dir := t.TempDir()
	var parts []string
	for _, name := range []string{"here", "lost"} {
		parts = append(parts, filepath.Join(dir, name))
		w, err := CreateBundle(parts[len(parts)-1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Add(name, Scalar(int64(1))), w.Finish()); err != nil {
			t.Fatal(err)
		}
	}
	prefix := filepath.Join(dir, "model.ckpt")
	if err := MergeBundles(t.Context(), parts, prefix, nil); err != nil {
		t.Fatal(err)
	}
	missing := layout.DataName(prefix, 1, 2)
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	r, err := Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Lookup("here"); err != nil {
		t.Error(err)
	}
	_, err = r.Lookup("lost")
	corrupt, ok := errors.AsType[*CorruptError](err)
	if !ok || corrupt.Name != missing || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Lookup: %v", err)
	}
}

// A V1 checkpoint whose slices do not cover their tensor is not copied.
func TestV1SlicesMustCoverTheirTensor(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.ckpt")
	w, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	row, err := FromValues([]int64{1, 2}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.AddSlice("w", []int64{4, 2}, rowSlice(2, 1), row), w.Add("other", Scalar(int64(1))), w.Finish()); err != nil {
		t.Fatal(err)
	}
	checkStored(t, name, "the stored slices hold 2 of 8 elements; missing: 0,2:0,2 and more")
}
