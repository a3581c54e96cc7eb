package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
)

// denseFile has a group with links in a heap, in the order of the names. The object of the ith is
// at(i), in objects of one byte each; its record is in the tree at place(i).
func denseFile(names []string, at, place func(i int) int) []byte {
	const heapAt, treeAt, leafAt, rootAt, objectsAt, blockSize = blocksAt, blocksAt + 256, blocksAt + 512, blocksAt + 4096, blocksAt + 8192, 4096
	object := headerOf(3, slices.Concat(
		appendMessage(nil, msgDataspace, dataspaceOf(nil)), appendMessage(nil, msgDatatype, fixedType(1, false)), appendMessage(nil, msgLayout, contiguous(unwritten, 0))))
	b := make([]byte, objectsAt-blocksAt+len(names)*len(object))
	h := heapSizes
	h.start, h.most, h.root, h.maxManaged = blockSize, blockSize, rootAt, 255
	copy(b, h.block())
	head := binary.LittleEndian.AppendUint32([]byte(sigTree2+"\x00\x05"), uint32(nodeOverhead+12*len(names))) // no record more
	head = append(head, 12, 0, 0, 0, 100, 40)
	copy(b[treeAt-blocksAt:], summed(u64sOnto(append(u64sOnto(head, leafAt), byte(len(names)), 0), uint64(len(names)))))
	records := make([][]byte, len(names))
	var heap []byte
	for i, name := range names {
		link := slices.Concat([]byte{1, 0, byte(len(name))}, []byte(name), u64s(uint64(objectsAt+at(i)*len(object))))
		id := append(managed(uint16(len(heap)), byte(len(link))), 0)
		records[place(i)] = append([]byte{byte(i), 2, 3, 4}, id...)
		heap = append(heap, link...)
		copy(b[objectsAt-blocksAt+i*len(object):], object)
	}
	copy(b[leafAt-blocksAt:], summed([]byte(sigTree2Leaf+"\x00\x05"), slices.Concat(records...)))
	copy(b[rootAt-blocksAt:], heap)
	return file2(header2Of(0, nil, message2(msgLinkInfo, 0, append([]byte{0, 0}, u64s(heapAt, treeAt)...))), string(b))
}

// TestLinksInAHeap has links whose records are in another order than they are, and than their
// objects are. A large group is read in two parts of the heap.
func TestLinksInAHeap(t *testing.T) {
	ordered := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprintf("n%03d", i))
		}
		return names
	}
	same := func(i int) int { return i }
	back := func(n int) func(i int) int { return func(i int) int { return n - 1 - i } }
	few, many := ordered(5), ordered(100)
	backwards := slices.Clone(few)
	slices.Reverse(backwards)
	checkPaths(t, "as they are", denseFile(few, same, same), few, "")
	checkPaths(t, "records in another order", denseFile(few, same, back(5)), few, "")
	checkPaths(t, "objects in another order", denseFile(few, back(5), same), backwards, "")
	checkPaths(t, "names of one object, in the order of the names", denseFile(backwards, func(int) int { return 0 }, same), few, "")
	checkPaths(t, "many", denseFile(many, same, same), many, "")
	checkPaths(t, "many records in another order", denseFile(many, same, back(100)), many, "")
}

// TestSumsOfHeaps flips each byte of a heap's block that has a checksum, as those of h5py have.
func TestSumsOfHeaps(t *testing.T) {
	const size = 64
	h := heapSizes
	h.root = 256
	head := h.block()
	head[9] = 2 // its blocks have checksums
	head = summed(head[:len(head)-checksumSize])
	block := append([]byte(sigDirect+"\x00"), make([]byte, 8+2+checksumSize)...)
	block = append(block, make([]byte, size-len(block)-2)...)
	block = append(block, "ab"...)
	binary.LittleEndian.PutUint32(block[15:], lookup3(block))
	read := func(block []byte) (string, error) {
		b := slices.Concat(head, make([]byte, 256-len(head)), block)
		s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, offsets: 8, lengths: 8}
		heap, err := s.fractalHeap(0)
		if err != nil {
			t.Fatal(err)
		}
		got, err := heap.object(managed(size-2, 2))
		again, errAgain := heap.object(managed(size-2, 2))
		if string(again) != string(got) || (errAgain == nil) != (err == nil) {
			t.Errorf("read again: %q, %v, the first time %q, %v", again, errAgain, got, err)
		}
		return string(got), err
	}
	if got, err := read(block); err != nil || got != "ab" {
		t.Errorf("as it is: %q, %v", got, err)
	}
	for i := range block {
		b := slices.Clone(block)
		b[i] ^= 1
		if _, err := read(b); !errors.Is(err, ckptfmt.ErrChecksum) || !errors.As(err, new(*ckptfmt.CorruptError)) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	small := &fractalHeap{s: &store{offsets: 8}, offset: 2}
	if err := small.verify(make([]byte, 18)); !errors.Is(err, errShort) {
		t.Errorf("a block of 18 bytes: %v", err)
	}
}

// TestErrorsOfRecords has errors about a record, which are located once: where the record is, or
// where what it refers to is.
func TestErrorsOfRecords(t *testing.T) {
	const leafAt = 64
	head := append(binary.LittleEndian.AppendUint32([]byte(sigTree2+"\x00\x05"), 64), 11, 0, 0, 0, 100, 40)
	head = summed(u64sOnto(append(u64sOnto(head, leafAt), 1, 0), 1))
	leaf := summed([]byte(sigTree2Leaf+"\x00\x05"), make([]byte, 11))
	b := slices.Concat(head, make([]byte, leafAt-len(head)), leaf)
	s := &store{pager: &pager{from: bytes.NewReader(b), size: int64(len(b))}, name: "f.h5", offsets: 8, lengths: 8}
	wrong := errors.New("it is wrong")
	err := s.eachRecord(0, recordLink, func(*cursor) error { return wrong })
	if err == nil || err.Error() != "f.h5: offset 64: tree: it is wrong" || !errors.As(err, new(*ckptfmt.CorruptError)) || !errors.Is(err, wrong) {
		t.Errorf("of the record: %v", err)
	}
	located := s.corrupt(7, "link", wrong)
	if err := s.eachRecord(0, recordLink, func(*cursor) error { return fmt.Errorf("object /x: %w", located) }); err == nil || err.Error() != "object /x: f.h5: offset 7: link: it is wrong" {
		t.Errorf("of what it refers to: %v", err)
	}
}
