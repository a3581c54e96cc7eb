package sstable

import (
	"bytes"
	"errors"
	"fmt"
)

// Check reads the whole table and returns the first damage that affects
// [Reader.Get] and TensorFlow but is not noticed when walking the entries in
// order: a restart that does not point to a whole key, or a key of the index
// that does not separate two blocks.
func (t *Reader) Check() error {
	if _, err := t.index.check(nil); err != nil {
		return err
	}
	index := t.index.iter()
	var before []byte // the index's key for the block before
	end := uint64(0)  // of that block
	for {
		ok, err := index.step()
		if !ok || err != nil {
			return err
		}
		h, _, err := parseHandle(index.value)
		if err == nil && h.offset < end {
			err = errors.New("block overlaps the one before it")
		}
		if err != nil {
			return index.corrupt(err)
		}
		b, err := t.readBlock(h, "data block")
		if err != nil {
			return err
		}
		last, err := b.check(before)
		if err != nil {
			return err
		}
		if bytes.Compare(last, index.key) > 0 {
			return index.corrupt(fmt.Errorf("the index has the key %q for a block that ends with %q: %w", index.key, last, ErrOrder))
		}
		before, end = bytes.Clone(index.key), h.offset+h.size
	}
}

// check walks the entries of a block and returns the last key. Each restart must
// lead to an entry with a whole key, the first one to the first entry. Keys that
// are not after before, the index's key for the block before, are looked for in
// that one; from its end a search comes to the first of them alone.
func (b *block) check(before []byte) (last []byte, err error) {
	it := b.iter()
	restarts := len(b.restarts) / restartSize
	met := 0
	for {
		for met < restarts && it.next < len(b.entries) && b.restartOffset(met) == it.next {
			if _, err := b.restartKey(met); err != nil {
				return nil, it.corrupt(err)
			}
			met++
		}
		if met == 0 && len(b.entries) > 0 {
			return nil, it.corrupt(fmt.Errorf("the first restart is at %d", b.restartOffset(0)))
		}
		atStart := it.next == 0
		ok, err := it.step()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if !atStart && before != nil && bytes.Compare(it.key, before) <= 0 {
			return nil, it.corrupt(fmt.Errorf("the index has the key %q for the block before, so that this one is not found: %w", before, ErrOrder))
		}
	}
	if met < restarts && len(b.entries) > 0 {
		return nil, it.corrupt(fmt.Errorf("restart %d at %d is at no entry", met, b.restartOffset(met)))
	}
	return it.key, nil
}

// Place is the position of an entry in a table's file.
type Place struct {
	Block  int64 // offset of its block
	Entry  int   // offset in the content of the block
	Offset int64 // in the file: of the entry, or of its block if that is compressed
}

// Place returns the position of a key's entry, and false if it is not found.
func (t *Reader) Place(key []byte) (Place, bool) {
	index := t.index.iter()
	if ok, err := index.seek(key); !ok || err != nil {
		return Place{}, false
	}
	b, err := t.cachedBlock(index.value)
	if err != nil {
		return Place{}, false
	}
	it := b.iter()
	if ok, err := it.seek(key); !ok || err != nil || !bytes.Equal(it.key, key) {
		return Place{}, false
	}
	p := Place{Block: int64(b.handle.offset), Entry: it.at, Offset: int64(b.handle.offset)}
	if !b.compressed {
		p.Offset += int64(it.at)
	}
	return p, true
}
