package hdf5

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// heapHead is the head of a heap of links: two blocks in a row, the first ones of 64
// bytes, blocks of up to 128 bytes, a root at an address with so many rows.
type heapHead struct {
	filters, width, bits, rows uint16
	start, most, root          uint64
	maxManaged                 uint32
}

func (h heapHead) block() []byte {
	b := append([]byte(sigFractalHeap), 0, 7, 0)
	b = append(le.AppendUint16(b, h.filters), 0)
	b = append(le.AppendUint32(b, h.maxManaged), make([]byte, 12*8)...)
	b = u64sOnto(le.AppendUint16(b, h.width), h.start, h.most)
	b = append(le.AppendUint16(b, h.bits), 0, 0)
	return summed(le.AppendUint16(u64sOnto(b, h.root), h.rows))
}

// heapSizes are those of the blocks of the heap that the tests have.
var heapSizes = heapHead{width: 2, bits: 16, start: 64, most: 128, maxManaged: 64}

// indirectBlock has children at those addresses.
func indirectBlock(children ...uint64) []byte {
	return summed([]byte(sigIndirect), make([]byte, 1+8+2), u64s(children...))
}

// managed is the identifier of an object.
func managed(offset uint16, n byte) []byte {
	return []byte{0, byte(offset), byte(offset >> 8), n, 0, 0, 0}
}

// TestObjectsInHeaps has an object in each kind of block. Offsets in the heap count all blocks, row
// by row: two of 64 bytes, two more, two of 128, and below them indirect ones of 256 and so on.
func TestObjectsInHeaps(t *testing.T) {
	const size = 4096
	file := make([]byte, size)
	at := uint64(512)
	put := func(b []byte) uint64 {
		copy(file[at:], b)
		at += 512
		return at - 512
	}
	fill := func(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }
	below := put(indirectBlock(put(fill('g', 64)), put(fill('h', 64)), unwritten, unwritten)) // 256 bytes: 2 rows of 2 blocks
	root := put(indirectBlock(put(fill('a', 64)), unwritten, unwritten, put(fill('d', 64)), unwritten, put(fill('f', 128)), below, unwritten))
	h := heapSizes
	h.rows, h.root = 4, root
	copy(file, h.block())
	s := &store{pager: &pager{from: bytes.NewReader(file), size: size}, offsets: 8, lengths: 8}
	heap, err := s.fractalHeap(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		offset uint16
		n      byte
		want   string
	}{
		{0, 4, "aaaa"}, {60, 4, "aaaa"}, {61, 4, ""}, {64, 4, ""}, {192, 3, "ddd"}, {255, 1, "d"}, {256, 1, ""}, {384, 64, strings.Repeat("f", 64)},
		{511, 1, "f"}, {512, 2, "gg"}, {576, 2, "hh"}, {640, 1, ""}, {768, 1, ""}, {1024, 1, ""},
	} {
		for _, heap := range []*fractalHeap{heap, heap.on(s.fresh())} {
			got, err := heap.object(managed(c.offset, c.n))
			if string(got) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%d bytes at %d: %q, %v, want %q", c.n, c.offset, got, err, c.want)
			}
		}
	}
	spent := s.spent
	if _, err := heap.object(managed(192, 3)); err != nil || s.spent != spent {
		t.Errorf("a block is read again: %v", err)
	}
}

