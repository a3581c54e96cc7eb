package tfevents

import (
	"cmp"
	"slices"
)

// isMixed reports whether points come from several files that were written at the same time.
func (c *column) isMixed() bool { return c.mixed && len(c.parts) > 1 }

// inOrder is each, but merges the points of files that were written at the same time by time: file
// after file, the curve would go back to the beginning of the previous file. Points of one file
// keep their order.
func (c *column) inOrder(f func(p *cell) bool) {
	if !c.isMixed() {
		c.each(f)
		return
	}
	all := c.cursors()
	slices.SortFunc(all, (*cursor).compare)
	for len(all) > 0 {
		first, others := all[0], all[1:]
		if p := first.p; !f(&p) {
			return
		}
		if !first.advance() {
			all = others
			continue
		}
		n, _ := slices.BinarySearchFunc(others, first, (*cursor).compare)
		copy(all, others[:n])
		all[n] = first
	}
}

// ends returns the first and the last point of a column that has points.
func (c *column) ends() (first, last cell) {
	if !c.isMixed() {
		return c.first(), c.tail
	}
	all := c.cursors()
	first = slices.MinFunc(all, (*cursor).compare).p
	for _, k := range all {
		for k.advance() {
		}
	}
	return first, slices.MaxFunc(all, (*cursor).compare).p
}

// cursor walks the points of one part of a column.
type cursor struct {
	p     cell    // the current one
	until float64 // the latest time up to it, 0 without one
	part  int
	file  int

	data   []byte  // after the current point, in the first block
	blocks []block // the first is being read
	left   int     // points after the current one
}

// cursors returns one for each part of the column, at its first point.
func (c *column) cursors() (all []*cursor) {
	block, passed := 0, 0 // points of the block
	p, data := c.blocks[0].before, c.blocks[0].data
	for i, part := range c.parts {
		k := &cursor{p: p, part: i, file: part.file, data: data, blocks: c.blocks[block:], left: part.n}
		k.advance()
		all = append(all, k)
		for skip := part.n; skip > 0; {
			if rest := c.blocks[block].n - passed; skip < rest {
				for ; skip > 0; skip-- {
					data = p.next(data)
					passed++
				}
			} else {
				skip -= rest
				if block, passed = block+1, 0; block < len(c.blocks) {
					p, data = c.blocks[block].before, c.blocks[block].data
				}
			}
		}
	}
	return all
}

// advance moves to the next point and reports whether there is one.
func (k *cursor) advance() bool {
	if k.left == 0 {
		return false
	}
	k.left--
	for len(k.data) == 0 {
		k.blocks = k.blocks[1:]
		k.p, k.data = k.blocks[0].before, k.blocks[0].data
	}
	k.data = k.p.next(k.data)
	k.p.file = k.file
	if wall := k.p.wallTime(); wall > k.until {
		k.until = wall
	}
	return true
}

// compare says which of the current points of two parts goes first.
func (k *cursor) compare(other *cursor) int {
	return cmp.Or(cmp.Compare(k.until, other.until), cmp.Compare(k.part, other.part))
}
