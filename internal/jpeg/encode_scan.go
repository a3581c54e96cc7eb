package jpeg

// scan is a scan of a file: coefficients from to to of some planes, without their
// last low bits. high is how many bits the scan before it left away, 0 for the
// first.
type scan struct {
	planes    []int
	from, to  int
	high, low uint
}

// baselineScan writes the only scan.
func (e *encoder) baselineScan() {
	s := scan{to: 63}
	for i := range e.planes {
		s.planes = append(s.planes, i)
	}
	classes := min(len(e.planes), 2)
	if e.Optimize {
		e.entropy.begin(true, nil)
		e.eachBlock(s, e.baselineBlock)
	}
	for table := range classes {
		for class := range 2 {
			t := standardTable(class, table)
			if e.Optimize {
				t = e.entropy.counts[class][table].table()
			}
			e.writeTable(class, table, t)
		}
	}
	e.writeScan(s)
	e.entropy.begin(false, e.out)
	e.eachBlock(s, e.baselineBlock)
	e.entropy.flush()
	e.out = e.entropy.out
}

// writeTable writes a Huffman table, and uses it from now on.
func (e *encoder) writeTable(class, table int, t *codeTable) {
	e.entropy.tables[class][table] = t
	d := append([]byte{byte(class<<4 | table)}, t.counts...)
	e.segmentOf(dht, append(d, t.values...)...)
}

// writeScan writes the header of a scan.
func (e *encoder) writeScan(s scan) {
	d := []byte{byte(len(s.planes))}
	for _, i := range s.planes {
		dc, ac := e.planes[i].table, e.planes[i].table
		if e.Progressive && (s.from > 0 || s.high > 0) {
			dc = 0
		}
		if e.Progressive && s.from == 0 {
			ac = 0
		}
		d = append(d, byte(i+1), byte(dc<<4|ac))
	}
	e.segmentOf(sos, append(d, byte(s.from), byte(s.to), byte(s.high<<4|s.low))...)
}

// eachBlock calls f for the blocks of a scan, in its order.
func (e *encoder) eachBlock(s scan, f func(s scan, p *plane, block []int16)) {
	for _, i := range s.planes {
		e.planes[i].pred = 0
	}
	if len(s.planes) == 1 {
		p := e.planes[s.planes[0]]
		for y := range p.high {
			for x := range p.wide {
				f(s, p, p.block(x, y))
			}
		}
		return
	}
	for mcu := range e.mcusX * e.mcusY {
		x, y := mcu%e.mcusX, mcu/e.mcusX
		for _, i := range s.planes {
			p := e.planes[i]
			for k := range p.samples * p.samples {
				f(s, p, p.block(x*p.samples+k%p.samples, y*p.samples+k/p.samples))
			}
		}
	}
}

func (e *encoder) baselineBlock(_ scan, p *plane, block []int16) {
	e.difference(p, int(block[0]))
	run := 0
	for _, at := range natural[1:64] {
		v := int(block[at])
		if v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			e.entropy.symbol(1, p.table, 0xf0, 0, 0)
		}
		n, extra := magnitude(v)
		e.entropy.symbol(1, p.table, byte(run<<4)|byte(n), extra, n)
		run = 0
	}
	if run > 0 {
		e.entropy.symbol(1, p.table, 0, 0, 0)
	}
}

// difference writes a DC value.
func (e *encoder) difference(p *plane, v int) {
	n, extra := magnitude(v - p.pred)
	p.pred = v
	e.entropy.symbol(0, p.table, byte(n), extra, n)
}
