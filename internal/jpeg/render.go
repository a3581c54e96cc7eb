package jpeg

// scale fixes the size of the picture and of each component after the transform.
// A component with fewer samples is rather transformed to more of them than
// brought to the picture's size afterwards.
func (d *decoder) scale() error {
	d.minScaled = 8 / d.Ratio
	d.outWidth, d.outHeight = Config{Width: d.width, Height: d.height}.Size(d.Ratio)
	for _, c := range d.comps {
		c.scaled = d.minScaled
		for c.scaled < 8 && d.maxH*d.minScaled%(c.h*c.scaled*2) == 0 && d.maxV*d.minScaled%(c.v*c.scaled*2) == 0 {
			c.scaled *= 2
		}
		c.width = ceilDiv(d.width*c.h*c.scaled, d.maxH*8)
		c.height = ceilDiv(d.height*c.v*c.scaled, d.maxV*8)
		if h, v := d.times(c); h == 0 || v == 0 {
			return d.fail(0, "component %d has sampling %dx%d of %dx%d, which is not supported", c.id, c.h, c.v, d.maxH, d.maxV)
		}
	}
	return nil
}

// times returns how many samples of the picture one of a component is wide and
// high, 0 if that is not a whole number.
func (d *decoder) times(c *component) (h, v int) {
	if n := c.h * c.scaled; d.maxH*d.minScaled%n == 0 {
		h = d.maxH * d.minScaled / n
	}
	if n := c.v * c.scaled; d.maxV*d.minScaled%n == 0 {
		v = d.maxV * d.minScaled / n
	}
	return h, v
}

// render makes the first lines of the picture.
func (d *decoder) render(img *Image, lines int) {
	comps := d.comps[:d.usedComponents()]
	total := 0
	for _, c := range comps {
		c.lineBytes = c.stride * c.scaled
		total += c.lineBytes * c.high * c.scaled
	}
	pix := d.memory.samples(total)
	for _, c := range comps {
		n := c.lineBytes * c.high * c.scaled
		c.pix, pix = pix[:n:n], pix[n:]
		d.transformComponent(c)
	}
	rows := make([]*upsampler, d.usedComponents())
	for i := range rows {
		rows[i] = d.newUpsampler(d.comps[i])
	}
	planes := make([][]byte, len(rows))
	for y := range lines {
		for i, u := range rows {
			planes[i] = u.line(y)
		}
		d.convert(img.Pix[y*img.Width*img.Channels:][:img.Width*img.Channels], planes)
	}
}

// transformComponent makes the samples of a component.
func (d *decoder) transformComponent(c *component) {
	isFast := d.Method == Fast && c.scaled == 8
	table := c.table32(isFast)
	smooths := d.smooths()
	for y := range c.high {
		var s *smoother
		if smooths {
			s = d.newSmoother(c, y)
		}
		for x := range c.wide {
			b, out := c.block(x, y), c.pix[y*c.scaled*c.lineBytes+x*c.scaled:]
			if smooths {
				b = s.at(x)
			}
			if c.scaled == 8 && transformWide(isFast, b, table, out, c.lineBytes) {
				continue
			}
			var w block8
			for i, q := range table {
				w[i] = int32(b[i]) * q
			}
			switch {
			case isFast:
				fast(&w, out, c.lineBytes)
			case c.scaled == 8:
				accurate(&w, out, c.lineBytes)
			case c.scaled == 4:
				to4(&w, out, c.lineBytes)
			case c.scaled == 2:
				to2(&w, out, c.lineBytes)
			default:
				to1(&w, out)
			}
		}
	}
}

// table32 returns the quantization table as a transform takes it.
func (c *component) table32(isFast bool) *[64]int32 {
	var t [64]int32
	if c.quant == nil { // no scan had the component
		return &t
	}
	for i, q := range c.quant {
		t[i] = int32(q)
		if isFast {
			t[i] = (int32(q)*aan[i] + 1<<11) >> 12
		}
	}
	return &t
}
