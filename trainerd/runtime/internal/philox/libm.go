package philox

import "math"

// The normal distributions pass through log, sin and cos in single precision.
// The bits of their results depend on how the C library approximates these
// functions: none is correctly rounded, and one result in sixty differs from
// the nearest float. What follows computes the same polynomials, in doubles,
// as the C library of Linux (glibc 2.28 and later, x86-64) that TensorFlow is
// linked with, for the arguments that occur here.

// logTable holds, for sixteen parts of an octave, a number close to the
// reciprocal of the part's centre and minus its logarithm.
var logTable = [16][2]float64{
	{0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2}, {0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2},
	{0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2}, {0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3},
	{0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3}, {0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3},
	{0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4}, {0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4},
	{0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5}, {1, 0},
	{0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5}, {0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4},
	{0x1.b2036576afce6p-1, 0x1.526e57720db08p-3}, {0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3},
	{0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2}, {0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2},
}

// log32 returns the logarithm of a normal float in (0, 1].
func log32(x float32) float32 {
	const (
		offset     = 0x3f330000 // bits of the float where the octave begins
		a0, a1, a2 = -0x1.00ea348b88334p-2, 0x1.5575b0be00b6ap-2, -0x1.ffffef20a4123p-2
	)
	if x == 1 {
		return 0
	}
	bits := math.Float32bits(x)
	off := bits - offset
	octave := int32(off) >> 23
	part := logTable[off>>19%16]
	z := float64(math.Float32frombits(bits - off&0xff800000))
	r := float64(z*part[0]) - 1
	y0 := part[1] + float64(float64(octave)*math.Ln2)
	r2 := float64(r * r)
	y := float64(a1*r) + a2
	y = float64(a0*r2) + y
	return float32(float64(y*r2) + (y0 + r))
}

// sincos32 returns the sine and the cosine of a float in [0, 2π].
func sincos32(x float32) (sin, cos float32) {
	const small = 0x1p-12 // below this the argument and one are the results
	if x < small {
		return x, 1
	}
	const reduced = 0.75 // no reduction below this
	y, quadrant := float64(x), 0
	if x >= reduced {
		const scaled = 0x1.45f306dc9c883p+23 // 2/π in units of 2^-24
		quadrant = (int(int32(y*scaled)) + 0x800000) >> 24
		y -= float64(float64(quadrant) * (math.Pi / 2))
	}
	s, c := sinNear(y), cosNear(y)
	switch quadrant & 3 {
	case 0:
		return float32(s), float32(c)
	case 1:
		return float32(c), float32(-s)
	case 2:
		return float32(-s), float32(-c)
	}
	return float32(-c), float32(s)
}

// sinNear is the sine for |x| <= π/4.
func sinNear(x float64) float64 {
	const s1, s2, s3 = -0x1.555545995a603p-3, 0x1.1107605230bc4p-7, -0x1.994eb3774cf24p-13
	x2 := float64(x * x)
	x3 := float64(x * x2)
	tail := s2 + float64(x2*s3)
	x7 := float64(x3 * x2)
	return x + float64(x3*s1) + float64(x7*tail)
}

// cosNear is the cosine for |x| <= π/4.
func cosNear(x float64) float64 {
	const (
		c1, c2 = -0x1.ffffffd0c621cp-2, 0x1.55553e1068f19p-5
		c3, c4 = -0x1.6c087e89a359dp-10, 0x1.99343027bf8c3p-16
	)
	x2 := float64(x * x)
	x4 := float64(x2 * x2)
	tail := c3 + float64(x2*c4)
	head := 1 + float64(x2*c1)
	x6 := float64(x4 * x2)
	return head + float64(x4*c2) + float64(x6*tail)
}