func TestHeads(t *testing.T) {
	head := func(change func(h *heapHead)) []byte {
		h := heapSizes
		h.root = 512
		change(&h)
		b := make([]byte, 1024)
		copy(b, h.block())
		copy(b[512:], strings.Repeat("x", 64))
		return b
	}
	for _, c := range []struct {
		name   string
		change func(h *heapHead)
		ok     bool
	}{
		{"as it is", func(*heapHead) {}, true},
		{"with filters", func(h *heapHead) { h.filters = 1 }, false},
		{"without columns", func(h *heapHead) { h.width = 0 }, false},
		{"with blocks of 16 bytes", func(h *heapHead) { h.start = 16 }, true},
		{"with blocks of 8 bytes", func(h *heapHead) { h.start = 8 }, false},
		{"with blocks of no power of 2", func(h *heapHead) { h.start = 48 }, false},
		{"with the largest as large as the first", func(h *heapHead) { h.most = 64 }, true},
		{"with the largest smaller than the first", func(h *heapHead) { h.most = 63 }, false},
		{"with offsets of 64 bits", func(h *heapHead) { h.bits = 64 }, true},
		{"with offsets of 65 bits", func(h *heapHead) { h.bits = 65 }, false},
		{"with 64 rows", func(h *heapHead) { h.rows = 64 }, true},
		{"with 65 rows", func(h *heapHead) { h.rows = 65 }, false},
	} {
		b := head(c.change)
		s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, offsets: 8, lengths: 8}
		if _, err := s.fractalHeap(0); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	newer := heapSizes.block()
	newer[4] = 1
	newer = summed(newer[:len(newer)-checksumSize])
	if _, err := (&store{pager: &pager{from: bytes.NewReader(newer), size: int64(len(newer))}, offsets: 8, lengths: 8}).fractalHeap(0); err == nil || !strings.Contains(err.Error(), "a heap has version 1") {
		t.Errorf("a newer one: %v", err)
	}
	b := head(func(*heapHead) {})
	s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, offsets: 8, lengths: 8}
	heap, err := s.fractalHeap(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   []byte
		want string
	}{
		{managed(60, 4), "xxxx"},
		{managed(60, 5), "it is damaged: outside of a block"},
		{[]byte{objectTiny<<4 | 1, 'a', 'b', 0, 0, 0, 0}, "ab"},
		{[]byte{objectTiny<<4 | 5, 'a', 'b', 'c', 'd', 'e', 'f'}, "abcdef"},
		{[]byte{objectTiny<<4 | 6, 'a', 'b', 'c', 'd', 'e', 'f'}, "it is damaged: it ends early"},
		{[]byte{objectHuge << 4, 0, 0, 0, 0, 0, 0}, "it is damaged: too large for the heap's blocks"},
		{nil, "it is damaged: it ends early"},
		{[]byte{0, 1}, "it is damaged: it ends early"},
	} {
		got, err := heap.object(c.id)
		damage, damaged := strings.CutPrefix(c.want, "it is damaged: ")
		if damaged != (err != nil) || damaged && !strings.Contains(err.Error(), damage) || !damaged && string(got) != c.want {
			t.Errorf("identifier %x: %q, %v, want %q", c.id, got, err, c.want)
		}
	}
	for n := range 10 {
		id, err := heap.id(make([]byte, n))
		if fits := n >= 3 && n <= 8; (err == nil) != fits {
			t.Errorf("an identifier of %d bytes: %v, %v", n, id, err)
		}
	}
	if id, err := heap.id([]byte{objectTiny << 4, 9, 9, 9, 9, 9, 9}); err != nil || id.offset != 0 {
		t.Errorf("what is in an identifier is at %d, %v", id.offset, err)
	}
}

// TestWidthsInHeaps has lengths whose width follows from the largest block, or object.
func TestWidthsInHeaps(t *testing.T) {
	for _, c := range []struct {
		most, managed uint64
		bits          uint16
		offset, width int
	}{
		{128, 64, 16, 2, 1}, {128, 255, 17, 3, 1}, {256, 255, 15, 2, 1}, {256, 256, 8, 1, 2}, {65536, 4096, 32, 4, 2}, {65536, 65536, 40, 5, 3},
	} {
		h := heapSizes
		h.most, h.maxManaged, h.bits, h.root = c.most, uint32(c.managed), c.bits, 512
		b := append(h.block(), make([]byte, 1024)...)
		s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, offsets: 8, lengths: 8}
		heap, err := s.fractalHeap(0)
		if err != nil || heap.offset != c.offset || heap.length != c.width {
			t.Errorf("%s: %v, %v", fmt.Sprint(c), heap, err)
		}
	}
}
