package jpeg

// smoothed is how many coefficients of a block, in zigzag order, libjpeg estimates
// from the means of the 25 blocks around it in a progressive file whose scans do not
// bring all bits: the picture gets smooth transitions instead of blocks.
const smoothed = 10

// precision is how many low bits each of the first coefficients lacks; -1 for one that
// no scan has brought.
type precision [smoothed]int

var nothingKnown = precision{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// means are weights of the means of 5 by 5 blocks, line by line. 256 is the whole.
type means [25]int

// fromMeans estimates coefficients where only means are known; the first one is the
// new mean of the block itself.
var fromMeans = [smoothed]means{
	{-2, -6, -8, -6, -2, -6, 6, 42, 6, -6, -8, 42, 152, 42, -8, -6, 6, 42, 6, -6, -2, -6, -8, -6, -2},
	{-1, -1, 0, 1, 1, -3, 13, 0, -13, 3, -3, 38, 0, -38, 3, -3, 13, 0, -13, 3, -1, -1, 0, 1, 1},
	{-1, -3, -3, -3, -1, -1, 13, 38, 13, -1, 0, 0, 0, 0, 0, 1, -13, -38, -13, 1, 1, 3, 3, 3, 1},
	{2: 1, 6: 2, 7: 7, 8: 2, 11: -5, 12: -14, 13: -5, 16: 2, 17: 7, 18: 2, 22: 1},
	{0: -1, 4: 1, 6: 9, 8: -9, 16: -9, 18: 9, 20: 1, 24: -1},
	{6: 2, 7: -5, 8: 2, 10: 1, 11: 7, 12: -14, 13: 7, 14: 1, 16: 2, 17: -5, 18: 2},
	{6: 1, 8: -1, 11: 2, 13: -2, 16: 1, 18: -1},
	{6: 1, 7: -3, 8: 1, 16: -1, 17: 3, 18: -1},
	{6: 1, 8: -1, 11: -3, 13: 3, 16: 1, 18: -1},
	{6: 1, 7: 2, 8: 1, 16: -1, 17: -2, 18: -1},
}

// besideOthers estimates coefficients where something is known of some.
var besideOthers = [smoothed]means{
	1: {10: -7, 11: 50, 13: -50, 14: 7},
	2: {2: -7, 7: 50, 17: -50, 22: 7},
	3: {2: -1, 7: 13, 12: -24, 17: 13, 22: -1},
	4: {1: -1, 3: 1, 5: -1, 6: 10, 8: -10, 9: 1, 15: 1, 16: -10, 18: 10, 19: -1, 21: 1, 23: -1},
	5: {10: -1, 11: 13, 12: -24, 13: 13, 14: -1},
}

// notePrecision notes what a scan, the first or a later one, does to the precision of
// a component.
func (c *component) notePrecision(h *scanHeader, isFirst bool) {
	for k := min(h.from, 1); k < smoothed; k++ {
		c.before[k] = c.known[k]
		if isFirst {
			c.before[k] = 0 // as libjpeg has it
		}
	}
	for k := h.from; k <= min(h.to, smoothed-1); k++ {
		c.known[k] = int(h.low)
	}
}

// smooths reports whether coefficients are estimated.
func (d *decoder) smooths() bool {
	useful := false
	for _, c := range d.comps {
		if !d.progressive || c.quant == nil || c.known[0] < 0 {
			return false
		}
		for k, bits := range c.known {
			if c.quant[natural[k]] == 0 {
				return false
			}
			useful = useful || k > 0 && bits != 0
		}
	}
	return useful
}

// smoother estimates the coefficients of the blocks of a line.
type smoother struct {
	c         *component
	lines     [5]int // of blocks: the line in the middle, those around it
	precision *precision
	weights   *[smoothed]means
	block     [64]int16
}

// newSmoother returns a smoother for line y of a component.
func (d *decoder) newSmoother(c *component, y int) *smoother {
	s := &smoother{c: c, lines: d.linesAround(c, y), precision: &c.known, weights: &fromMeans}
	if y/c.v > d.lastGood {
		if s.precision = &c.before; d.scans == 1 {
			s.precision = &nothingKnown
		}
	}
	for _, bits := range s.precision[1:] {
		if bits != -1 {
			s.weights = &besideOthers
		}
	}
	return s
}

// linesAround returns two lines of blocks before y, y, and two after it. At the ends of
// the picture lines are repeated. So they are, in libjpeg 2.1, where the second line before
// or after is in the same row of MCUs as the picture's end, or in the one next to it.
func (d *decoder) linesAround(c *component, y int) [5]int {
	mcu, row := y/c.v, y%c.v
	last, rows := d.mcusY-1, c.v
	if mcu == last {
		rows = c.high - last*c.v
	}
	l := [5]int{y, y, y, y, y}
	if row > 0 || mcu > 0 {
		l[0], l[1] = y-1, y-1
	}
	if row > 1 || mcu > 1 {
		l[0] = y - 2
	}
	if row < rows-1 || mcu < last {
		l[3], l[4] = y+1, y+1
	}
	if row < rows-2 || mcu+1 < last {
		l[4] = y + 2
	}
	return l
}

// columnAt returns the column that counts as column x: at the ends of the picture columns are
// repeated. In one of two columns libjpeg 2.1 has the first one after the second.
func (c *component) columnAt(x int) int {
	if c.wide == 2 && x > 1 {
		return 0
	}
	return min(max(x, 0), c.wide-1)
}

// at returns block x of the line with estimates. It is valid until the next call.
func (s *smoother) at(x int) *[64]int16 {
	c := s.c
	s.block = *c.block(x, s.lines[2])
	var around means
	for i, y := range s.lines {
		for j := range 5 {
			around[5*i+j] = int(c.block(c.columnAt(x+j-2), y)[0])
		}
	}
	for k := 1; k < smoothed; k++ {
		if bits, n := s.precision[k], natural[k]; bits != 0 && s.block[n] == 0 {
			s.block[n] = s.estimate(k, bits, &around)
		}
	}
	if s.weights == &fromMeans {
		s.block[0] = s.estimate(0, 0, &around)
	}
	return &s.block
}

// estimate returns coefficient k, rounded, as far as its low bits alone can be it.
func (s *smoother) estimate(k, bits int, around *means) int16 {
	sum := 0
	for i, w := range s.weights[k] {
		sum += w * around[i]
	}
	sum *= int(s.c.quant[0])
	step := int(s.c.quant[natural[k]])
	v := (step<<7 + max(sum, -sum)) / (step << 8)
	if bits > 0 {
		v = min(v, 1<<bits-1)
	}
	if sum < 0 {
		v = -v
	}
	return int16(v)
}
