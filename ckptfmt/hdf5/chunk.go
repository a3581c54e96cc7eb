package hdf5

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// chunk is where one is stored.
type chunk struct {
	at   int64
	size int64
	mask uint32 // filters that were left out
}

// grid is how a dataset is cut into chunks.
type grid struct {
	d      *detail
	counts []int64 // of chunks, in each dimension
	size   int64   // of a chunk in memory
	chunks map[int64]chunk

	// An array of chunks counts those that there may be one day: order are the
	// dimensions, the slowest first, and most the chunks in each of them.
	order []int
	most  []int64
}

// newGrid reads where the chunks of a dataset are.
func (s *store) newGrid(d *detail) (*grid, error) {
	g := &grid{d: d, size: d.t.size, chunks: make(map[int64]chunk)}
	for i, n := range d.shape {
		count := (n-1)/d.l.chunk[i] + 1
		g.counts = append(g.counts, count)
		g.size *= d.l.chunk[i]
	}
	err := g.arrange()
	if err != nil {
		return nil, err
	}
	switch d.l.index {
	case indexTree1:
		err = s.chunksOfTree1(g)
	case indexSingle:
		size := d.l.size
		if len(d.filters) == 0 {
			size = g.size
		}
		err = g.put(0, chunk{d.l.at, size, d.l.mask})
	case indexImplicit:
		err = s.chunksInRow(g)
	case indexFixed:
		err = s.chunksOfArray(g)
	case indexExtensible:
		err = s.chunksOfExtensible(g)
	case indexTree2:
		err = s.chunksOfTree2(g)
	}
	return g, err
}

// arrange finds how an array counts the chunks: in row-major order, except that a dimension without
// a limit is the slowest.
func (g *grid) arrange() error {
	for i, n := range g.d.most {
		g.order = append(g.order, i)
		if n != unlimited {
			n = (n-1)/g.d.l.chunk[i] + 1
		}
		g.most = append(g.most, n)
	}
	if i := slices.Index(g.most, unlimited); i >= 0 {
		g.order = append([]int{i}, slices.Delete(g.order, i, i+1)...)
	}
	all := int64(1)
	for k, i := range g.order {
		if k == 0 && g.most[i] == unlimited {
			continue
		}
		if g.most[i] == unlimited && g.d.l.index == indexExtensible || g.most[i] > math.MaxInt64/4/all {
			return fmt.Errorf("an array cannot count the chunks of shape %v", g.d.most)
		}
		all *= max(g.most[i], 1)
	}
	return nil
}

// inArray returns the number of the chunk at a place of an array, -1 outside of the
// present shape.
func (g *grid) inArray(place int64) int64 {
	coords := make([]int64, len(g.order))
	for k := len(g.order) - 1; k > 0; k-- {
		i := g.order[k]
		coords[i] = place % g.most[i]
		place /= g.most[i]
	}
	if len(g.order) > 0 {
		coords[g.order[0]] = place
	}
	return g.number(coords)
}

// inRow is the number of chunks that there may be one day.
func (g *grid) inRow() int64 {
	all := int64(1)
	for _, n := range g.most {
		all *= n
	}
	return all
}

// chunksInRow places chunks that are one after the other.
func (s *store) chunksInRow(g *grid) error {
	for i := int64(0); i < g.inRow(); i++ {
		at := g.d.l.at + i*g.size
		if at+g.size > s.size-s.base {
			return errors.New("its chunks are outside of the file")
		}
		if n := g.inArray(i); n >= 0 {
			g.chunks[n] = chunk{at: at, size: g.size}
		}
	}
	return nil
}

// put enters a chunk under its number, in row-major order among the chunks that the shape has.
func (g *grid) put(number int64, c chunk) error {
	if _, twice := g.chunks[number]; twice {
		return fmt.Errorf("chunk %d is there twice", number)
	}
	if c.at != nowhere {
		g.chunks[number] = c
	}
	return nil
}

// number returns the number of the chunk with those coordinates, -1 outside.
func (g *grid) number(coords []int64) int64 {
	n := int64(0)
	for i, c := range coords {
		if c < 0 || c >= g.counts[i] {
			return -1
		}
		n = n*g.counts[i] + c
	}
	return n
}

