package jpeg

// sample fills the blocks of plane i with quantized coefficients.
func (e *encoder) sample(m *Image, i int) {
	p := e.planes[i]
	q := quantTable(p.table, e.Quality)
	for k := range q {
		q[k] *= 8 // the transform's factor
	}
	at := e.sampler(m, i)
	var w block8
	for y := range p.high {
		for x := range p.wide {
			for k := range w {
				w[k] = at(8*x+k&7, 8*y+k>>3) - 128
			}
			forward(&w)
			quantize(p.block(x, y), &w, &q)
		}
	}
	p.fillUp(e.mcusX, e.mcusY)
}

// fillUp makes the blocks with no sample of the picture: all have the DC value of
// the last block of their MCU that has one.
func (p *plane) fillUp(mcusX, mcusY int) {
	for y := range p.high {
		for x := p.wide; x < p.stride; x++ {
			p.block(x, y)[0] = p.block(x-1, y)[0]
		}
	}
	for y := p.high; y < mcusY*p.samples; y++ {
		for x := range mcusX {
			dc := p.block((x+1)*p.samples-1, y-1)[0]
			for k := range p.samples {
				p.block(x*p.samples+k, y)[0] = dc
			}
		}
	}
}

// sampler returns what gives a sample of a plane, also outside the picture, whose
// last column and last line are repeated.
func (e *encoder) sampler(m *Image, i int) func(x, y int) int32 {
	if m.Channels == 1 {
		return func(x, y int) int32 {
			return int32(m.Pix[min(y, m.Height-1)*m.Width+min(x, m.Width-1)])
		}
	}
	one := func(x, y int) int32 {
		at := 3 * (min(y, m.Height-1)*m.Width + min(x, m.Width-1))
		return toYCC(m.Pix[at:at+3:at+3], i)
	}
	if i == 0 || !e.Subsample {
		return one
	}
	last := ceilDiv(m.Height, 2) - 1
	return func(x, y int) int32 {
		y = min(y, last)
		// libjpeg rounds down and up by turns.
		bias := int32(1 + x&1)
		return (one(2*x, 2*y) + one(2*x+1, 2*y) + one(2*x, 2*y+1) + one(2*x+1, 2*y+1) + bias) >> 2
	}
}

// toYCC returns component i of a pixel.
func toYCC(rgb []byte, i int) int32 {
	r, g, b := int32(rgb[0]), int32(rgb[1]), int32(rgb[2])
	switch i {
	case 0:
		return (19595*r + 38470*g + 7471*b + half) >> 16
	case 1:
		return (-11059*r - 21709*g + 32768*b + 128<<16 + half - 1) >> 16
	default:
		return (32768*r - 27439*g - 5329*b + 128<<16 + half - 1) >> 16
	}
}

// quantize divides by the table, and rounds halves away from zero.
func quantize(out []int16, w *block8, q *[64]uint16) {
	for k, v := range w {
		d := int32(q[k])
		if v < 0 {
			out[k] = int16(-((-v + d/2) / d))
		} else {
			out[k] = int16((v + d/2) / d)
		}
	}
}

// forward is the inverse of [accurate], times 8.
func forward(w *block8) {
	for i := range 8 {
		forward8(w, 8*i, 1, constBits-passBits)
		w[8*i], w[8*i+4] = w[8*i]<<passBits, w[8*i+4]<<passBits
	}
	for i := range 8 {
		forward8(w, i, 8, constBits+passBits)
		w[i], w[i+32] = descale(w[i], passBits), descale(w[i+32], passBits)
	}
}

func descale(v int32, shift uint) int32 { return (v + 1<<(shift-1)) >> shift }

// forward8 transforms the eight values at, at+step, .... Values 0 and 4 have not
// been multiplied, and are not shifted.
func forward8(w *block8, at, step int, shift uint) {
	v := func(i int) *int32 { return &w[at+i*step] }
	t0, t7 := *v(0)+*v(7), *v(0)-*v(7)
	t1, t6 := *v(1)+*v(6), *v(1)-*v(6)
	t2, t5 := *v(2)+*v(5), *v(2)-*v(5)
	t3, t4 := *v(3)+*v(4), *v(3)-*v(4)

	t10, t13, t11, t12 := t0+t3, t0-t3, t1+t2, t1-t2
	z1 := (t12 + t13) * f0541196100
	*v(0), *v(4) = t10+t11, t10-t11
	*v(2), *v(6) = descale(z1+t13*f0765366865, shift), descale(z1-t12*f1847759065, shift)

	z1, z2, z3, z4 := t4+t7, t5+t6, t4+t6, t5+t7
	z5 := (z3 + z4) * f1175875602
	z1, z2, z3, z4 = -z1*f0899976223, -z2*f2562915447, z5-z3*f1961570560, z5-z4*f0390180644
	*v(7) = descale(t4*f0298631336+z1+z3, shift)
	*v(5) = descale(t5*f2053119869+z2+z4, shift)
	*v(3) = descale(t6*f3072711026+z2+z3, shift)
	*v(1) = descale(t7*f1501321110+z1+z4, shift)
}
