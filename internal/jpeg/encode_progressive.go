package jpeg

import "math/bits"

// scansOf returns the scans of libjpeg's simple progression.
func scansOf(planes int) []scan {
	if planes == 1 {
		y := []int{0}
		return []scan{{y, 0, 0, 0, 1}, {y, 1, 5, 0, 2}, {y, 6, 63, 0, 2}, {y, 1, 63, 2, 1}, {y, 0, 0, 1, 0}, {y, 1, 63, 1, 0}}
	}
	all, y, cb, cr := []int{0, 1, 2}, []int{0}, []int{1}, []int{2}
	return []scan{
		{all, 0, 0, 0, 1}, {y, 1, 5, 0, 2}, {cr, 1, 63, 0, 1}, {cb, 1, 63, 0, 1}, {y, 6, 63, 0, 2}, {y, 1, 63, 2, 1},
		{all, 0, 0, 1, 0}, {cr, 1, 63, 1, 0}, {cb, 1, 63, 1, 0}, {y, 1, 63, 1, 0},
	}
}

func (e *encoder) progressiveScans() {
	for _, s := range scansOf(len(e.planes)) {
		f := e.blockOf(s)
		if s.from > 0 || s.high == 0 {
			e.entropy.begin(true, nil)
			e.eachBlock(s, f)
			e.endRun(e.planes[s.planes[0]])
			e.writeTablesOf(s)
		}
		e.writeScan(s)
		e.entropy.begin(false, e.out)
		e.eachBlock(s, f)
		e.endRun(e.planes[s.planes[0]])
		e.entropy.flush()
		e.out = e.entropy.out
	}
}

// writeTablesOf writes the tables of a scan that has been counted.
func (e *encoder) writeTablesOf(s scan) {
	class := min(s.from, 1)
	for k, i := range s.planes {
		table := e.planes[i].table
		if k > 0 && table == e.planes[s.planes[k-1]].table {
			continue
		}
		e.writeTable(class, table, e.entropy.counts[class][table].table())
	}
}

// blockOf returns what writes a block of a scan.
func (e *encoder) blockOf(s scan) func(s scan, p *plane, block []int16) {
	switch {
	case s.from == 0 && s.high == 0:
		return func(s scan, p *plane, block []int16) { e.difference(p, int(block[0])>>s.low) }
	case s.from == 0:
		return func(s scan, _ *plane, block []int16) { e.entropy.bits(uint32(block[0])>>s.low, 1) }
	case s.high == 0:
		return e.firstBits
	}
	return e.nextBit
}

// maxRun is the largest number of blocks in one run.
const maxRun = 0x7fff

// maxCorrection is how many bits of values a run may hold before another block:
// libjpeg has room for 1000.
const maxCorrection = 1000 - 64 + 1

func abs(v int16) int {
	if v < 0 {
		return -int(v)
	}
	return int(v)
}

// firstBits writes the first bits of a block's AC values.
func (e *encoder) firstBits(s scan, p *plane, block []int16) {
	run := 0
	for _, at := range natural[s.from : s.to+1] {
		v := abs(block[at]) >> s.low
		if v == 0 {
			run++
			continue
		}
		e.endRun(p)
		for ; run > 15; run -= 16 {
			e.entropy.symbol(1, p.table, 0xf0, 0, 0)
		}
		if block[at] < 0 {
			v = -v
		}
		n, extra := magnitude(v)
		e.entropy.symbol(1, p.table, byte(run<<4)|byte(n), extra, n)
		run = 0
	}
	if run > 0 {
		e.entropy.eobRun++
		if e.entropy.eobRun == maxRun {
			e.endRun(p)
		}
	}
}

// nextBit writes one more bit of a block's AC values.
func (e *encoder) nextBit(s scan, p *plane, block []int16) {
	last := 0 // the last value that begins with this bit
	for k := s.from; k <= s.to; k++ {
		if abs(block[natural[k]])>>s.low == 1 {
			last = k
		}
	}
	w := &e.entropy
	var own []byte // bits of values that have begun before
	run := 0
	for k := s.from; k <= s.to; k++ {
		v := abs(block[natural[k]]) >> s.low
		if v == 0 {
			run++
			continue
		}
		for ; run > 15 && k <= last; run -= 16 {
			e.endRun(p)
			w.symbol(1, p.table, 0xf0, 0, 0)
			own = w.each(own)
		}
		if v > 1 {
			own = append(own, byte(v&1))
			continue
		}
		e.endRun(p)
		sign := uint32(1)
		if block[natural[k]] < 0 {
			sign = 0
		}
		w.symbol(1, p.table, byte(run<<4|1), sign, 1)
		own = w.each(own)
		run = 0
	}
	if run == 0 && len(own) == 0 {
		return
	}
	w.eobRun++
	w.correction = append(w.correction, own...)
	if w.eobRun == maxRun || len(w.correction) > maxCorrection {
		e.endRun(p)
	}
}

// each writes single bits, and returns none.
func (w *entropy) each(list []byte) []byte {
	for _, b := range list {
		w.bits(uint32(b), 1)
	}
	return list[:0]
}

// endRun writes the run of ended blocks, if there is one.
func (e *encoder) endRun(p *plane) {
	w := &e.entropy
	if w.eobRun == 0 {
		return
	}
	n := uint(bits.Len(uint(w.eobRun))) - 1
	w.symbol(1, p.table, byte(n<<4), uint32(w.eobRun), n)
	w.eobRun = 0
	w.correction = w.each(w.correction)
}
