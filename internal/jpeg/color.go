package jpeg

// space is the colour space of a file.
type space int

const (
	gray space = iota
	ycc
	rgb
	cmyk
	ycck
)

// chooseColors decides the colour space, as libjpeg guesses it, and the number of
// channels of the picture.
func (d *decoder) chooseColors() error {
	d.channels = d.Channels
	if d.channels == 0 {
		d.channels = min(len(d.comps), 3)
	}
	switch len(d.comps) {
	case 1:
		d.space = gray
	case 3:
		d.space = d.space3()
	default:
		d.space = cmyk
		if d.adobe && d.transform != 0 {
			d.space = ycck
		}
		if d.channels == 1 {
			return d.fail(0, "a picture of four components cannot be decoded to one channel")
		}
	}
	if d.channels != 1 && d.channels != 3 {
		return d.fail(0, "%d channels", d.channels)
	}
	return nil
}

func (d *decoder) space3() space {
	ids := [3]byte{d.comps[0].id, d.comps[1].id, d.comps[2].id}
	switch {
	case d.jfif:
		return ycc
	case d.adobe && d.transform == 0:
		return rgb
	case !d.adobe && ids == [3]byte{'R', 'G', 'B'}:
		return rgb
	}
	return ycc
}

// usedComponents returns how many components the picture is made of.
func (d *decoder) usedComponents() int {
	if d.channels == 1 && d.space == ycc {
		return 1
	}
	return len(d.comps)
}

// half is one half with 16 bits of fraction.
const half = 1 << 15

// convert makes a line of the picture of the components' lines.
func (d *decoder) convert(out []byte, p [][]byte) {
	switch {
	case d.space == gray && d.channels == 3:
		for i := range len(out) / 3 {
			v := p[0][i]
			out[3*i], out[3*i+1], out[3*i+2] = v, v, v
		}
	case d.space == gray || d.space == ycc && d.channels == 1:
		copy(out, p[0])
	case d.channels == 1:
		for i := range out {
			out[i] = byte((19595*int32(p[0][i]) + 38470*int32(p[1][i]) + 7471*int32(p[2][i]) + half) >> 16)
		}
	case d.space == ycc:
		for i := coloursWide(out, p[0], p[1], p[2]); i < len(out)/3; i++ {
			out[3*i], out[3*i+1], out[3*i+2] = fromYCC(p[0][i], p[1][i], p[2][i])
		}
	case d.space == rgb:
		for i := range len(out) / 3 {
			out[3*i], out[3*i+1], out[3*i+2] = p[0][i], p[1][i], p[2][i]
		}
	default:
		d.convertCMYK(out, p)
	}
}

// fromYCC returns red, green and blue.
func fromYCC(y, cb, cr byte) (r, g, b byte) {
	l, u, v := int32(y), int32(cb)-128, int32(cr)-128
	return byte(min(max(l+(91881*v+half)>>16, 0), 255)),
		byte(min(max(l+(-22554*u+half-46802*v)>>16, 0), 255)),
		byte(min(max(l+(116130*u+half)>>16, 0), 255))
}

// convertCMYK makes a line of a picture of four components. Adobe's files have
// their values inverted.
func (d *decoder) convertCMYK(out []byte, p [][]byte) {
	for i := range len(out) / 3 {
		c, m, y, k := p[0][i], p[1][i], p[2][i], int32(p[3][i])
		if d.space == ycck {
			c, m, y = fromYCC(c, m, y)
			c, m, y = 255-c, 255-m, 255-y
		}
		if !d.adobe {
			c, m, y, k = 255-c, 255-m, 255-y, 255-k
		}
		out[3*i], out[3*i+1], out[3*i+2] = byte(k*int32(c)/255), byte(k*int32(m)/255), byte(k*int32(y)/255)
	}
}
