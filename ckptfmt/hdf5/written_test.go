package hdf5

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// writtenTree is the tree of the root group of a file, as a program sees it that finds names by the
// keys in its nodes.
type writtenTree struct {
	t      *testing.T
	b      []byte
	names  uint64     // where they are
	levels [][]uint64 // nodes, from left to right; entries are level 0
	found  []string
}

func (w *writtenTree) name(at uint64) string {
	name, _, _ := bytes.Cut(w.b[w.names+at:], []byte{0})
	return string(name)
}

// node checks what is under a node, whose names are after one and up to another.
func (w *writtenTree) node(at uint64, level int, after, last string) {
	for len(w.levels) <= level {
		w.levels = append(w.levels, nil)
	}
	w.levels[level] = append(w.levels[level], at)
	if level == 0 {
		w.entries(at, after, last)
		return
	}
	b := w.b[at:]
	n := int(le.Uint16(b[plainCount:]))
	if string(b[:4]) != sigTree || b[4] != treeGroups || int(b[5]) != level-1 || n > 2*innerRank {
		w.t.Fatalf("the node at %d begins with %q, and has %d children", at, b[:8], n)
	}
	key := func(i int) string { return w.name(le.Uint64(b[plainNode+16*i:])) }
	if n > 0 && (key(0) != after || key(n) != last) {
		w.t.Errorf("the names under the node at %d are from %q to %q, its keys %q and %q", at, after, last, key(0), key(n))
	}
	for i := range n {
		w.node(le.Uint64(b[plainNode+16*i+8:]), level-1, key(i), key(i+1))
	}
}

func (w *writtenTree) entries(at uint64, after, last string) {
	b := w.b[at:]
	n := int(le.Uint16(b[plainCount:]))
	if string(b[:4]) != sigSymbols || n == 0 || n > 2*leafRank {
		w.t.Fatalf("the entries at %d begin with %q", at, b[:8])
	}
	for i := range n {
		name := w.name(le.Uint64(b[8+symbolSize*i:]))
		if name <= after {
			w.t.Errorf("%q is after %q", name, after)
		}
		w.found, after = append(w.found, name), name
	}
	if after != last {
		w.t.Errorf("the last name of the entries at %d is %q, the key %q", at, after, last)
	}
}

// TestTreesThatAreWritten follows the keys of a group of so many names, and from each node to the
// next one on its level.
func TestTreesThatAreWritten(t *testing.T) {
	for _, n := range []int{0, 1, 8, 9, 256, 257, 600, 8193} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("w%05d", i))
		}
		b := written(t, names, Attrs{"": {"name": "top"}})
		r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.store.header(int64(le.Uint64(b[64:])))
		m, ok := find(list, msgSymbolTable)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		w := &writtenTree{t: t, b: b, names: le.Uint64(m.body[8:]) + plainHeap}
		tree := le.Uint64(m.body)
		last := ""
		if n > 0 {
			last = names[n-1]
		}
		w.node(tree, int(b[tree+treeLevelAt])+1, "", last)
		if !slices.Equal(w.found, names) {
			t.Errorf("%d names are found, want %d", len(w.found), n)
		}
		for _, level := range w.levels[1:] {
			for i, at := range level {
				left, right := uint64(unwritten), uint64(unwritten)
				if i > 0 {
					left = level[i-1]
				}
				if i < len(level)-1 {
					right = level[i+1]
				}
				if le.Uint64(b[at+8:]) != left || le.Uint64(b[at+16:]) != right {
					t.Errorf("the node at %d is between %d and %d, want %d and %d", at, le.Uint64(b[at+8:]), le.Uint64(b[at+16:]), left, right)
				}
			}
		}
	}
}

// checkCollections writes attributes, and follows the collections of their texts.
func checkCollections(t *testing.T, attrs Attrs, collections int) {
	t.Helper()
	b := written(t, nil, attrs)
	r, err := NewReader(bytes.NewReader(b), int64(len(b)), "f.h5")
	if err != nil {
		t.Fatal(err)
	}
	for path, list := range attrs {
		for name, want := range list {
			if got, err := r.Attr(path, name); err != nil || !slices.Equal(got, []string{want}) {
				t.Fatalf("%s of %s is %q, %v, want %q", name, path, got, err, want)
			}
		}
	}
	at := uint64(superSize) // of the collections, which follow each other
	for range collections {
		size := le.Uint64(b[at+8:])
		if string(b[at:at+4]) != sigGlobalHeap || size < heapMinimum || size%8 != 0 {
			t.Fatalf("the collection at %d has %d bytes", at, size)
		}
		if end := at + size; checkFree(b[at:end]) != nil {
			t.Fatal(checkFree(b[at:end]))
		}
		at += size
	}
}

// TestManyAttributes has more texts than one collection takes.
func TestManyAttributes(t *testing.T) {
	attrs := make(Attrs)
	for i := range 66000 {
		attrs.set(fmt.Sprint("g", i/100), fmt.Sprint("name", i%100), fmt.Sprint("text ", i))
	}
	checkCollections(t, attrs, 2)
}

func TestCollectionsOfAllSizes(t *testing.T) {
	for n := heapMinimum - 64; n < heapMinimum; n += 3 {
		checkCollections(t, Attrs{"": {"name": strings.Repeat("x", n)}}, 1)
	}
}

