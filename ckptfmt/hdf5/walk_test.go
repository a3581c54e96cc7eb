package hdf5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// largeGroup is a file with a group of many datasets and groups.
func largeGroup(t *testing.T) []byte {
	var names []string
	for i := range 300 {
		name := fmt.Sprintf("top/w%03d", i)
		if i%3 == 0 {
			name += "/inner"
		}
		names = append(names, name)
	}
	return written(t, names, Attrs{"top": {"a": "b"}, "top/w033": {"c": "d"}})
}

// written is a file with datasets of those names.
func written(t *testing.T, names []string, attrs Attrs) []byte {
	var parts []ckptfmt.Part
	for i, name := range names {
		parts = append(parts, ckptfmt.WholePart(name, tfpb.DataType_DT_UINT8, []int64{1}, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte{byte(i)})), nil
		}))
	}
	var b bytes.Buffer
	if err := Write(t.Context(), &b, parts, attrs); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWalkOfLongNames has groups in groups, each with more names than are kept at once.
func TestWalkOfLongNames(t *testing.T) {
	var names []string
	for i := range 1600 {
		names = append(names, fmt.Sprintf("%0150d/%0150d/%0150d", i/400, i/2, i))
	}
	slices.Sort(names)
	b := written(t, names, nil)
	for _, n := range []int{1, 2} {
		got, err := walkedBy(t, b, n)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, d := range got.datasets {
			paths = append(paths, d.path)
		}
		if !slices.Equal(paths, names) {
			t.Errorf("%d goroutines: %d datasets, want those of %d names", n, len(paths), len(names))
		}
	}
}

// walkedBy walks a file by so many goroutines.
func walkedBy(t *testing.T, b []byte, n int) (*tree, error) {
	s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, name: "f.h5"}
	root, err := s.superblock()
	if err != nil {
		t.Fatal(err)
	}
	found := newTree(s, n)
	return found, found.walk(root, nil)
}

// TestWalkApart finds what one goroutine finds, in the same order, and the first error.
func TestWalkApart(t *testing.T) {
	b := largeGroup(t)
	want, err := walkedBy(t, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 8} {
		got, err := walkedBy(t, b, n)
		if err != nil || len(got.datasets) != 300 || len(got.attrs) != len(want.attrs) || got.nameSize != want.nameSize {
			t.Fatalf("%d goroutines: %v, %d datasets, %d objects with attributes", n, err, len(got.datasets), len(got.attrs))
		}
		for i, d := range got.datasets {
			if w := want.datasets[i]; d.path != w.path || d.at != w.at || d.t.dtype != w.t.dtype {
				t.Errorf("%d goroutines: dataset %d is %s, want %s", n, i, d.path, w.path)
			}
		}
	}
	for _, name := range []string{"top/w100", "top/w250"} {
		for _, d := range want.datasets {
			if d.path == name {
				b[d.at] = 0xff
			}
		}
	}
	_, one := walkedBy(t, b, 1)
	_, two := walkedBy(t, b, 2)
	if !errors.As(two, new(*ckptfmt.CorruptError)) || one.Error() != two.Error() || !strings.Contains(two.Error(), "top/w100") {
		t.Errorf("the errors are %v and %v", one, two)
	}
}

// TestTreesOfManyLeaves has a group whose tree has several levels, and a leaf that says that it
// is none.
func TestTreesOfManyLeaves(t *testing.T) {
	var names []string
	for i := range 9000 {
		names = append(names, fmt.Sprintf("w%05d", i))
	}
	b := written(t, names, nil)
	for _, n := range []int{1, 2} {
		got, err := walkedBy(t, b, n)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got.datasets, names, func(d *dataset, name string) bool { return d.path == name }) {
			t.Errorf("%d goroutines: %d datasets, want those of %d names", n, len(got.datasets), len(names))
		}
	}
	b[bytes.LastIndex(b, []byte(sigTree+"\x00\x00"))+treeLevelAt] = 1
	for _, n := range []int{1, 2} {
		_, err := walkedBy(t, b, n)
		if !errors.As(err, new(*ckptfmt.CorruptError)) || !strings.Contains(err.Error(), "it is of level 1, want 0") {
			t.Errorf("%d goroutines: %v", n, err)
		}
	}
}

// TestSeveralLargeGroups has large groups next to each other and within each other: each dataset is found
// once, by one goroutine or by several.
func TestSeveralLargeGroups(t *testing.T) {
	var names []string
	for _, group := range []string{"a/", "b/w100/in/", "b/w101/", "c/"} {
		for i := range 300 {
			names = append(names, fmt.Sprintf("%sw%03d", group, i+100))
		}
	}
	for i := range 300 {
		names = append(names, fmt.Sprintf("b/x%03d", i))
	}
	slices.Sort(names)
	b := written(t, names, Attrs{"a/w200": {"a": "1"}, "c/w200": {"a": "2"}})
	size := int64(0)
	for _, n := range []int{1, 2, 3} {
		got, err := walkedBy(t, b, n)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, d := range got.datasets {
			paths = append(paths, d.path)
		}
		if !slices.Equal(paths, names) || len(got.attrs) != 2 {
			t.Errorf("%d goroutines: %d datasets, %d objects with attributes; want %d and 2", n, len(paths), len(got.attrs), len(names))
		}
		if size == 0 {
			size = got.nameSize
		}
		if size != got.nameSize {
			t.Errorf("%d goroutines: paths of %d bytes, others of %d", n, got.nameSize, size)
		}
	}
}
