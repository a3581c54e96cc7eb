package jpeg

// upsampler brings the lines of a component to the width of the picture.
type upsampler struct {
	c     *component
	h, v  int // samples of the picture for one of the component
	fancy bool
	out   []byte
}

func (d *decoder) newUpsampler(c *component) *upsampler {
	u := &upsampler{c: c, fancy: d.fancy(c)}
	u.h, u.v = d.times(c)
	u.out = make([]byte, (c.width+1)*u.h)
	return u
}

// fancy reports whether a component is interpolated: only to twice the width, the
// height or both, and not if it is very narrow.
func (d *decoder) fancy(c *component) bool {
	if !d.Fancy || d.minScaled == 1 {
		return false
	}
	switch h, v := d.times(c); {
	case h == 1 && v == 2:
		return true
	case h == 2 && v <= 2:
		return c.width > 2
	}
	return false
}

// needsContext reports whether some component is interpolated vertically.
func (d *decoder) needsContext() bool {
	for _, c := range d.comps[:d.usedComponents()] {
		if _, v := d.times(c); v == 2 && d.fancy(c) {
			return true
		}
	}
	return false
}

// row returns the samples of a line of the component; lines outside are those of
// the edge.
func (c *component) row(y int) []byte {
	y = min(max(y, 0), c.height-1)
	return c.pix[y*c.lineBytes:][:c.width]
}

// line returns the samples for line y of the picture, until the next call.
func (u *upsampler) line(y int) []byte {
	near := u.c.row(y / u.v)
	if !u.fancy {
		return u.repeated(near)
	}
	far, bias := near, int32(0)
	if u.v == 2 {
		far, bias = u.c.row(y/2-1), 1
		if y%2 == 1 {
			far, bias = u.c.row(y/2+1), 2
		}
	}
	switch {
	case u.h == 1:
		for i, v := range near {
			u.out[i] = byte((3*int32(v) + int32(far[i]) + bias) >> 2)
		}
	case u.v == 1:
		u.wide(near)
	default:
		u.wideHigh(near, far)
	}
	return u.out
}

// repeated repeats the samples of a line.
func (u *upsampler) repeated(line []byte) []byte {
	if u.h == 1 {
		return line
	}
	at := 0
	for _, v := range line {
		for range u.h {
			u.out[at] = v
			at++
		}
	}
	return u.out
}

// wide doubles the width: each sample becomes two, each a quarter of the way to
// its neighbour.
func (u *upsampler) wide(line []byte) {
	last := len(line) - 1
	for i, b := range line {
		v := 3 * int32(b)
		left, right := int32(line[max(i-1, 0)]), int32(line[min(i+1, last)])
		u.out[2*i], u.out[2*i+1] = byte((v+left+1)>>2), byte((v+right+2)>>2)
	}
}

// wideHigh doubles width and height.
func (u *upsampler) wideHigh(near, far []byte) {
	sum := func(i int) int32 { return 3*int32(near[i]) + int32(far[i]) }
	last := len(near) - 1
	u.out[0], u.out[1] = byte((4*sum(0)+8)>>4), byte((3*sum(0)+sum(min(1, last))+7)>>4)
	i := wideHighWide(u.out, near, far)
	left, here := sum(i-1), sum(min(i, last))
	for ; i <= last; i++ {
		right := sum(min(i+1, last))
		u.out[2*i], u.out[2*i+1] = byte((3*here+left+8)>>4), byte((3*here+right+7)>>4)
		left, here = here, right
	}
}
