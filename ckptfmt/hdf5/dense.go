package hdf5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Kinds of records in trees of version 2.
const (
	recordLink          = 5
	recordAttribute     = 8
	recordChunk         = 10
	recordFilteredChunk = 11
)

// tree2 is a tree of version 2.
type tree2 struct {
	s        *store
	node     int64 // size of a node
	record   int
	countLen int   // width of the number of records of a child
	totalLen []int // width of the number of records under a child, by depth
	f        func(record *cursor) error
}

const nodeOverhead = 10 // signature, version, kind, checksum

// eachRecord calls f for the records of a tree of version 2.
func (s *store) eachRecord(addr int64, kind int, f func(record *cursor) error) error {
	c := s.checked(addr, int64(4+1+1+4+2+2+1+1+s.offsets+2+s.lengths+checksumSize), sigTree2)
	c.version("a tree", 0, 0)
	t := &tree2{s: s, f: f}
	got := c.u8()
	t.node, t.record = int64(c.u32()), c.u16()
	depth := c.u16()
	c.skip(2)
	root, n := c.addr(), c.u16()
	switch {
	case c.err != nil:
	case got != kind:
		c.fail("it has records of kind %d, want %d", got, kind)
	case depth > 32 || t.record == 0 || t.node <= nodeOverhead+int64(t.record):
		c.fail("depth %d, nodes of %d bytes, records of %d", depth, t.node, t.record)
	}
	if c.err != nil {
		return s.corrupt(addr, "tree", c.err)
	}
	t.measure(depth)
	if root == nowhere || n == 0 {
		return nil
	}
	return t.walk(root, n, depth)
}

// measure finds the widths of numbers in inner nodes, which follow from the most
// records that a node can have.
func (t *tree2) measure(depth int) {
	width := func(n int64) int { return (bits.Len64(uint64(n))-1)/8 + 1 }
	most := (t.node - nodeOverhead) / int64(t.record)
	t.countLen = width(most)
	t.totalLen = make([]int, depth+1)
	total := most
	for d := 1; d <= depth; d++ {
		pointer := int64(t.s.offsets + t.countLen + t.totalLen[d-1])
		most := max((t.node-nodeOverhead-pointer)/(int64(t.record)+pointer), 1)
		if total <= (1<<62)/(most+1) { // more are in no file
			total = (most+1)*total + most
		}
		t.totalLen[d] = width(total)
	}
}

