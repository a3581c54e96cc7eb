package jpeg

// firstAC reads the first bits of some coefficients of a block. Blocks at the end
// of whose band there is nothing more come in runs.
func (d *decoder) firstAC(h *scanHeader, c *component, b *[64]int16) {
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
		b[natural[min(k, 63)]] = int16(v << h.low)
	}
}

// refineAC reads one more bit of some coefficients of a block: new ones, between
// which those that are not zero have a bit each.
func (d *decoder) refineAC(h *scanHeader, c *component, b *[64]int16) {
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
			if k = d.refineZeros(h, b, k, run); k <= h.to && value != 0 {
				b[natural[k]] = value
			}
		}
	}
	if d.eobRun > 0 {
		d.refineZeros(h, b, k, 64)
		d.eobRun--
	}
}

// refineZeros passes zeros coefficients that are zero, from k on, and refines the
// others that it meets. It returns where it stopped.
func (d *decoder) refineZeros(h *scanHeader, b *[64]int16, k, zeros int) int {
	step := int16(1) << h.low
	for ; k <= h.to; k++ {
		v := &b[natural[k]]
		if *v == 0 {
			if zeros == 0 {
				break
			}
			zeros--
			continue
		}
		if d.bits.bit() != 0 && *v&step == 0 {
			if *v > 0 {
				*v += step
			} else {
				*v -= step
			}
		}
	}
	return k
}