func TestOrderOfAttributes(t *testing.T) {
	several := Attrs{"": {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6"}}
	for range 8 { // the order of the map is another one each time
		b := written(t, nil, several)
		if places := placesOf(b, "a\x00", "b\x00", "c\x00", "d\x00", "e\x00", "f\x00"); !slices.IsSorted(places) {
			t.Fatalf("the attributes are at %v", places)
		}
	}
}

// placesOf returns where texts are last in a file.
func placesOf(b []byte, texts ...string) (list []int) {
	for _, text := range texts {
		list = append(list, bytes.LastIndex(b, []byte(text+"\x00")))
	}
	return list
}

// checkFree insists that the last object of a collection is what is free, to its end.
func checkFree(b []byte) error {
	at := 16
	for {
		index, n := le.Uint16(b[at:]), int(le.Uint64(b[at+8:]))
		if index == 0 {
			if at+n != len(b) {
				return fmt.Errorf("%d bytes are free from %d on, of %d", n, at, len(b))
			}
			return nil
		}
		at += 16 + (n+7)/8*8
	}
}

// TestWriteFails has parts that are refused, and readers and a writer that fail.
func TestWriteFails(t *testing.T) {
	part := func(name string, shape ...int64) ckptfmt.Part {
		return ckptfmt.WholePart(name, tfpb.DataType_DT_UINT8, shape, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abcdefgh")), nil })
	}
	of := func(change func(p *ckptfmt.Part)) []ckptfmt.Part {
		p := part("x", 8)
		change(&p)
		return []ckptfmt.Part{p}
	}
	ones := func(n int) []int64 { return append(slices.Repeat([]int64{1}, n-1), 8) }
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		parts []ckptfmt.Part
		attrs Attrs
		err   string
	}{
		{"nothing", nil, nil, ""},
		{"32 dimensions", []ckptfmt.Part{part("x", ones(maxRank)...)}, nil, ""},
		{"33 dimensions", []ckptfmt.Part{part("x", ones(maxRank+1)...)}, nil, `"x" has 33 dimensions; HDF5 has at most 32`},
		{"a part that is damaged", of(func(p *ckptfmt.Part) { p.Err = broken }), nil, "broken"},
		{"a foreign type", of(func(p *ckptfmt.Part) { p.Foreign = "F4" }), nil, "HDF5 has no F4 that h5py reads"},
		{"a type that HDF5 lacks", of(func(p *ckptfmt.Part) { p.DType = tfpb.DataType_DT_QINT8 }), nil, `"x": `},
		{"a dot for a name", []ckptfmt.Part{part("a/./b", 8)}, nil, `the name "a/./b" cannot be a path in HDF5`},
		{"two dots", []ckptfmt.Part{part("a/../b", 8)}, nil, ""},
		{"no name", []ckptfmt.Part{part("", 8)}, nil, `the name "" cannot be`},
		{"a zero in a name", []ckptfmt.Part{part("a\x00b", 8)}, nil, "cannot be a path"},
		{"the same name", []ckptfmt.Part{part("x", 8), part("x", 8)}, nil, `HDF5 cannot hold "x" next to a tensor of that name`},
		{"a tensor for a group", []ckptfmt.Part{part("x", 8), part("x/y", 8)}, nil, `HDF5 cannot hold a tensor "x" next to others whose names begin with "x/"`},
		{"a group for a tensor", []ckptfmt.Part{part("x/y", 8), part("x", 8)}, nil, `HDF5 cannot hold "x" next to a tensor`},
		{"attributes below a tensor", []ckptfmt.Part{part("x", 8)}, Attrs{"x/y": {"a": "b"}}, `HDF5 cannot hold a tensor "x"`},
		{"more than can be counted", []ckptfmt.Part{part("x", 1<<40, 1<<40)}, nil, "more elements than"},
		{"no reader", of(func(p *ckptfmt.Part) { p.Open = func() (io.ReadCloser, error) { return nil, broken } }), nil, "broken"},
		{"a reader that fails", of(func(p *ckptfmt.Part) {
			p.Open = func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader("abcdefgh"), failing{broken})), nil
			}
		}), nil, "broken"},
		{"a reader with fewer bytes", []ckptfmt.Part{part("x", 9)}, nil, `tensor "x" has 8 bytes, its shape [9] needs 9`},
		{"a reader with more", []ckptfmt.Part{part("x", 7)}, nil, `tensor "x" has 8 bytes, its shape [7] needs 7`},
	} {
		err := Write(t.Context(), io.Discard, c.parts, c.attrs)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		}
	}
	if err := Check(of(func(p *ckptfmt.Part) { p.Err = broken })[0]); !errors.Is(err, broken) {
		t.Errorf("a part that is damaged: %v", err)
	}
	var whole bytes.Buffer
	if err := Write(t.Context(), &whole, []ckptfmt.Part{part("x", 8), part("y", 8)}, nil); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if err := Write(t.Context(), &limited{left: n, err: broken}, []ckptfmt.Part{part("x", 8), part("y", 8)}, nil); !errors.Is(err, broken) {
			t.Fatalf("a writer that fails after %d bytes: %v", n, err)
		}
	}
	odd := ckptfmt.WholePart("x", tfpb.DataType_DT_UINT8, []int64{3}, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil })
	whole.Reset()
	if err := Write(t.Context(), &whole, []ckptfmt.Part{odd}, nil); err != nil || whole.Len()%8 != 0 {
		t.Fatalf("%d bytes, %v", whole.Len(), err)
	}
	if err := Write(t.Context(), &limited{left: whole.Len() - 5, err: broken}, []ckptfmt.Part{odd}, nil); !errors.Is(err, broken) {
		t.Errorf("a writer that fails after the elements: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Write(ctx, io.Discard, []ckptfmt.Part{part("x", 8)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a writer that is stopped: %v", err)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// limited is a writer with room for so many bytes.
type limited struct {
	left int
	err  error
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, l.err
	}
	return len(b), nil
}
