package jpeg

import "slices"

// scanHeader is what a scan covers.
type scanHeader struct {
	comps     []*component
	from, to  int  // coefficients, in zigzag order
	high, low uint // bits: those that earlier scans had, and those that later ones bring
}

// maxScans bounds the work that a small file can ask for. Progressive files have
// some ten scans.
const maxScans = 500

// readScans reads scans to the end of the image.
func (d *decoder) readScans() error {
	total := 0
	for _, c := range d.comps {
		total += c.coefficients(d)
	}
	all := d.memory.coefficients(total)
	for _, c := range d.comps {
		n := c.coefficients(d)
		c.coef, all = all[:n:n], all[n:]
		if d.progressive {
			c.there = make([]uint64, n/64)
			c.known = nothingKnown
		}
	}
	for {
		m, start := d.nextMarker()
		switch {
		case m == 0 && !d.Recover, m == 0 && d.scans == 0:
			return ErrTruncated
		case m == 0 || m == eoi:
			if d.scans == 0 {
				return d.fail(start, "no scan")
			}
			d.rowsDone = d.mcusY
			return nil
		case m >= rst0 && m <= rst7 || m == tem || m == soi:
			continue
		}
		body, err := d.segment(m, start)
		if err != nil {
			return err
		}
		if m == sos {
			if d.scans++; d.scans > maxScans {
				return d.fail(start, "more than %d scans", maxScans)
			}
			err = d.scan(body, start)
		} else if m >= sof0 && m <= sofF && m != dht && m != jpg && m != dac {
			err = d.fail(start, "a second frame")
		} else {
			err = d.table(m, body, start)
		}
		if err != nil {
			return err
		}
	}
}

// scan reads the header of a scan and its data.
func (d *decoder) scan(b []byte, start int) error {
	h, err := d.scanHeader(b, start)
	if err != nil {
		return err
	}
	d.bits = bitReader{data: d.data, at: d.at, again: d.Recover}
	d.eobRun = 0
	for _, c := range h.comps {
		c.pred = 0
		if c.quant == nil {
			if c.quant = d.quant[c.table]; c.quant == nil {
				return d.fail(start, "component %d has no quantization table", c.id)
			}
		}
		c.notePrecision(h, d.scans == 1)
	}
	err = d.scanData(h)
	d.at = d.bits.at
	return err
}

func (d *decoder) scanHeader(b []byte, start int) (*scanHeader, error) {
	if len(b) < 4 || b[0] < 1 || b[0] > 4 || len(b) != 4+2*int(b[0]) {
		return nil, d.fail(start, "the scan header has %d bytes", len(b))
	}
	h := &scanHeader{}
	end := b[1+2*int(b[0]):]
	h.from, h.to, h.high, h.low = int(end[0]), int(end[1]), uint(end[2]>>4), uint(end[2]&15)
	if !d.progressive {
		h.from, h.to, h.high, h.low = 0, 63, 0, 0
	}
	if h.from > h.to || h.to > 63 || h.low > 13 || h.high > 13 || h.from == 0 && h.to > 0 && d.progressive || h.from > 0 && b[0] > 1 {
		return nil, d.fail(start, "a scan of coefficients %d to %d of %d components, bits %d to %d", h.from, h.to, b[0], h.low, h.high)
	}
	for i := range int(b[0]) {
		c, err := d.scanComponent(h, b[1+2*i], b[2+2*i], start)
		if err != nil {
			return nil, err
		}
		h.comps = append(h.comps, c)
	}
	return h, nil
}

// scanComponent finds a component of a scan and its tables.
func (d *decoder) scanComponent(h *scanHeader, id, tables byte, start int) (*component, error) {
	for _, c := range d.comps {
		if c.id != id {
			continue
		}
		if slices.Contains(h.comps, c) {
			return nil, d.fail(start, "a scan has component %d twice", id)
		}
		dc, ac := tables>>4, tables&15
		if dc > 3 || ac > 3 {
			return nil, d.fail(start, "component %d has tables %d and %d", id, dc, ac)
		}
		c.dc, c.ac = d.huff[0][dc], d.huff[1][ac]
		if !d.progressive && c.ac != nil && c.ac.both == nil {
			c.ac.findBoth()
		}
		if h.from == 0 && h.high == 0 && c.dc == nil || h.to > 0 && c.ac == nil {
			return nil, d.fail(start, "component %d has no Huffman table", id)
		}
		return c, nil
	}
	return nil, d.fail(start, "a scan of component %d, which is not in the frame", id)
}

