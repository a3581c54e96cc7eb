package hdf5

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

// walkedIn returns what a walk finds, with blocks of the usual form read as such or, without
// windows on the pages, field by field.
func walkedIn(b []byte, windows bool) (found string, plain int) {
	s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, name: "f"}
	root, err := s.superblock()
	if err != nil {
		return err.Error(), 0
	}
	t := newTree(s, 1)
	if t.s.alone = windows; windows {
		if _, _, ok := t.plainGroup(root); ok {
			plain++
		}
		t.s.spent = 0
	}
	if err := t.walk(root, nil); err != nil {
		return err.Error(), plain
	}
	for _, d := range t.datasets {
		found += fmt.Sprintln(d.path, d.at, d.shape, d.t.dtype, d.err)
	}
	return found, plain
}

// TestPlainGroups reads a file whose groups have the usual form, and changes bytes all over
// it: what is found, or is wrong, is the same both ways.
func TestPlainGroups(t *testing.T) {
	b, err := os.ReadFile("../../fixtures/keras/model.weights.h5")
	if err != nil {
		t.Fatal(err)
	}
	const step = 41 // so that each field of some block is met
	plain := 0
	for i := 0; i < len(b); i += step {
		old := b[i]
		b[i] += byte(1 + i%3)
		quick, n := walkedIn(b, true)
		slow, _ := walkedIn(b, false)
		if plain += n; quick != slow {
			t.Fatalf("byte %d: got %s, want %s", i, quick, slow)
		}
		b[i] = old
	}
	if plain == 0 {
		t.Error("no group has the usual form")
	}
}

// TestPlainBlocks reads each block of the usual form of a group with one dataset, and leaves those
// that are not of that form.
func TestPlainBlocks(t *testing.T) {
	whole := written(t, []string{"x"}, nil)
	header := len(whole) - 8 - plainGroup // the elements are the last 8 bytes
	open := func(at int, v ...byte) *tree {
		b := slices.Clone(whole)
		copy(b[at:], v)
		s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, name: "f", offsets: 8, lengths: 8}
		return newTree(s, 1)
	}
	none := u64s(unwritten)
	treeAt, heapAt, ok := open(0).plainGroup(int64(header))
	if !ok || string(whole[treeAt:][:4]) != sigTree || string(whole[heapAt:][:4]) != sigLocalHeap {
		t.Fatalf("the group is at %d and %d, %v", treeAt, heapAt, ok)
	}
	for i := range plainBody {
		unread := i >= plainLinks && i < plainFrom || i >= plainFrom+len(plainTable) // the number of references, and filling
		if _, _, ok := open(header+i, whole[header+i]^1).plainGroup(int64(header)); ok && !unread {
			t.Errorf("a group whose byte %d is another", i)
		}
	}
	for _, at := range []int{plainBody, plainBody + 8} {
		if _, _, ok := open(header+at, none...).plainGroup(int64(header)); ok {
			t.Errorf("a group without an address at %d", at)
		}
	}
	names, size, ok := open(0).s.plainHeap(heapAt)
	if !ok || names != heapAt+plainHeap || size != 16 {
		t.Errorf("the heap is at %d, %d bytes, %v", names, size, ok)
	}
	for _, at := range []int{plainHeapSize, plainHeapAt} {
		if _, _, ok := open(int(heapAt)+at, none...).s.plainHeap(heapAt); ok {
			t.Errorf("a heap without a number at %d", at)
		}
	}
	if _, _, ok := open(int(heapAt)+3, 'X').s.plainHeap(heapAt); ok {
		t.Error("a heap that is none")
	}
	leaf := open(0)
	if !leaf.plainLeaf(treeAt) || len(leaf.nodes) != 1 {
		t.Fatalf("the leaf has the children %v", leaf.nodes)
	}
	for at, v := range map[int][]byte{3: {'X'}, 4: {1}, 5: {1}, plainCount: {2}, plainNode + plainChild: none} {
		if x := open(int(treeAt)+at, v...); x.plainLeaf(treeAt) || len(x.nodes) != 0 {
			t.Errorf("a leaf with another byte at %d has the children %v", at, x.nodes)
		}
	}
	node, heap := leaf.nodes[0], whole[names:names+size]
	links, ok := open(0).s.plainSymbol(nil, node, heap)
	if !ok || len(links) != 1 || string(links[0].name) != "x" || links[0].at <= 0 || links[0].at >= int64(header) {
		t.Errorf("the entry is %v, %v", links, ok)
	}
	for at, v := range map[int][]byte{3: {'X'}, plainCount: {2}, 8: {99}, 16: none, 24: {softLink}} {
		if links, ok := open(int(node)+at, v...).s.plainSymbol(nil, node, heap); ok || len(links) != 0 {
			t.Errorf("an entry with another byte at %d is %v", at, links)
		}
	}
}

// TestBytesThatAreSeen asks for bytes at the ends of a file, whose first 100 may be the user's.
func TestBytesThatAreSeen(t *testing.T) {
	for _, c := range []struct {
		base, at, n      int64
		offsets, lengths int
		ok               bool
	}{
		{0, 0, 10, 8, 8, true}, {0, -1, 10, 8, 8, false}, {0, 990, 10, 8, 8, true}, {0, 991, 10, 8, 8, false}, {0, 5000, 10, 8, 8, false},
		{100, 890, 10, 8, 8, true}, {100, 891, 10, 8, 8, false}, {100, 1090, 10, 8, 8, false}, {100, -1, 10, 8, 8, false},
		{0, 0, 10, 4, 8, false}, {0, 0, 10, 8, 4, false}, {0, 0, 10, 7, 8, false}, {0, 0, 10, 8, 7, false},
	} {
		b := make([]byte, 1000)
		for i := range b {
			b[i] = byte(i % 251)
		}
		s := (&store{pager: &pager{from: bytes.NewReader(b), size: 1000}, base: c.base, offsets: c.offsets, lengths: c.lengths}).walker()
		got := s.seen(c.at, c.n)
		if (got != nil) != c.ok || c.ok && !bytes.Equal(got, b[c.base+c.at:][:c.n]) {
			t.Errorf("%v: %v", c, got)
		}
	}
	for v, want := range map[uint64]int64{7: 7, math.MaxInt64 / 2: math.MaxInt64 / 2, math.MaxInt64/2 + 1: nowhere, math.MaxUint64: nowhere} {
		if got := plainAddress(u64s(v)); got != want {
			t.Errorf("%d is the address %d, want %d", v, got, want)
		}
	}
}
