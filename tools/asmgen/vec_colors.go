package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Changes of colours, of red, green and blue in slices of their own, with the bits of the
// loops in Go.

func emitColors(c *build.Context, k *constants) {
	emitLoop(c, loop{name: "turnHue", doc: "turns the hue of colours by a number of sextants between -6 and 6", slices: "red green blue", scalars: "shift"}, k.turnHue, false)
	emitLoop(c, loop{name: "saturate", doc: "scales the saturation of colours", slices: "red green blue", scalars: "by"}, k.saturate, false)
}

// turnHue finds the sextant, by which part is the greatest, and the place in it.
func (k *constants) turnHue(v *vectors) {
	r, g, b := v.load("red"), v.load("green"), v.load("blue")
	green := v.above(g, r) // is above red
	redOverBlue, blueOverGreen, greenOverBlue, blueOverRed := v.above(r, b), v.above(b, g), v.above(g, b), v.above(b, r)
	greatest := v.where(green, v.where(blueOverGreen, b, g), v.where(blueOverRed, b, r))
	least := v.where(green, v.where(redOverBlue, b, r), v.where(greenOverBlue, b, g))
	middle := v.where(green, v.where(redOverBlue, r, v.where(blueOverGreen, g, b)), v.where(greenOverBlue, g, v.where(blueOverRed, r, b)))
	sextant := v.where(green, v.where(redOverBlue, k.load(1), v.where(blueOverGreen, k.load(3), k.load(2))),
		v.where(greenOverBlue, v.zero(), v.where(blueOverRed, k.load(4), k.load(5))))
	span := v.sub(greatest, least)
	at := v.add(sextant, k.mirrored(v, sextant, v.div(v.sub(middle, least), span)))
	at = v.where(v.equal(least, greatest), v.zero(), at)
	at = v.add(at, v.scalar["shift"])
	at = v.where(v.above(v.zero(), at), v.add(at, k.load(6)), at)
	for range 2 {
		at = v.where(v.above(k.load(6), at), at, v.sub(at, k.load(6)))
	}
	at = v.where(v.equal(at, at), at, v.zero())
	whole := v.floor(at)
	middle = v.add(least, v.mul(k.mirrored(v, whole, v.sub(at, whole)), span))
	below := func(limit float32, x, y reg.VecVirtual) reg.VecVirtual {
		return v.where(v.above(k.load(limit), at), x, y)
	}
	v.store("red", below(1, greatest, below(2, middle, below(4, least, below(5, middle, greatest)))))
	v.store("green", below(1, middle, below(3, greatest, below(4, middle, least))))
	v.store("blue", below(2, least, below(3, middle, below(5, greatest, middle))))
}

// mirrored returns a place in a sextant, from the other end in those with odd numbers.
func (k *constants) mirrored(v *vectors, sextant, place reg.VecVirtual) reg.VecVirtual {
	half := v.mul(sextant, k.load(.5))
	return v.where(v.above(half, v.floor(half)), v.sub(k.load(1), place), place)
}

// saturate goes by way of hue, saturation and value.
func (k *constants) saturate(v *vectors) {
	r, g, b := v.load("red"), v.load("green"), v.load("blue")
	value, least := v.where(v.above(g, r), g, r), v.where(v.above(r, g), g, r)
	least = v.where(v.above(least, b), b, least)
	value = v.where(v.above(b, value), b, value)
	sum := v.add(v.add(r, g), b)
	number := v.equal(sum, sum)
	value, least = v.where(number, value, sum), v.where(number, least, sum)
	span := v.sub(value, least)
	s := v.mul(v.where(v.above(value, v.zero()), v.div(span, value), v.zero()), v.scalar["by"])
	limited := v.max(s, v.zero())
	limited = v.where(v.above(limited, k.load(1)), k.load(1), limited)
	chroma := v.mul(v.where(v.equal(s, s), limited, s), value)
	at := v.mul(k.load(6), k.hueOf(v, r, g, b, value, span))
	rest := v.sub(value, chroma)
	half := v.floor(v.mul(at, k.load(.5)))
	place := v.sub(v.sub(at, v.add(half, half)), k.load(1))
	middle := v.mul(chroma, v.sub(k.load(1), k.magnitude(place)))
	// Of NaN, or at the end of the circle, nothing is chosen.
	chosen := func(from, to float32, x, y reg.VecVirtual) reg.VecVirtual {
		return v.where(v.and(v.notBelow(at, k.load(from)), v.above(k.load(to), at)), x, y)
	}
	v.store("red", v.add(chosen(0, 1, chroma, chosen(1, 2, middle, chosen(4, 5, middle, chosen(5, 6, chroma, v.zero())))), rest))
	v.store("green", v.add(chosen(0, 1, middle, chosen(1, 3, chroma, chosen(3, 4, middle, v.zero()))), rest))
	v.store("blue", v.add(chosen(2, 3, middle, chosen(3, 5, chroma, chosen(5, 6, middle, v.zero()))), rest))
}

// hueOf returns the hue as a part of the circle.
func (k *constants) hueOf(v *vectors, r, g, b, value, span reg.VecVirtual) reg.VecVirtual {
	norm := v.div(k.load(1), v.mul(k.load(6), span))
	green := k.addWide(v, v.mul(norm, v.sub(b, r)), 2./6)
	blue := k.addWide(v, v.mul(norm, v.sub(r, g)), 4./6)
	h := v.where(v.equal(value, r), v.mul(norm, v.sub(g, b)), v.where(v.equal(value, g), green, blue))
	h = v.where(v.above(v.zero(), h), v.add(h, k.load(1)), h)
	return v.where(v.above(k.load(0x1p-126), span), v.zero(), h)
}

// addWide adds a number in double precision.
func (k *constants) addWide(v *vectors, x reg.VecVirtual, y float64) reg.VecVirtual {
	c := k.c
	high, low, d := c.XMM(), c.YMM(), c.YMM()
	c.VEXTRACTF128(operand.U8(1), x, high)
	c.VCVTPS2PD(x.AsX(), low)
	c.VCVTPS2PD(high, d)
	c.VADDPD(k.double(y), low, low)
	c.VADDPD(k.double(y), d, d)
	sum, upper := c.YMM(), c.XMM()
	c.VCVTPD2PSY(low, sum.AsX())
	c.VCVTPD2PSY(d, upper)
	c.VINSERTF128(operand.U8(1), upper, sum, sum)
	return sum
}

// double is a memory operand of four equal numbers of double precision.
func (k *constants) double(y float64) operand.Mem {
	bits := math.Float64bits(y)
	if m, ok := k.doubles[bits]; ok {
		return m
	}
	data := k.c.StaticGlobal("pair" + operand.U64(bits).Asm()[3:])
	k.c.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 4 {
		k.c.AppendDatum(operand.U64(bits))
	}
	k.doubles[bits] = data
	return data
}

// notBelow returns a mask of where x >= y.
func (v *vectors) notBelow(x, y reg.VecVirtual) reg.VecVirtual {
	const greaterEqual = operand.U8(0x1d) // ordered, no signal
	return v.compare(greaterEqual, x, y)
}