func (t *tree2) walk(addr int64, n, depth int) error {
	s, signature := t.s, sigTree2Leaf
	size := int64(nodeOverhead + n*t.record)
	if depth > 0 {
		signature = sigTree2Inner
		size += int64((n + 1) * (s.offsets + t.countLen + t.totalLen[depth-1]))
	}
	if size > t.node {
		return s.corrupt(addr, "tree", fmt.Errorf("%d records are more than a node has", n))
	}
	c := s.checked(addr, size, signature)
	c.version("a node", 0, 0)
	c.skip(1)
	records := c.bytes(n * t.record)
	if c.err != nil {
		return s.corrupt(addr, "tree", c.err)
	}
	record := new(cursor) // one for all: what is called may keep none
	for i := range n {
		*record = s.over(records[i*t.record : (i+1)*t.record])
		if err := t.f(record); err != nil {
			return s.damage(addr, "tree", err)
		}
	}
	for i := 0; depth > 0 && i <= n; i++ {
		child := c.addr()
		count := int(c.uint(t.countLen))
		c.skip(t.totalLen[depth-1])
		if c.err != nil {
			return s.corrupt(addr, "tree", c.err)
		}
		if err := t.walk(child, count, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// fractalHeap is a heap of links or attributes.
type fractalHeap struct {
	s         *store
	offset    int // width of offsets in it
	length    int // width of lengths in it
	checked   bool
	width     int // blocks in a row
	start     int64
	maxDirect int64
	rows      int // 0: the root is a direct block
	root      int64
	size      int64 // of the root, if it is a direct block

	// What was read, by its address: the names of a large group are all over its heap.
	blocks   map[int64][]byte
	children map[int64][]int64 // of indirect blocks

	last struct { // block that an object was in
		from int64 // offset of the block in the heap
		at   int64 // of the object in the block
		b    []byte
	}
}

// on returns the heap for another store.
func (h *fractalHeap) on(s *store) *fractalHeap {
	if h.s == s {
		return h
	}
	c := *h
	c.s, c.blocks, c.children = s, make(map[int64][]byte), maps.Clone(h.children)
	c.last.b = nil
	return &c
}

// heapID is an identifier of a link, and where in the heap it is.
type heapID struct {
	offset int64
	raw    [8]byte
}

// id returns an identifier. A tree has very many.
func (h *fractalHeap) id(b []byte) (id heapID, err error) {
	if len(b) == 0 || len(b) > len(id.raw) {
		return id, fmt.Errorf("an identifier in a heap has %d bytes", len(b))
	}
	copy(id.raw[:], b)
	if b[0]>>4&3 != objectManaged {
		return id, nil
	}
	if len(b) <= h.offset {
		return id, errShort
	}
	id.offset = int64(binary.LittleEndian.Uint64(id.raw[:]) >> 8 & (1<<(8*h.offset) - 1))
	return id, nil
}

// fractalHeap reads the head of a heap.
func (s *store) fractalHeap(addr int64) (*fractalHeap, error) {
	c := s.checked(addr, int64(4+1+2+2+1+4+12*s.lengths+3*s.offsets+2+2+2+2+checksumSize), sigFractalHeap)
	c.version("a heap", 0, 0)
	c.skip(2) // length of identifiers
	filters, flags := c.u16(), c.u8()
	maxManaged := int64(c.u32())
	c.skip(s.lengths + s.offsets + s.lengths + s.offsets + 8*s.lengths)
	h := &fractalHeap{s: s, checked: flags&2 != 0, width: c.u16(), blocks: make(map[int64][]byte), children: make(map[int64][]int64)}
	h.start, h.maxDirect = c.length(), c.length()
	heapBits := c.u16()
	c.skip(2)
	h.root, h.rows = c.addr(), c.u16()
	h.offset = (heapBits + 7) / 8
	h.length = (bits.Len64(uint64(min(h.maxDirect, maxManaged)))-1)/8 + 1
	h.size = h.start
	switch {
	case c.err != nil:
	case filters != 0:
		c.fail("heaps with filters are not supported")
	case h.width == 0 || h.start < 16 || h.maxDirect < h.start || h.start&(h.start-1) != 0 || heapBits > 64 || h.rows > 64:
		c.fail("blocks of %d to %d bytes in rows of %d, offsets of %d bits", h.start, h.maxDirect, h.width, heapBits)
	}
	if c.err != nil {
		return nil, s.corrupt(addr, "heap", c.err)
	}
	return h, nil
}

// Kinds of identifiers of objects in a heap.
const (
	objectManaged = 0
	objectHuge    = 1
	objectTiny    = 2
)

// object returns what an identifier names.
func (h *fractalHeap) object(id []byte) ([]byte, error) {
	if len(id) == 0 {
		return nil, errShort
	}
	switch id[0] >> 4 & 3 {
	case objectTiny:
		n := int(id[0]&0x0f) + 1
		if n > len(id)-1 {
			return nil, errShort
		}
		return id[1 : n+1], nil
	case objectHuge:
		return nil, errors.New("it is too large for the heap's blocks; such attributes are not supported")
	}
	c := h.s.over(id[1:])
	offset, n := c.count(h.offset), c.count(h.length)
	if c.err != nil {
		return nil, c.err
	}
	if at := offset - h.last.from; at >= 0 && at <= int64(len(h.last.b))-n {
		return h.last.b[at : at+n : at+n], nil
	}
	var b []byte
	var err error
	if h.rows == 0 {
		b, err = h.inBlock(h.root, offset, n, h.size)
	} else {
		b, err = h.within(h.root, h.rows, offset, n)
	}
	if err == nil {
		h.last.from = offset - h.last.at
	}
	return b, err
}

func (h *fractalHeap) inBlock(at, offset, n, size int64) ([]byte, error) {
	if offset > size-n || at == nowhere {
		return nil, fmt.Errorf("%d bytes at %d are outside of a block of %d", n, offset, size)
	}
	b := h.blocks[at]
	if int64(len(b)) < offset+n {
		var err error
		if b, err = h.s.block(at, size); err == nil && h.checked {
			err = h.verify(b)
		}
		if err != nil {
			return nil, h.s.corrupt(at, "heap", err)
		}
		h.blocks[at] = b
	}
	h.last.at, h.last.b = offset, b
	return b[offset : offset+n : offset+n], nil
}

// verify compares a direct block with its checksum, for which it puts the zeros that the block had
// when that was made:
//
//	FHDB | version | address of the heap | offset in the heap | checksum | objects
func (h *fractalHeap) verify(b []byte) error {
	at := len(sigDirect) + 1 + h.s.offsets + h.offset
	if len(b) < at+checksumSize {
		return errShort
	}
	sum := b[at : at+checksumSize]
	stored := binary.LittleEndian.Uint32(sum)
	clear(sum)
	if got := lookup3(b); got != stored {
		return fmt.Errorf("%w: %q has %#08x, stored is %#08x", ckptfmt.ErrChecksum, sigDirect, got, stored)
	}
	return nil
}

// rowSize is the size of the blocks in a row.
func (h *fractalHeap) rowSize(row int) int64 {
	if row < 2 {
		return h.start
	}
	return min(h.start<<min(row-1, 40), 1<<50)
}

// within finds an object under an indirect block. Those below it have fewer rows each, so that no
// heap is a circle.
func (h *fractalHeap) within(at int64, rows int, offset, n int64) ([]byte, error) {
	directRows := bits.Len64(uint64(h.maxDirect)) - bits.Len64(uint64(h.start)) + 2
	children, err := h.childrenOf(at, rows)
	if err != nil {
		return nil, err
	}
	for row := range rows {
		size := h.rowSize(row)
		for _, child := range children[row*h.width:][:h.width] {
			switch {
			case offset >= size:
				offset -= size
			case row < directRows:
				return h.inBlock(child, offset, n, size)
			default:
				return h.within(child, h.rowsFor(size), offset, n)
			}
		}
	}
	return nil, h.s.corrupt(at, "heap", fmt.Errorf("an object is %d bytes after the end", offset))
}

// childrenOf returns the addresses of the blocks that are under an indirect one.
func (h *fractalHeap) childrenOf(at int64, rows int) ([]int64, error) {
	s := h.s
	if known := h.children[at]; len(known) == rows*h.width {
		return known, nil
	}
	head := int64(4 + 1 + s.offsets + h.offset)
	c := s.checked(at, head+int64(rows*h.width*s.offsets)+checksumSize, sigIndirect)
	c.skip(int(head) - len(sigIndirect))
	var list []int64
	for c.err == nil && len(list) < rows*h.width {
		list = append(list, c.addr())
	}
	if c.err != nil {
		return nil, s.corrupt(at, "heap", c.err)
	}
	h.children[at] = list
	return list, nil
}

// rowsFor returns the number of rows of an indirect block with the given number of bytes below it.
func (h *fractalHeap) rowsFor(size int64) int {
	return bits.Len64(uint64(size)) - bits.Len64(uint64(h.start*int64(h.width))) + 1
}
