package hdf5

import (
	"fmt"
	"math/bits"
)

// extensible is the index of a dataset that can grow in one dimension: an array of
// where the chunks are: the first elements are in the index block, the
// next in data blocks, and the others in data blocks that super blocks refer to.
// From one super block to the next there are twice as many data blocks, or the data
// blocks have twice as many elements. One that holds no chunk has no address.
//
//	header       "EAHD" 0 | client | element | bits of the size | index elements |
//	             least elements of a data block | least data blocks of a super
//	             block | bits of a page | six lengths | index block
//	index block  "EAIB" 0 | client | header | elements | data blocks | super blocks
//	super block  "EASB" 0 | client | header | offset | pages in use | data blocks
//	data block   "EADB" 0 | client | header | offset | elements, or pages of them
//
// All of them, and each page, end in a checksum.
type extensible struct {
	s          *store
	g          *grid
	elem       int   // size of an element
	offset     int   // width of an offset within the array
	maxBits    int   // of the number of elements
	direct     int64 // elements in the index block
	least      int64 // elements of a data block
	leastSuper int64 // data blocks of the first super block with a block of its own
	page       int64 // elements
	next       int64 // number of the next element
}

// mostBits is more than HDF5 ever writes, which is 32, and few enough that no number of bytes or
// elements below is too large to be one.
const mostBits = 48

// chunksOfExtensible reads where the chunks of a dataset that can grow are.
func (s *store) chunksOfExtensible(g *grid) error {
	addr := g.d.l.at
	c := s.checked(addr, int64(4+1+1+6+6*s.lengths+s.offsets+checksumSize), sigGrowing)
	c.version("an array", 0, 0)
	c.skip(1)
	x := &extensible{s: s, g: g, elem: c.u8(), maxBits: c.u8(), direct: int64(c.u8()), least: int64(c.u8()), leastSuper: int64(c.u8())}
	x.page = 1 << min(c.u8(), 60)
	x.offset = (x.maxBits + 7) / 8
	c.skip(6 * s.lengths)
	block := c.addr()
	if c.err == nil && (!g.isElement(x.elem, s) || x.maxBits > mostBits || !isPower(x.least) || !isPower(x.leastSuper)) {
		c.fail("elements of %d bytes, at most 2^%d, in blocks of %d, %d to a block", x.elem, x.maxBits, x.least, x.leastSuper)
	}
	if c.err != nil {
		return s.corrupt(addr, "array of chunks", c.err)
	}
	if block == nowhere {
		return nil
	}
	return x.indexBlock(block)
}

func isPower(n int64) bool { return n > 0 && n&(n-1) == 0 }

// supers returns how many super blocks there can be, and how many of those are
// in the index block itself.
func (x *extensible) supers() (all, within int) {
	return 1 + x.maxBits - bits.TrailingZeros64(uint64(x.least)), 2 * bits.TrailingZeros64(uint64(x.leastSuper))
}

// indexBlock reads the block that refers to all others.
func (x *extensible) indexBlock(at int64) error {
	s := x.s
	all, within := x.supers()
	if all < within {
		return s.corrupt(at, "array of chunks", fmt.Errorf("%d super blocks, %d of them in the index block", all, within))
	}
	blocks, supers := 2*(x.leastSuper-1), int64(all-within)
	head := int64(4 + 1 + 1 + s.offsets)
	c := s.checked(at, head+x.direct*int64(x.elem)+(blocks+supers)*int64(s.offsets)+checksumSize, sigGrowingIndex)
	c.skip(int(head) - len(sigGrowingIndex))
	if err := x.put(&c, x.direct, at); err != nil {
		return err
	}
	for super := range within {
		count, size := x.shape(super)
		for range count {
			if err := x.dataBlock(c.addr(), size); err != nil {
				return err
			}
		}
	}
	for super := within; super < all; super++ {
		if err := x.superBlock(c.addr(), super); err != nil {
			return err
		}
	}
	if c.err != nil {
		return s.corrupt(at, "array of chunks", c.err)
	}
	return nil
}

// shape returns the number of data blocks of a super block, and their elements.
func (x *extensible) shape(super int) (count, size int64) {
	return 1 << (super / 2), x.least << ((super + 1) / 2)
}

// superBlock reads one that is in a block of its own.
func (x *extensible) superBlock(at int64, super int) error {
	s := x.s
	count, size := x.shape(super)
	if at == nowhere {
		x.next += count * size
		return nil
	}
	bitmap := int64(0) // bytes of each data block
	if size > x.page {
		bitmap = (size/x.page + 7) / 8
	}
	head := x.blockHead()
	c := s.checked(at, head+count*(bitmap+int64(s.offsets))+checksumSize, sigGrowingSuper)
	c.skip(int(head) - len(sigGrowingSuper))
	// The bits of all data blocks follow each other, whatever their room.
	pages := bitmapOf(c.bytes(int(count * bitmap)))
	for i := range count {
		block, err := c.addr(), c.err
		if err != nil {
			return s.corrupt(at, "array of chunks", err)
		}
		if bitmap == 0 {
			err = x.dataBlock(block, size)
		} else {
			err = x.pagedBlock(block, size, func(page int64) bool { return pages.has(i*(size/x.page) + page) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dataBlock reads one of that many elements.
func (x *extensible) dataBlock(at, size int64) error {
	s := x.s
	if at == nowhere {
		x.next += size
		return nil
	}
	head := x.blockHead()
	c := s.checked(at, head+size*int64(x.elem)+checksumSize, sigGrowingBlock)
	c.skip(int(head) - len(sigGrowingBlock))
	return x.put(&c, size, at)
}

func (x *extensible) blockHead() int64 { return int64(4 + 1 + 1 + x.s.offsets + x.offset) }

// bitmapOf has a bit for each page, the highest of a byte first.
type bitmapOf []byte

func (b bitmapOf) has(i int64) bool { return b[i/8]&(0x80>>(i%8)) != 0 }

// pagedBlock reads a data block in pages; those that were never written
// have no content.
func (x *extensible) pagedBlock(at, size int64, written func(page int64) bool) error {
	s := x.s
	if at == nowhere {
		x.next += size
		return nil
	}
	head := x.blockHead()
	if c := s.checked(at, head+checksumSize, sigGrowingBlock); c.err != nil {
		return s.corrupt(at, "array of chunks", c.err)
	}
	at += head + checksumSize
	bytes := x.page*int64(x.elem) + checksumSize
	for i := range size / x.page {
		if !written(i) {
			x.next += x.page
			at += bytes
			continue
		}
		page := s.checked(at, bytes, "")
		if err := x.put(&page, x.page, at); err != nil {
			return err
		}
		at += bytes
	}
	return nil
}

// put reads n elements.
func (x *extensible) put(c *cursor, n, at int64) error {
	first := x.next
	x.next += n
	return x.g.putArray(x.s, c, first, n, x.elem, at)
}
