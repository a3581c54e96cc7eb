package tfevents

import "slices"

// pack moves the points into as little memory as they need: it joins the small blocks at the
// beginning of a column, and trims the last block. A sweep of ten thousand short runs has a million
// series, each with such blocks.
func (c *column) pack() {
	if n := c.smallBlocks(); n > 1 {
		joined := block{before: c.blocks[0].before}
		size := 0
		for _, b := range c.blocks[:n] {
			size += len(b.data)
		}
		joined.data = make([]byte, 0, size)
		for _, b := range c.blocks[:n] {
			joined.n += b.n
			joined.data = append(joined.data, b.data...)
		}
		c.blocks = append([]block{joined}, c.blocks[n:]...)
	} else if n == 0 {
		return
	}
	if last := &c.blocks[len(c.blocks)-1]; cap(last.data)-len(last.data) > len(last.data)/wastedShare {
		last.data = append(make([]byte, 0, len(last.data)), last.data...)
	}
	c.bytes = 0
	for _, b := range c.blocks {
		c.bytes += blockMemory + cap(b.data)
	}
}

// wastedShare is the largest part of a block that may be unused after pack: one in so many.
const wastedShare = 8

// smallBlocks counts the blocks at the front that fit into one of the largest
// size together.
func (c *column) smallBlocks() int {
	size := 0
	for i, b := range c.blocks {
		if size += len(b.data); size > lastBlock {
			return i
		}
	}
	return len(c.blocks)
}

// coarsen leaves, between the first point and the last one, the lowest and the highest of each
// group of neighbouring points, so that no peak of a curve is lost. The first front points are
// taken in groups of one size, the others in groups of another; a size of 2 or less leaves them
// all. It returns how many of the first old points remain.
func (c *column) coarsen(front, frontSize, tailSize, old int) (oldLeft int) {
	var kept column
	keep := func(p *groupedCell) {
		kept.add(&p.cell)
		if p.at < old {
			oldLeft++
		}
	}
	var g group
	last := c.n - 1
	c.eachOfFile(func(i int, p *cell) bool {
		size := frontSize
		if i >= front {
			size = tailSize
		}
		one := groupedCell{*p, i}
		if i == 0 || i == last || i == front || size <= 2 {
			g.flush(keep)
			if i == 0 || i == last || size <= 2 {
				keep(&one)
				return true
			}
		}
		if g.add(one); g.n >= size {
			g.flush(keep)
		}
		return true
	})
	kept.maxStep, kept.maxWall, kept.mixed = c.maxStep, c.maxWall, c.mixed
	kept.pack()
	*c = kept
	return oldLeft
}

// groupedCell is a point and its number in the column.
type groupedCell struct {
	cell
	at int
}

// group is what coarsen has seen of neighbouring points.
type group struct {
	n                int
	first, low, high groupedCell
	odd              groupedCell // one that is not a number
	isOdd            bool
	numbers          int
}

func (g *group) add(p groupedCell) {
	g.n++
	if g.n == 1 {
		g.first = p
	}
	if p.form == formOther {
		return
	}
	number := p.float()
	switch {
	case number != number:
		g.odd, g.isOdd = p, true
		return
	case g.numbers == 0:
		g.low, g.high = p, p
	case number < g.low.float():
		g.low = p
	case number > g.high.float():
		g.high = p
	}
	g.numbers++
}

// flush passes on the points of the group that stay, in their order, and begins another group.
func (g *group) flush(keep func(*groupedCell)) {
	stay := []groupedCell{g.low, g.high}
	switch {
	case g.n == 0:
		return
	case g.numbers == 0 && g.isOdd:
		stay = []groupedCell{g.odd}
	case g.numbers == 0:
		stay = []groupedCell{g.first} // values of another kind, at equal distances
	case g.isOdd:
		stay = []groupedCell{g.odd, g.high}
	}
	slices.SortFunc(stay, func(a, b groupedCell) int { return a.at - b.at })
	for i := range stay {
		if i == 0 || stay[i].at != stay[i-1].at {
			keep(&stay[i])
		}
	}
	*g = group{}
}
