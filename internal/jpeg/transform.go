package jpeg

// Constants of the accurate transform, with 13 bits of fraction.
const (
	constBits = 13
	passBits  = 2

	f0298631336 = 2446
	f0390180644 = 3196
	f0541196100 = 4433
	f0765366865 = 6270
	f0899976223 = 7373
	f1175875602 = 9633
	f1501321110 = 12299
	f1847759065 = 15137
	f1961570560 = 16069
	f2053119869 = 16819
	f2562915447 = 20995
	f3072711026 = 25172
)

// block8 is the working memory of a transform.
type block8 [64]int32

// clamp makes a sample of a value around zero.
func clamp(v int32) byte { return byte(min(max(v+128, 0), 255)) }

// accurate transforms a block that is multiplied by its table to 8x8 samples.
func accurate(w *block8, out []byte, stride int) {
	for i := range 8 {
		odd8(w, i, 8, constBits-passBits)
	}
	for i := range 8 {
		odd8(w, 8*i, 1, constBits+passBits+3)
		row := out[i*stride : i*stride+8 : i*stride+8]
		for k := range 8 {
			row[k] = clamp(w[8*i+k])
		}
	}
}

// odd8 transforms the eight values at, at+step, ... and shifts the results.
func odd8(w *block8, at, step int, shift uint) {
	v := func(i int) *int32 { return &w[at+i*step] }
	z1 := (*v(2) + *v(6)) * f0541196100
	t2, t3 := z1-*v(6)*f1847759065, z1+*v(2)*f0765366865
	t0, t1 := (*v(0)+*v(4))<<constBits, (*v(0)-*v(4))<<constBits
	e0, e3, e1, e2 := t0+t3, t0-t3, t1+t2, t1-t2

	o0, o1, o2, o3 := *v(7), *v(5), *v(3), *v(1)
	z1, z2, z3, z4 := o0+o3, o1+o2, o0+o2, o1+o3
	z5 := (z3 + z4) * f1175875602
	z1, z2, z3, z4 = -z1*f0899976223, -z2*f2562915447, z5-z3*f1961570560, z5-z4*f0390180644
	o0 = o0*f0298631336 + z1 + z3
	o1 = o1*f2053119869 + z2 + z4
	o2 = o2*f3072711026 + z2 + z3
	o3 = o3*f1501321110 + z1 + z4

	half := int32(1) << (shift - 1)
	*v(0), *v(7) = (e0+o3+half)>>shift, (e0-o3+half)>>shift
	*v(1), *v(6) = (e1+o2+half)>>shift, (e1-o2+half)>>shift
	*v(2), *v(5) = (e2+o1+half)>>shift, (e2-o1+half)>>shift
	*v(3), *v(4) = (e3+o0+half)>>shift, (e3-o0+half)>>shift
}

// Constants of the fast transform, with 8 bits of fraction.
const (
	g1082392200 = 277
	g1414213562 = 362
	g1847759065 = 473
	g2613125930 = 669
)

// aan are the factors that the fast transform leaves to the quantization table,
// for one dimension, with 14 bits of fraction.
var aan = [64]int32{
	16384, 22725, 21407, 19266, 16384, 12873, 8867, 4520,
	22725, 31521, 29692, 26722, 22725, 17855, 12299, 6270,
	21407, 29692, 27969, 25172, 21407, 16819, 11585, 5906,
	19266, 26722, 25172, 22654, 19266, 15137, 10426, 5315,
	16384, 22725, 21407, 19266, 16384, 12873, 8867, 4520,
	12873, 17855, 16819, 15137, 12873, 10114, 6967, 3552,
	8867, 12299, 11585, 10426, 8867, 6967, 4799, 2446,
	4520, 6270, 5906, 5315, 4520, 3552, 2446, 1247,
}

// fast transforms a block that is multiplied by its scaled table to 8x8 samples.
func fast(w *block8, out []byte, stride int) {
	for i := range 8 {
		fast8(w, i, 8)
	}
	for i := range 8 {
		fast8(w, 8*i, 1)
		row := out[i*stride : i*stride+8 : i*stride+8]
		for k := range 8 {
			row[k] = clamp(w[8*i+k] >> (passBits + 3))
		}
	}
}

// fast8 transforms the eight values at, at+step, ....
func fast8(w *block8, at, step int) {
	v := func(i int) *int32 { return &w[at+i*step] }
	t10, t11 := *v(0)+*v(4), *v(0)-*v(4)
	t13 := *v(2) + *v(6)
	t12 := (*v(2)-*v(6))*g1414213562>>8 - t13
	e0, e3, e1, e2 := t10+t13, t10-t13, t11+t12, t11-t12

	z13, z10 := *v(5)+*v(3), *v(5)-*v(3)
	z11, z12 := *v(1)+*v(7), *v(1)-*v(7)
	o7 := z11 + z13
	z5 := (z10 + z12) * g1847759065 >> 8
	o6 := z10*-g2613125930>>8 + z5 - o7
	o5 := (z11-z13)*g1414213562>>8 - o6
	o4 := z12*g1082392200>>8 - z5 + o5

	*v(0), *v(7) = e0+o7, e0-o7
	*v(1), *v(6) = e1+o6, e1-o6
	*v(2), *v(5) = e2+o5, e2-o5
	*v(4), *v(3) = e3+o4, e3-o4
}
