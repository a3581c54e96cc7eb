package sstable

import (
	"bytes"
	"fmt"
)

// Check reads the whole table and returns the first damage, including damage that affects only the
// searches of [Reader.Get] and TensorFlow: keys out of order, a restart that does not point to a
// whole key, or a key of the index that does not separate two blocks.
func (t *Reader) Check() error {
	c := t.cursor()
	c.index = t.index.iter()
	for c.indexDisorder == nil {
		ok, err := c.index.step()
		if !ok || err != nil {
			return err
		}
		if err := c.open(); err != nil {
			return err
		}
		if c.disorder != nil {
			return c.disorder
		}
	}
	return c.indexDisorder
}

// check walks the entries of a block and returns the last key. Each restart must
// lead to an entry with a whole key, the first one to the first entry. Keys that
// are not after before, the index's key for the block before, are looked for in
// that one; from its end a search comes to the first of them alone, which must be
// after the last key of that block, end.
func (b *block) check(before, end []byte) (last []byte, err error) {
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
		if it.disorder || atStart && end != nil && bytes.Compare(it.key, end) <= 0 {
			return nil, it.corruptAt(it.at, ErrOrder)
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

func (p Place) String() string { return fmt.Sprintf("at %d of the block at %d", p.Entry, p.Block) }

// Place returns the position of a key's entry, and false if it is not found.
func (t *Reader) Place(key []byte) (Place, bool) {
	it, err := t.find(key)
	if err != nil {
		return Place{}, false
	}
	return it.place(), true
}

// place returns the position of the entry that was stepped to.
func (it *blockIter) place() Place {
	p := Place{Block: int64(it.b.handle.offset), Entry: it.at, Offset: int64(it.b.handle.offset)}
	if !it.b.compressed {
		p.Offset += int64(it.at)
	}
	return p
}
