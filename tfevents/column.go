package tfevents

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unsafe"
)

// A column holds the points of one series in little memory. Each point is stored as
// its difference from the one before; blocks are decoded on their own.
//
//	byte    form in the upper two bits; the step's difference in the lower six,
//	        or manySteps
//	varint  difference of the step, zigzag, if the byte says manySteps
//	varint  difference of the time, taken of the bits of the float64, zigzag
//	uint32  bits of the float32, for formSimple and formNumber
//	varint  number of the file, for formNumber and formOther
//	varint  difference of the record's offset, zigzag, for the same
//	varint  number of the value in the event, for the same
//	varint  encoded size of the value, for the same
type column struct {
	blocks []block
	n      int  // points
	bytes  int  // of memory, that of the blocks
	tail   cell // the last one
	parts  []part
	mixed  bool // with points of writers that were alive at the same time

	sized     int   // points that hold their size
	sizeTotal int64 // of them

	maxStep int64   // 0 without points
	maxWall float64 // of the points that have a time
}

// part counts the neighbouring points that come from one file, because a formSimple does not store
// its file.
type part struct {
	file, n int
	maxStep int64 // at least that of each
}

// block is a part of a column.
type block struct {
	before cell // what the first point differs from
	n      int
	data   []byte
}

// cell is a decoded point.
type cell struct {
	form   byte
	wall   uint64 // bits of the float64
	step   int64
	number uint32 // bits of the float32
	file   int
	offset int64 // of the record in the file
	index  int   // of the value in the event
	size   int   // of the encoded value; not of a formSimple, whose tag has it
}

const (
	formSimple byte = iota << 6 // a simple_value and its tag, nothing else
	formNumber                  // a float32 in another form, and where it is
	formOther                   // where the value is

	formMask  = 0b11 << 6
	manySteps = 0b111111
)

// Blocks grow with their column, so that short series take little room.
const (
	firstBlock   = 64
	lastBlock    = 4096
	maxCellSize  = 1 + 2*binary.MaxVarintLen64 + 4 + 4*binary.MaxVarintLen64
	blockGrowing = 2
	blockMemory  = int(unsafe.Sizeof(block{})) // besides its data
)

