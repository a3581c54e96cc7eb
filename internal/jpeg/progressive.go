package jpeg

import "math/bits"

// firstAC reads the first bits of some coefficients of a block. Blocks at the end
// of whose band there is nothing more come in runs.
func (d *decoder) firstAC(h *scanHeader, c *component, at int) {
	b := c.blockAt(at)
	if d.eobRun > 0 {
		d.eobRun--
		return
	}
	for k := h.from; k <= h.to; k++ {
		rs := d.bits.symbol(c.ac)
		run, size := int(rs>>4), int(rs&15)
		if size == 0 {
			if run < 15 {
				d.eobRun = 1<<run - 1 + int(d.bits.bitsOf(run))
				return
			}
			k += 15
			continue
		}
		k += run
		v := d.bits.extended(size)
		if b[natural[min(k, 63)]] = int16(v << h.low); int16(v<<h.low) != 0 {
			c.there[at] |= 1 << min(k, 63)
		}
	}
}

// refineAC reads one more bit of some coefficients of a block: new ones, between
// which those that are not zero have a bit each.
func (d *decoder) refineAC(h *scanHeader, c *component, at int) {
	b, there := c.blockAt(at), &c.there[at]
	k := h.from
	if d.eobRun == 0 {
		for ; k <= h.to; k++ {
			rs := d.bits.symbol(c.ac)
			run, size := int(rs>>4), int(rs&15)
			var value int16
			switch {
			case size != 0:
				value = -1 << h.low
				if d.bits.bit() != 0 {
					value = 1 << h.low
				}
			case run < 15:
				d.eobRun = 1<<run + int(d.bits.bitsOf(run))
			}
			if d.eobRun > 0 {
				break
			}
			if k = d.refineZeros(h, b, *there, k, run); value != 0 {
				b[natural[k]] = value // beyond the band in damaged data, as libjpeg does
				*there |= 1 << min(k, 63)
			}
		}
	}
	if d.eobRun > 0 {
		d.refineZeros(h, b, *there, k, 64)
		d.eobRun--
	}
}

// refineZeros passes zeros coefficients that are zero, from k on, and refines the
// others that it meets. It returns where it stopped.
func (d *decoder) refineZeros(h *scanHeader, b *[64]int16, there uint64, k, zeros int) int {
	step := int16(1) << h.low
	r := &d.bits
	acc, n := r.acc, r.n // in registers
	for {
		next := min(k+bits.TrailingZeros64(there>>k), h.to+1)
		if next-k > zeros {
			k += zeros
			break
		}
		zeros -= next - k
		if k = next; k > h.to {
			break
		}
		if n < 1 {
			r.acc, r.n = acc, n
			r.fill(1)
			acc, n = r.acc, r.n
		}
		n--
		if v := &b[natural[k]&63]; acc>>(n&63)&1 != 0 && *v&step == 0 {
			sign := *v >> 15 // -1 of a negative value
			*v += (step ^ sign) - sign
		}
		k++
	}
	r.acc, r.n = acc, n
	return k
}
