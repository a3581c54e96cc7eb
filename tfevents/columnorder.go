package tfevents

import (
	"cmp"
	"slices"
)

// timedCell is a point and the latest time up to it in its file.
type timedCell struct {
	cell
	until float64
}

// isMixed reports whether there are points of several files that were written at the same time.
func (c *column) isMixed() bool { return c.mixed && len(c.parts) > 1 }

// inOrder is each, but with the points of files that were written at the same time in the
// order of time: one after the other, each file would lead back to where the one before
// it began. Points of one file keep their order.
func (c *column) inOrder(f func(p *cell) bool) {
	if !c.isMixed() {
		c.each(f)
		return
	}
	for _, p := range c.timed() {
		if !f(&p.cell) {
			return
		}
	}
}

func (c *column) timed() []timedCell {
	all := make([]timedCell, 0, c.n)
	c.eachOfFile(func(_ int, p *cell) bool {
		one := timedCell{*p, p.wallTime()}
		if n := len(all); n > 0 && all[n-1].file == p.file && !(one.until > all[n-1].until) {
			one.until = all[n-1].until
		}
		all = append(all, one)
		return true
	})
	slices.SortStableFunc(all, func(a, b timedCell) int { return cmp.Compare(a.until, b.until) })
	return all
}

// ends returns the first point and the last one of a column that has points.
func (c *column) ends() (first, last cell) {
	if !c.isMixed() {
		return c.first(), c.tail
	}
	all := c.timed()
	return all[0].cell, all[len(all)-1].cell
}
