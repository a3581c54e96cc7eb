package hdf5

import (
	"errors"
	"fmt"
	"math"

	"github.com/trainerd/trainerd/ckptfmt"
)

// Types of dataspaces.
const (
	spaceScalar = iota
	spaceSimple
	spaceNull
)

// unlimited is a dimension that may grow forever.
const unlimited = -1

// space is a shape, and the largest that it may have one day, by which chunks are
// numbered.
type space struct{ shape, most []int64 }

// dataspace decodes a shape, or returns the one that was decoded of the same bytes.
func (s *store) dataspace(c *cursor) *space {
	if known := s.spaces[string(c.b)]; known != nil {
		return known
	}
	x := c.dataspace()
	if c.err == nil && s.spaces != nil && len(s.spaces) < maxKnown {
		s.spaces[string(c.b)] = x
	}
	return x
}

// dataspace decodes a shape: [0] of a space without elements.
func (c *cursor) dataspace() *space {
	version := c.version("a dataspace", 1, 2)
	rank := c.u8()
	flags := c.u8()
	kind := spaceSimple
	if version == 1 {
		c.skip(5)
	} else {
		kind = c.u8()
	}
	if rank > maxRank {
		c.fail("a dataspace has %d dimensions", rank)
	}
	if c.err != nil || kind == spaceNull {
		return &space{[]int64{0}, []int64{0}}
	}
	both := make([]int64, 2*rank)
	shape, most := both[:rank:rank], both[rank:]
	for i := range shape {
		shape[i] = c.length()
	}
	if flags&1 == 0 {
		return &space{shape, shape}
	}
	for i := range most {
		if most[i] = c.most(); c.err == nil && most[i] != unlimited && most[i] < shape[i] {
			c.fail("a dimension is %d, and at most %d", shape[i], most[i])
		}
	}
	return &space{shape, most}
}

// most reads the largest size of a dimension; all bits of one without a limit are set.
func (c *cursor) most() int64 {
	if v := c.uint(c.lengths); v <= math.MaxInt64/2 && v != math.MaxUint64>>(64-8*c.lengths) {
		return int64(v)
	}
	return unlimited
}

// filter is one of the transformations of a chunk when it was written.
type filter struct {
	id   int
	name string
}

// filters decodes a filter pipeline.
func (c *cursor) filters() []filter {
	version := c.version("a filter pipeline", 1, 2)
	n := c.u8()
	if version == 1 {
		c.skip(6)
	}
	if n > maxRank {
		c.fail("there are %d filters", n)
	}
	var list []filter
	for i := 0; i < n && c.err == nil; i++ {
		f := filter{id: c.u16()}
		name := 0
		if version == 1 || f.id >= 256 {
			name = c.u16()
		}
		c.skip(2) // may be left out, or not
		values := c.u16()
		f.name = trimZeros(c.bytes(name))
		c.skip(4 * values)
		if version == 1 && values%2 == 1 {
			c.skip(4)
		}
		list = append(list, f)
	}
	return list
}

// Classes of layouts.
const (
	layoutCompact = iota
	layoutContiguous
	layoutChunked
)

// Kinds of indexes of chunks.
const (
	indexTree1 = iota
	indexSingle
	indexImplicit
	indexFixed
	indexExtensible
	indexTree2
)

// layout is where the elements are.
type layout struct {
	class  int
	at     int64
	size   int64
	inline []byte
	index  int     // of chunks
	chunk  []int64 // shape of a chunk
	elem   int64   // size of an element, as the layout has it
	mask   uint32  // of a single chunk
}

// layout decodes the layout message. The error for an unsupported one matches ckptfmt.ErrType.
func (c *cursor) layout() layout {
	var l layout
	version := c.version("a layout", 3, 5)
	if c.err != nil && !errors.Is(c.err, errShort) {
		c.err = fmt.Errorf("%w: %w", ckptfmt.ErrType, c.err)
	}
	l.class = c.u8()
	switch {
	case c.err != nil:
	case l.class == layoutCompact:
		l.inline = c.bytes(c.u16())
	case l.class == layoutContiguous:
		l.at, l.size = c.addr(), c.length()
	case l.class == layoutChunked && version == 3:
		rank := c.u8()
		l.at = c.addr()
		c.chunkShape(&l, rank, 4)
	case l.class == layoutChunked:
		c.chunked4(&l)
	default:
		c.refuse("layouts of class %d, such as of virtual datasets, are not supported", l.class)
	}
	return l
}

func (c *cursor) chunkShape(l *layout, rank, width int) {
	if rank < 1 || rank > maxRank+1 {
		c.fail("a chunk has %d dimensions", rank)
		return
	}
	for range rank {
		l.chunk = append(l.chunk, c.count(width))
	}
	l.elem, l.chunk = l.chunk[rank-1], l.chunk[:rank-1]
}

func (c *cursor) chunked4(l *layout) {
	const unfilteredEdges, filteredSingle = 1, 2
	flags := c.u8()
	if flags&unfilteredEdges != 0 {
		c.refuse("chunks at the edge that filters leave out are not supported")
	}
	rank := c.u8()
	c.chunkShape(l, rank, c.u8())
	l.index = c.u8()
	switch l.index {
	case indexSingle:
		if flags&filteredSingle != 0 {
			l.size = c.length()
			l.mask = uint32(c.u32())
		}
	case indexImplicit:
	case indexFixed:
		c.skip(1) // bits of a page, which the array has too
	case indexTree2:
		c.skip(6)
	case indexExtensible:
		c.skip(5)
	default:
		c.refuse("an index of chunks of kind %d is not known", l.index)
	}
	l.at = c.addr()
}

// fillValue decodes what elements that were never written are, nil for zeros.
func (c *cursor) fillValue(kind int) []byte {
	const defined = 0x20
	if kind == msgOldFill {
		return c.bytes(c.u32())
	}
	switch version := c.version("a fill value", 1, 3); {
	case c.err != nil:
		return nil
	case version == 3:
		if c.u8()&defined == 0 {
			return nil
		}
	default:
		c.skip(2)
		if has := c.u8(); has == 0 {
			return nil
		}
	}
	return c.bytes(c.u32())
}