func (s *store) chunksOfTree1(g *grid) error {
	rank := len(g.counts)
	coords := make([]int64, rank)
	return s.eachLeaf(g.d.l.at, treeChunks, rank, func(key *cursor, at int64) error {
		c := chunk{at: at, size: int64(key.u32()), mask: uint32(key.u32())}
		for i := range coords {
			coords[i] = key.count(8) / g.d.l.chunk[i]
		}
		if key.err != nil {
			return key.err
		}
		n := g.number(coords)
		if n < 0 { // left over from a larger shape
			return nil
		}
		return g.put(n, c)
	})
}

func (s *store) chunksOfTree2(g *grid) error {
	kind := recordChunk
	if len(g.d.filters) > 0 {
		kind = recordFilteredChunk
	}
	coords := make([]int64, len(g.counts))
	return s.eachRecord(g.d.l.at, kind, func(record *cursor) error {
		c := chunk{at: record.addr(), size: g.size}
		if kind == recordFilteredChunk {
			c.size = record.count(record.left() - 8*len(coords) - 4)
			c.mask = uint32(record.u32())
		}
		for i := range coords {
			coords[i] = record.count(8)
		}
		if record.err != nil {
			return record.err
		}
		n := g.number(coords)
		if n < 0 {
			return nil
		}
		return g.put(n, c)
	})
}

// chunksOfArray reads a fixed array, whose elements may be in pages.
func (s *store) chunksOfArray(g *grid) error {
	addr := g.d.l.at
	c := s.checked(addr, int64(4+1+1+1+1+s.lengths+s.offsets+checksumSize), sigArray)
	c.version("an array", 0, 0)
	c.skip(1)
	elem, pageBits, n, block := c.u8(), c.u8(), c.length(), c.addr()
	if c.err == nil && (n != g.inRow() || pageBits > 30 || !g.isElement(elem, s)) {
		c.fail("an array of %d elements of %d bytes for %d chunks", n, elem, g.inRow())
	}
	if c.err != nil {
		return s.corrupt(addr, "array of chunks", c.err)
	}
	if block == nowhere {
		return nil
	}
	head := int64(4 + 1 + 1 + s.offsets)
	if n <= 1<<pageBits {
		c := s.checked(block, head+n*int64(elem)+checksumSize, sigArrayBlock)
		c.skip(int(head) - len(sigArrayBlock))
		return g.putArray(s, &c, 0, n, elem, block)
	}
	perPage := int64(1) << pageBits
	pages := (n + perPage - 1) / perPage
	bitmap := (pages + 7) / 8
	used := s.checked(block, head+bitmap+checksumSize, sigArrayBlock)
	used.skip(int(head) - len(sigArrayBlock))
	bits := used.bytes(int(bitmap))
	if used.err != nil {
		return s.corrupt(block, "array of chunks", used.err)
	}
	at := block + head + bitmap + checksumSize
	for i := range pages {
		count := min(perPage, n-i*perPage)
		if bits[i/8]&(0x80>>(i%8)) != 0 {
			page := s.checked(at, count*int64(elem)+checksumSize, "")
			if err := g.putArray(s, &page, i*perPage, count, elem, at); err != nil {
				return err
			}
		}
		at += perPage*int64(elem) + checksumSize
	}
	return nil
}

// isElement reports whether an element of an array can have that size: it is an address, and
// of a chunk with filters a size of up to 8 bytes and a mask.
func (g *grid) isElement(size int, s *store) bool {
	if len(g.d.filters) == 0 {
		return size == s.offsets
	}
	return size > s.offsets+4 && size <= s.offsets+8+4
}

func (g *grid) putArray(s *store, c *cursor, from, n int64, elem int, at int64) error {
	for i := range n {
		k := chunk{at: c.addr(), size: g.size}
		if len(g.d.filters) > 0 {
			k.size = c.count(elem - s.offsets - 4)
			k.mask = uint32(c.u32())
		}
		if number := g.inArray(from + i); c.err == nil && number >= 0 {
			c.err = g.put(number, k)
		}
		if c.err != nil {
			return s.corrupt(at, "array of chunks", c.err)
		}
	}
	return nil
}