func zigzag(d int64) uint64   { return uint64(d<<1) ^ uint64(d>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// add appends a point.
func (c *column) add(p *cell) {
	b := c.room()
	c.n++
	b.n++
	c.measure(p)
	if last := len(c.parts) - 1; last >= 0 && c.parts[last].file == p.file {
		c.parts[last].n++
		c.parts[last].maxStep = max(c.parts[last].maxStep, p.step)
	} else {
		c.parts = append(c.parts, part{file: p.file, n: 1, maxStep: p.step})
	}
	steps := p.step - c.tail.step
	data := b.data[:cap(b.data)] // room for the largest point
	n := len(b.data)
	if steps >= 0 && steps < manySteps {
		data[n] = p.form | byte(steps)
		n++
	} else {
		data[n] = p.form | manySteps
		n = putVarint(data, n+1, zigzag(steps))
	}
	n = putVarint(data, n, zigzag(int64(p.wall-c.tail.wall)))
	if p.form != formOther {
		binary.LittleEndian.PutUint32(data[n:], p.number)
		n += 4
	}
	if p.form == formSimple { // the place stays that of the last point that has one
		c.tail.form, c.tail.step, c.tail.wall, c.tail.number = p.form, p.step, p.wall, p.number
	} else {
		n = putVarint(data, n, uint64(p.file))
		n = putVarint(data, n, zigzag(p.offset-c.tail.offset))
		n = putVarint(data, n, uint64(p.index))
		n = putVarint(data, n, uint64(p.size))
		c.tail = *p
	}
	b.data = b.data[:n] // of itself: no new pointer for the garbage collector
}

// measure updates the extremes and the size with the last point.
func (c *column) measure(p *cell) {
	if p.form != formSimple {
		c.sized++
		c.sizeTotal += int64(p.size)
	}
	wall := p.wallTime()
	if c.n == 1 {
		c.maxStep, c.maxWall = p.step, wall
	}
	c.maxStep = max(c.maxStep, p.step)
	if wall > c.maxWall || math.IsNaN(c.maxWall) {
		c.maxWall = wall
	}
}

// room returns the last block, with room for a point.
func (c *column) room() *block {
	size := firstBlock
	if n := len(c.blocks); n > 0 {
		last := &c.blocks[n-1]
		if cap(last.data)-len(last.data) >= maxCellSize {
			return last
		}
		size = min(cap(last.data)*blockGrowing, lastBlock)
	}
	size = max(size, maxCellSize)
	c.blocks = append(c.blocks, block{before: c.tail, data: make([]byte, 0, size)})
	c.bytes += blockMemory + size
	return &c.blocks[len(c.blocks)-1]
}

// next decodes the point at the front of data, which follows p, into p and
// returns what is after it.
func (p *cell) next(data []byte) []byte {
	head := data[0]
	data = data[1:]
	p.form = head & formMask
	if steps := head &^ formMask; steps != manySteps {
		p.step += int64(steps)
	} else {
		p.step += p.difference(&data)
	}
	p.wall += uint64(p.difference(&data))
	if p.form != formOther {
		p.number = binary.LittleEndian.Uint32(data)
		data = data[4:]
	}
	if p.form != formSimple {
		p.file = uvarint(&data)
		p.offset += p.difference(&data)
		p.index = uvarint(&data)
		p.size = uvarint(&data)
	}
	return data
}

func (*cell) difference(data *[]byte) int64 {
	u, n := binary.Uvarint(*data)
	*data = (*data)[n:]
	return unzigzag(u)
}

func uvarint(data *[]byte) int {
	u, n := binary.Uvarint(*data)
	*data = (*data)[n:]
	return int(u)
}

// first returns the first point of a column that has one.
func (c *column) first() cell {
	p := c.blocks[0].before
	p.next(c.blocks[0].data)
	return p
}

// each calls f with the points in their order until it returns false.
func (c *column) each(f func(p *cell) bool) {
	for _, b := range c.blocks {
		p := b.before
		for data := b.data; len(data) > 0; {
			data = p.next(data)
			if !f(&p) {
				return
			}
		}
	}
}

// cut drops the points at the end from the given step on, in a column whose steps only grow, and
// returns how many.
func (c *column) cut(step int64) (dropped int) {
	for c.n > 0 && c.tail.step >= step {
		b := &c.blocks[len(c.blocks)-1]
		p, kept, n := b.before, 0, 0
		for { // up to the tail at most
			q := p
			rest := q.next(b.data[kept:])
			if q.step >= step {
				break
			}
			p, kept, n = q, len(b.data)-len(rest), n+1
		}
		dropped += b.n - n
		c.n -= b.n - n
		c.tail = p
		if b.data, b.n = b.data[:kept], n; n == 0 {
			c.bytes -= blockMemory + cap(b.data)
			c.blocks = slices.Delete(c.blocks, len(c.blocks)-1, len(c.blocks))
		}
	}
	if dropped > 0 {
		c.shorten(dropped)
	}
	return dropped
}

// shorten updates the totals of the column after n points were removed.
func (c *column) shorten(n int) {
	for n > 0 {
		last := &c.parts[len(c.parts)-1]
		gone := min(n, last.n)
		last.n -= gone
		n -= gone
		if last.n == 0 {
			c.parts = c.parts[:len(c.parts)-1]
		}
	}
	c.n, c.sized, c.sizeTotal, c.maxStep, c.maxWall = 0, 0, 0, 0, 0
	c.each(func(p *cell) bool {
		c.n++
		c.measure(p)
		return true
	})
}

// drop drops those of the first n points that are at the given step or later and not from other
// writers, and returns how many. It updates others.
func (c *column) drop(n int, step int64, others writers) (dropped int) {
	if step > c.maxStep && (others.start || !others.some) {
		return 0 // at once: each START asks this of all series
	}
	var reached map[int]bool // of the files that lose points
	before := 0
	for _, part := range c.parts {
		switch {
		case before >= n:
		case others.some && others.spare(part.file, c.isIn):
			c.mixed = true
		case part.maxStep >= step:
			if reached == nil {
				reached = make(map[int]bool)
			}
			reached[part.file] = true
		}
		before += part.n
	}
	if reached == nil {
		return 0
	}
	kept := column{mixed: c.mixed}
	c.eachOfFile(func(i int, p *cell) bool {
		if i >= n || p.step < step || !reached[p.file] {
			kept.add(p)
		}
		return true
	})
	dropped = c.n - kept.n
	*c = kept
	return dropped
}

// isIn reports whether a file has points of the column.
func (c *column) isIn(file int) bool {
	_, is := slices.BinarySearchFunc(c.parts, file, func(p part, file int) int { return cmp.Compare(p.file, file) })
	return is
}

// eachOfFile is each, but also gives the number of the point, and the file of every point.
func (c *column) eachOfFile(f func(i int, p *cell) bool) {
	i, end, at := 0, 0, -1
	c.each(func(p *cell) bool {
		if i == end {
			at++
			end += c.parts[at].n
		}
		q := *p
		q.file = c.parts[at].file
		i++
		return f(i-1, &q)
	})
}

// float returns the number of a point that is not a formOther.
func (p *cell) float() float32 { return math.Float32frombits(p.number) }

// wallTime returns the time of the point.
func (p *cell) wallTime() float64 { return math.Float64frombits(p.wall) }
