package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sin is the sine of numbers up to 1e5; what comes of others means nothing.
func (k *constants) sin(v *vectors) {
	in := v.load("x")
	y := k.wave(v, in, 0)
	tiny := k.c.YMM()
	const less = operand.U8(0x11) // ordered, no signal
	k.c.VCMPPS(less, k.float(sinTiny), k.magnitude(in), tiny)
	v.store("d", v.where(tiny, in, y))
}

// wave returns the sine of so many quarters of the circle more than x. What x is more than
// whole quarters goes into a polynomial, of the sine or the cosine.
func (k *constants) wave(v *vectors, in reg.VecVirtual, quarters uint32) reg.VecVirtual {
	c := k.c
	n, x := c.YMM(), c.YMM()
	c.VMULPS(k.float(2/math.Pi), in, n)
	c.VROUNDPS(operand.U8(0), n, n)
	c.VMOVAPS(in, x)
	for _, part := range quarterParts {
		c.VFNMADD231PS(k.float(part), n, x)
	}
	square := v.mul(x, x)
	sin, cos := k.polynomial(square, sinTerms...), k.polynomial(square, cosTerms...)
	c.VFMADD213PS(x, v.mul(square, x), sin)
	q, odd, sign := c.YMM(), c.YMM(), c.YMM()
	c.VCVTPS2DQ(n, q)
	if quarters > 0 {
		c.VPADDD(k.bits(quarters), q, q)
	}
	c.VPSLLD(operand.U8(31), q, odd)
	c.VPAND(k.bits(2), q, sign)
	c.VPSLLD(operand.U8(30), sign, sign)
	y := v.where(odd, cos, sin)
	c.VXORPS(sign, y, y)
	return y
}
