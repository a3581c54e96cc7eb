package hdf5

import (
	"encoding/binary"
	"math"
)

// A file of h5py may have a hundred thousand groups of the old kind, all of one form: a header with
// one message, a tree of one node, a heap of names, a node of entries. The functions here read that
// form if its bytes are in a page; they report any other form, and leave it, like a damaged one, to
// the general readers.

// Wire format of blocks in a file with addresses and lengths of 8 bytes.
const (
	plainHeader = "\x01\x00\x01\x00" // version, number of messages
	plainLinks  = 4
	plainTable  = "\x18\x00\x00\x00\x00\x00\x00\x00\x11\x00\x10\x00\x00" // size, filling; type, size and flags of the message
	plainFrom   = 8
	plainBody   = 24
	plainGroup  = 40

	plainHeap     = 32
	plainHeapSize = 8
	plainHeapAt   = 24

	plainTree   = "TREE\x00\x00" // kind and level
	plainCount  = 6              // of a node, and of entries
	plainNode   = 24
	plainChild  = 8 // after a key
	plainSymbol = 40
)

// seen returns n bytes at an address if they are in a page, nil otherwise. They are valid until
// the next read.
func (s *store) seen(at, n int64) []byte {
	if s.offsets != 8 || s.lengths != 8 || s.claim(at, n) != nil {
		return nil
	}
	b := s.window(s.base + at)
	if int64(len(b)) < n {
		return nil
	}
	return b[:n:n]
}

// plainAddress returns the address in 8 bytes, or nowhere.
func plainAddress(b []byte) int64 {
	if v := binary.LittleEndian.Uint64(b); v <= math.MaxInt64/2 {
		return int64(v)
	}
	return nowhere
}

// plainGroup returns where the tree and the heap of a group are.
func (t *tree) plainGroup(at int64) (treeAt, heapAt int64, ok bool) {
	b := t.s.seen(at, plainGroup)
	if b == nil || string(b[:plainLinks]) != plainHeader || string(b[plainFrom:plainFrom+len(plainTable)]) != plainTable {
		return 0, 0, false
	}
	treeAt, heapAt = plainAddress(b[plainBody:]), plainAddress(b[plainBody+8:])
	return treeAt, heapAt, treeAt != nowhere && heapAt != nowhere
}

// plainHeap returns where the names in a heap are.
func (s *store) plainHeap(at int64) (names, size int64, ok bool) {
	b := s.seen(at, plainHeap)
	if b == nil || string(b[:len(sigLocalHeap)]) != sigLocalHeap {
		return 0, 0, false
	}
	names, size = plainAddress(b[plainHeapAt:]), plainAddress(b[plainHeapSize:])
	return names, size, names != nowhere && size != nowhere
}

// plainLeaf appends the children of a tree that is one leaf.
func (t *tree) plainLeaf(at int64) bool {
	b := t.s.seen(at, plainNode+plainChild+8)
	if b == nil || string(b[:len(plainTree)]) != plainTree || binary.LittleEndian.Uint16(b[plainCount:]) != 1 {
		return false
	}
	child := plainAddress(b[plainNode+plainChild:])
	if child != nowhere {
		t.nodes = append(t.nodes, child)
	}
	return child != nowhere
}

// plainSymbol appends the entry of a node with a single entry.
func (s *store) plainSymbol(out []link, at int64, names []byte) ([]link, bool) {
	b := s.seen(at, 8+plainSymbol)
	if b == nil || string(b[:len(sigSymbols)]) != sigSymbols || binary.LittleEndian.Uint16(b[plainCount:]) != 1 || binary.LittleEndian.Uint32(b[24:]) == softLink {
		return out, false
	}
	object := plainAddress(b[16:])
	name, err := nameIn(names, plainAddress(b[8:]))
	if err != nil || object == nowhere {
		return out, false
	}
	return append(out, link{name: name, at: object}), true
}
