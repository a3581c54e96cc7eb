package main

import "math"

func (v *neonVectors) sin(in vreg) vreg {
	y := v.wave(in, 0)
	tiny := v.op("fcmgt", v.float(sinTiny), v.op("fabs", in))
	return v.where(tiny, in, y).(vreg)
}

func (v *neonVectors) wave(in vreg, quarters uint32) vreg {
	n := v.op("frintn", v.op("fmul", in, v.float(2/math.Pi)))
	x := v.bitwise("orr", in, in)
	for _, part := range quarterParts {
		x = v.minus(x, n, v.float(part))
	}
	square := v.op("fmul", x, x)
	sin, cos := v.polynomial(square, sinTerms), v.polynomial(square, cosTerms)
	sin = v.plus(v.bitwise("orr", x, x), v.op("fmul", square, x), sin)
	q := v.op("fcvtns", n)
	if quarters > 0 {
		q = v.op("add", q, v.bits(quarters))
	}
	odd := v.shift("sshr", v.shift("shl", q, 31), 31)
	sign := v.shift("shl", v.bitwise("and", q, v.bits(2)), 30)
	return v.bitwise("eor", v.where(odd, cos, sin), sign)
}
