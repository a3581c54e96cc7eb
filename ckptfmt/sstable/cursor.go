package sstable

import (
	"bytes"
	"errors"
	"fmt"
)

// cursor walks the data blocks in order.
type cursor struct {
	t     *Reader
	index blockIter
	data  blockIter
	end   uint64 // where the current block ends

	before []byte // the index's key for the block before
	last   []byte // key of that block
	// disorder is the first damage, of the index or the current block, that can
	// lead a search astray.
	indexDisorder, disorder error
}

func (t *Reader) cursor() *cursor {
	c := &cursor{t: t}
	_, c.indexDisorder = t.index.check(nil, nil)
	return c
}

func (c *cursor) seek(key []byte) (bool, error) {
	c.index = c.t.index.iter()
	ok, err := c.index.seek(key)
	if !ok || err != nil {
		return false, err
	}
	if err := c.open(); err != nil {
		return false, err
	}
	ok, err = c.data.seek(key)
	if ok || err != nil {
		return ok, err
	}
	return c.nextBlock()
}

func (c *cursor) step() (bool, error) {
	ok, err := c.data.step()
	if ok || err != nil {
		return ok, err
	}
	return c.nextBlock()
}

func (c *cursor) nextBlock() (bool, error) {
	for {
		ok, err := c.index.step()
		if !ok || err != nil {
			return false, err
		}
		if err := c.open(); err != nil {
			return false, err
		}
		ok, err = c.data.step()
		if ok || err != nil {
			return ok, err
		}
	}
}

// open reads the block at the index's position, and checks that searches find its entries.
func (c *cursor) open() error {
	h, _, err := parseHandle(c.index.value)
	if err != nil {
		return c.index.corrupt(err)
	}
	// Blocks lie one after the other. An index that names one block many
	// times would make a small file cost much time.
	if h.offset < c.end {
		return c.index.corrupt(errors.New("block overlaps the one before it"))
	}
	b, err := c.t.readBlock(h, "data block")
	if err != nil {
		return err
	}
	last, err := b.check(c.before, c.last)
	if err == nil && bytes.Compare(last, c.index.key) > 0 {
		err = c.index.corrupt(fmt.Errorf("the index has the key %q for a block that ends with %q: %w", c.index.key, last, ErrOrder))
	}
	if c.disorder = c.indexDisorder; c.disorder == nil {
		c.disorder = err
	}
	c.before = append(c.before[:0], c.index.key...)
	if err != nil {
		last = c.before // what a search meets in this block is not known
	}
	if last != nil {
		c.last = append(c.last[:0], last...)
	}
	c.end = h.offset + h.size
	c.data = b.iter()
	return nil
}

// hidden returns an error if a search does not find the entry that the cursor is
// at.
func (c *cursor) hidden() error {
	if c.disorder == nil {
		return nil
	}
	here := c.data.place()
	found, ok := c.t.Place(c.data.key)
	if ok && found == here {
		return nil
	}
	why := errors.New("a search does not find it")
	if ok {
		why = fmt.Errorf("its key occurs twice, and a search finds the entry %s", found)
	}
	cause := c.disorder
	if e := (*CorruptError)(nil); errors.As(cause, &e) {
		cause = e.Err
	}
	return &CorruptError{Name: c.t.name, Offset: here.Offset, Part: fmt.Sprintf("entry %q %s", c.data.key, here), Err: fmt.Errorf("%w: %w", why, cause)}
}
