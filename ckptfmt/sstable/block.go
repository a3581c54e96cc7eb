package sstable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// block is the checked content of one block.
type block struct {
	entries  []byte
	restarts []byte // uint32 offsets into entries

	name       string // of the file, for errors
	handle     handle
	compressed bool // in the file
}

// parseBlock splits a block's bytes. The bytes are kept, not copied.
func parseBlock(b []byte) (*block, error) {
	if len(b) < restartSize {
		return nil, errors.New("block is too short for its restart count")
	}
	body := b[:len(b)-restartSize]
	n := binary.LittleEndian.Uint32(b[len(body):])
	if uint64(n) > uint64(len(body)/restartSize) {
		return nil, fmt.Errorf("block of %d bytes claims %d restarts", len(b), n)
	}
	if n == 0 && len(body) > 0 {
		return nil, errors.New("block has no restarts: TensorFlow would not see its entries")
	}
	split := len(body) - restartSize*int(n)
	return &block{entries: body[:split], restarts: body[split:]}, nil
}

// blockIter walks a block. A key is valid until the next step, a value as
// long as the block.
type blockIter struct {
	b          *block
	at         int // offset of the entry
	next       int // offset of the next entry
	key, value []byte
	inside     bool // key is that of the entry before the next
	disorder   bool // key is not after the one before
}

func (b *block) iter() blockIter { return blockIter{b: b, key: []byte{}} }

// step goes to the next entry. It returns false at the end. As TensorFlow it
// takes keys in any order.
func (it *blockIter) step() (bool, error) {
	rest := it.b.entries[it.next:]
	if len(rest) == 0 {
		return false, nil
	}
	shared, unshared, valueLen, n, err := entryHeader(rest)
	if err != nil {
		return false, it.corrupt(err)
	}
	if shared > uint64(len(it.key)) {
		return false, it.corrupt(fmt.Errorf("entry shares %d bytes of a key of %d", shared, len(it.key)))
	}
	rest = rest[n:]
	suffix := rest[:unshared]
	// Equal beginnings need no comparing, so a check costs no more than the
	// entry's own bytes.
	it.disorder = it.inside && bytes.Compare(suffix, it.key[shared:]) <= 0
	it.inside = true
	it.at = it.next
	it.key = append(it.key[:shared], suffix...)
	it.value = rest[unshared : unshared+valueLen : unshared+valueLen]
	it.next = len(it.b.entries) - len(rest) + int(unshared+valueLen)
	return true, nil
}

// entryHeader reads the three lengths of the entry at the beginning of b and
// checks that the bytes they announce are there.
func entryHeader(b []byte) (shared, unshared, valueLen uint64, n int, err error) {
	var lengths [3]uint64
	for i := range lengths {
		v, m := binary.Uvarint(b[n:])
		if m <= 0 || m > binary.MaxVarintLen32 {
			return 0, 0, 0, 0, errors.New("entry has a bad length")
		}
		lengths[i] = v
		n += m
	}
	left := uint64(len(b) - n)
	if lengths[1] > left || lengths[2] > left-lengths[1] {
		return 0, 0, 0, 0, errors.New("entry runs past the end of its block")
	}
	return lengths[0], lengths[1], lengths[2], n, nil
}

// seek goes to the first entry whose key is not before key, and returns false
// when there is none.
func (it *blockIter) seek(key []byte) (bool, error) {
	if err := it.restart(key); err != nil {
		return false, err
	}
	for {
		ok, err := it.step()
		if !ok || err != nil {
			return false, err
		}
		if bytes.Compare(it.key, key) >= 0 {
			return true, nil
		}
	}
}

// restart goes to the last restart whose key is before key, or the first. It
// looks at the same ones as TensorFlow, so that both find the same entries where
// keys are out of order.
func (it *blockIter) restart(key []byte) error {
	it.next, it.key, it.inside = 0, it.key[:0], false
	if len(key) == 0 || len(it.b.restarts) == 0 {
		return nil
	}
	left, right := 0, len(it.b.restarts)/restartSize-1
	for left < right {
		mid := (left + right + 1) / 2
		k, err := it.b.restartKey(mid)
		if err != nil {
			return it.corrupt(err)
		}
		if bytes.Compare(k, key) < 0 {
			left = mid
		} else {
			right = mid - 1
		}
	}
	if _, err := it.b.restartKey(left); err != nil {
		return it.corrupt(err)
	}
	it.next = it.b.restartOffset(left)
	return nil
}

func (b *block) restartOffset(i int) int {
	return int(binary.LittleEndian.Uint32(b.restarts[restartSize*i:]))
}

func (b *block) restartKey(i int) ([]byte, error) {
	off := b.restartOffset(i)
	if off > len(b.entries) {
		return nil, fmt.Errorf("restart %d at %d is past the entries", i, off)
	}
	if off == len(b.entries) {
		return nil, nil // even an empty block has a restart
	}
	shared, unshared, _, n, err := entryHeader(b.entries[off:])
	if err != nil {
		return nil, err
	}
	if shared != 0 {
		return nil, fmt.Errorf("restart %d at %d does not have a whole key", i, off)
	}
	return b.entries[off+n : off+n+int(unshared)], nil
}

// corrupt locates an error by the block's place in its file and the entry's
// in the block, which may have been compressed.
func (it *blockIter) corrupt(err error) error {
	return it.corruptAt(it.next, err)
}

func (it *blockIter) corruptAt(at int, err error) error {
	part := fmt.Sprintf("block entry at %d", at)
	return &CorruptError{Name: it.b.name, Offset: int64(it.b.handle.offset), Part: part, Err: err}
}