// scanData reads the blocks of a scan: MCU by MCU if it has several components,
// else the blocks of the one that hold samples of the picture.
func (d *decoder) scanData(h *scanHeader) error {
	wide, high, lines := d.mcusX, d.mcusY, 1
	if len(h.comps) == 1 {
		wide, high, lines = h.comps[0].wide, h.comps[0].high, h.comps[0].v
	}
	first := d.rowsDone == 0
	toRestart := d.restart
	for y := range high {
		for x := range wide {
			if !d.bits.starved() {
				d.lastGood = y / lines
			}
			if d.restart > 0 && toRestart == 0 {
				d.passRestart(h)
				toRestart = d.restart
			}
			toRestart--
			if !d.bits.starved() {
				d.bits.begin()
				d.mcu(h, x, y)
			}
			if d.bits.ended {
				return ErrTruncated
			}
		}
		if first && len(h.comps) == len(d.comps) {
			d.rowsDone = (y + 1) * d.mcusY / high
		}
	}
	return nil
}

// coefficients returns how many a component has.
func (c *component) coefficients(d *decoder) int { return 64 * c.stride * d.mcusY * c.v }

// mcu reads the blocks of one MCU.
func (d *decoder) mcu(h *scanHeader, x, y int) {
	if len(h.comps) == 1 {
		c := h.comps[0]
		d.block(h, c, y*c.stride+x)
		return
	}
	for _, c := range h.comps {
		for v := range c.v {
			for u := range c.h {
				d.block(h, c, (y*c.v+v)*c.stride+x*c.h+u)
			}
		}
	}
}

// block returns the coefficients of a block.
func (c *component) block(x, y int) *[64]int16 { return c.blockAt(y*c.stride + x) }

func (c *component) blockAt(at int) *[64]int16 { return (*[64]int16)(c.coef[64*at:]) }

func (d *decoder) block(h *scanHeader, c *component, at int) {
	b := c.blockAt(at)
	switch {
	case !d.progressive:
		d.bits.sequential(c, b)
	case h.from == 0 && h.high == 0:
		c.pred += int(d.bits.extended(int(d.bits.symbol(c.dc))))
		b[0] = int16(c.pred << h.low)
	case h.from == 0:
		if d.bits.bit() != 0 {
			b[0] |= 1 << h.low
		}
	case h.high == 0:
		d.firstAC(h, c, at)
	default:
		d.refineAC(h, c, at)
	}
}

// blockBytes is more than the data of a block take, and what is read ahead of it.
const blockBytes = 1024

// sequentialWithin is sequential where the end of the data is not near, so that it need
// not be found exactly. The bits are in variables, which are registers.
func (r *bitReader) sequentialWithin(c *component, b *[64]int16) {
	c.pred += int(r.extended(int(r.symbol(c.dc))))
	b[0] = int16(c.pred)
	both, look := c.ac.both, &c.ac.look
	acc, n := r.acc, r.n
	for k := 1; k < 64; k++ {
		if n < 32 {
			r.acc, r.n = acc, n
			r.fill(32)
			acc, n = r.acc, r.n
		}
		if e := both[acc>>((n-bothBits)&63)&(1<<bothBits-1)]; e != 0 {
			k += int(e >> 8 & 15)
			b[natural[k&127]&63] = int16(e >> 16)
			n -= int(e & 0xff)
			continue
		}
		e := look[acc>>((n-lookBits)&63)&(1<<lookBits-1)]
		rs := int(e & 0xff)
		if n -= int(e >> 8); e == 0 {
			r.acc, r.n = acc, n
			rs = int(r.symbol(c.ac))
			acc, n = r.acc, r.n
		}
		size := rs & 15
		k += rs >> 4
		if size != 0 {
			n -= size
			b[natural[k&127]&63] = int16(extend(int32(acc>>(n&63))&(1<<size-1), size))
		} else if rs != 0xf0 {
			break
		}
	}
	r.acc, r.n = acc, n
}

// sequential reads a block of a baseline file.
func (r *bitReader) sequential(c *component, b *[64]int16) {
	if r.at+blockBytes < len(r.data) {
		r.sequentialWithin(c, b)
		return
	}
	c.pred += int(r.extended(int(r.symbol(c.dc))))
	b[0] = int16(c.pred)
	for k := 1; k < 64; k++ {
		rs := r.symbol(c.ac)
		run, size := int(rs>>4), int(rs&15)
		if size == 0 {
			if run != 15 {
				return
			}
			k += 15
			continue
		}
		k += run
		v := r.extended(size)
		b[natural[min(k, 63)]] = int16(v) // as libjpeg does with damaged data
	}
}

// passRestart passes a restart marker. One that is missing leaves the rest of the
// interval empty.
func (d *decoder) passRestart(h *scanHeader) {
	at := d.bits.at
	for at+1 < len(d.data) && (d.data[at] != 0xff || d.data[at+1] == 0 || d.data[at+1] == 0xff) {
		at++
	}
	d.bits = bitReader{data: d.data, at: at, again: d.Recover}
	if at+1 < len(d.data) && d.data[at+1] >= rst0 && d.data[at+1] <= rst7 {
		d.bits.at = at + 2
	} else {
		d.bits.fake = 1 // no bits until the next marker
	}
	d.eobRun = 0
	for _, c := range h.comps {
		c.pred = 0
	}
}