// chunks returns the elements of a chunked dataset in row-major order. It makes
// some rows at a time: as many as a chunk has, or as the memory allows.
func (r *Reader) chunks(d *detail) (io.Reader, error) {
	s := r.store.fresh()
	g, err := s.newGrid(d)
	if err != nil {
		return nil, s.damage(d.l.at, "chunks of "+printablePath(d.path), err)
	}
	if len(d.shape) == 0 {
		b, err := r.chunk(g, 0)
		return &slab{ready: b}, err
	}
	x := &slab{r: r, g: g, row: d.t.size}
	for _, n := range d.shape[1:] {
		x.row *= n
	}
	x.rows = max(min(d.l.chunk[0], maxSlab/x.row), 1)
	return x, nil
}

// chunk reads and decodes one; nil is one that was never written.
func (r *Reader) chunk(g *grid, number int64) ([]byte, error) {
	c, ok := g.chunks[number]
	if !ok {
		return nil, nil
	}
	s := r.store
	part := "chunk of " + printablePath(g.d.path)
	if c.at > s.size-s.base-c.size || c.size > 2*g.size+1<<16 {
		return nil, s.corrupt(c.at, part, fmt.Errorf("%d bytes at %d are outside of the file, or more than a chunk of %d", c.size, c.at, g.size))
	}
	b := make([]byte, c.size)
	if _, err := s.from.ReadAt(b, s.base+c.at); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", r.name, part, err)
	}
	b, err := g.d.undo(b, c.mask, g.size)
	if err != nil {
		return nil, s.corrupt(c.at, part, err)
	}
	return b, nil
}

// slab reads rows of a dataset.
type slab struct {
	r     *Reader
	g     *grid
	row   int64 // bytes
	rows  int64 // at a time
	next  int64
	buf   []byte
	ready []byte
}

func (x *slab) Read(p []byte) (int, error) {
	if len(x.ready) == 0 {
		if x.g == nil || x.next >= x.g.d.shape[0] {
			return 0, io.EOF
		}
		if err := x.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, x.ready)
	x.ready = x.ready[n:]
	return n, nil
}

// load puts the next rows together, from one row of chunks.
func (x *slab) load() error {
	d := x.g.d
	inChunk := d.l.chunk[0]
	first := x.next
	end := min(first+x.rows, (first/inChunk+1)*inChunk, d.shape[0])
	x.buf = slices.Grow(x.buf[:0], int((end-first)*x.row))[:(end-first)*x.row]
	coords := make([]int64, len(d.shape))
	coords[0] = first / inChunk
	for {
		b, err := x.r.chunk(x.g, x.g.number(coords))
		if err != nil {
			return err
		}
		x.place(coords, b, first, end)
		i := len(coords) - 1
		for ; i > 0; i-- {
			if coords[i]++; coords[i] < x.g.counts[i] {
				break
			}
			coords[i] = 0
		}
		if i == 0 {
			break
		}
	}
	x.next, x.ready = end, x.buf
	return nil
}

// place copies the rows from first to end of a chunk to where they belong.
func (x *slab) place(coords []int64, b []byte, first, end int64) {
	d := x.g.d
	rank, elem := len(d.shape), d.t.size
	last := rank - 1
	begin, stop := make([]int64, rank), make([]int64, rank)
	for i := range rank {
		begin[i] = coords[i] * d.l.chunk[i]
		stop[i] = min(begin[i]+d.l.chunk[i], d.shape[i])
	}
	begin[0], stop[0] = max(begin[0], first), min(stop[0], end)
	at := slices.Clone(begin)
	run := (stop[last] - begin[last]) * elem
	for {
		to, from := at[0]-first, at[0]-coords[0]*d.l.chunk[0]
		for i := 1; i < rank; i++ {
			to = to*d.shape[i] + at[i]
			from = from*d.l.chunk[i] + at[i] - coords[i]*d.l.chunk[i]
		}
		target := x.buf[to*elem:][:run]
		if b == nil {
			fillWith(target, d.fillOf())
		} else {
			copy(target, b[from*elem:])
		}
		i := last - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < stop[i] {
				break
			}
			at[i] = begin[i]
		}
		if i < 0 {
			return
		}
	}
}

func fillWith(b, value []byte) {
	for len(b) > 0 {
		b = b[copy(b, value):]
	}
}
