package jpeg

// Constants of the transforms to fewer samples, with 13 bits of fraction.
const (
	f0211164243 = 1730
	f0509795579 = 4176
	f0601344887 = 4926
	f0720959822 = 5906
	f0850430095 = 6967
	f1061594337 = 8697
	f1272758580 = 10426
	f1451774981 = 11893
	f2172734803 = 17799
	f3624509785 = 29692
)

// to4 transforms a block that is multiplied by its table to 4x4 samples.
func to4(w *block8, out []byte, stride int) {
	for i := range 8 {
		if i != 4 {
			four(w, i, 8, constBits-passBits+1)
		}
	}
	for i := range 4 {
		four(w, 8*i, 1, constBits+passBits+3+1)
		for k := range 4 {
			out[i*stride+k] = clamp(w[8*i+k])
		}
	}
}

// four makes the first four of the values at, at+step, ... of all eight but the
// fifth.
func four(w *block8, at, step int, shift uint) {
	v := func(i int) *int32 { return &w[at+i*step] }
	t0 := *v(0) << (constBits + 1)
	t2 := *v(2)*f1847759065 - *v(6)*f0765366865
	e0, e2 := t0+t2, t0-t2
	o0 := -*v(7)*f0211164243 + *v(5)*f1451774981 - *v(3)*f2172734803 + *v(1)*f1061594337
	o2 := -*v(7)*f0509795579 - *v(5)*f0601344887 + *v(3)*f0899976223 + *v(1)*f2562915447
	half := int32(1) << (shift - 1)
	*v(0), *v(3) = (e0+o2+half)>>shift, (e0-o2+half)>>shift
	*v(1), *v(2) = (e2+o0+half)>>shift, (e2-o0+half)>>shift
}

// to2 transforms a block that is multiplied by its table to 2x2 samples.
func to2(w *block8, out []byte, stride int) {
	for i := range 8 {
		if i != 2 && i != 4 && i != 6 {
			two(w, i, 8, constBits-passBits+2)
		}
	}
	for i := range 2 {
		two(w, 8*i, 1, constBits+passBits+3+2)
		out[i*stride], out[i*stride+1] = clamp(w[8*i]), clamp(w[8*i+1])
	}
}

// two makes the first two of the values at, at+step, ... of the first and the odd
// ones.
func two(w *block8, at, step int, shift uint) {
	v := func(i int) *int32 { return &w[at+i*step] }
	e := *v(0) << (constBits + 2)
	o := -*v(7)*f0720959822 + *v(5)*f0850430095 - *v(3)*f1272758580 + *v(1)*f3624509785
	half := int32(1) << (shift - 1)
	*v(0), *v(1) = (e+o+half)>>shift, (e-o+half)>>shift
}

// to1 makes one sample of a block.
func to1(w *block8, out []byte) { out[0] = clamp((w[0] + 4) >> 3) }
