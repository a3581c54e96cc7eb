package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// functions are those of float32 that are approximations; they have the same
// bits on all processors.
var functions = []loop{
	{name: "exp", doc: "sets d to the exponentials of x", slices: "d x"},
	{name: "log", doc: "sets d to the natural logarithms of x", slices: "d x"},
	{name: "tanh", doc: "sets d to the hyperbolic tangents of x", slices: "d x"},
	{name: "erf", doc: "sets d to the error functions of x", slices: "d x"},
	{name: "erfc", doc: "sets d to one minus the error functions of x", slices: "d x"},
	{name: "sigmoid", doc: "sets d to the logistic functions of x", slices: "d x"},
	{name: "sin", doc: "sets d to the sines of x", slices: "d x"},
	{name: "cos", doc: "sets d to the cosines of x", slices: "d x"},
}

// Coefficients of polynomials, from the highest power down: of the Cephes library
// (exp, log, sin, cos), of Eigen (tanh, erf) and of Numerical Recipes (erfc).
var (
	expTerms = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}
	logTerms = []float32{7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
		2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1}
	tanhTerms = []float32{-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
		1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03}
	tanhDivisor = []float32{1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03}
	erfTerms    = []float32{-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
		-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02}
	erfDivisor = []float32{-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02}
	erfcTerms  = []float32{.17087277, -.82215223, 1.48851587, -1.13520398, .27886807, -.18628806, .09678418, .37409196, 1.00002368, -1.26551223}
	sinTerms   = []float32{-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}
	cosTerms   = []float32{2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -.5, 1}
	// A quarter of the circle is the sum of these. The first one times a whole number is
	// taken from x without rounding.
	quarterParts = []float32{1.57079637, -4.37113883e-08, -1.71512451e-15}
)

const (
	tanhLimit       = 7.90531110763549805 // beyond it, tanh is one
	erfcLimit       = 10.5                // beyond it, erfc is zero
	log2e           = 1.44269504088896341
	ln2High, ln2Low = 0.693359375, -2.12194440e-4 // log(2) is their sum
	sqrtHalf        = 0.707106781186547524
	smallestNormal  = 0x00800000 // its bits, and others
	infinity        = 0x7f800000
	minusInfinity   = 0xff800000
	fractionBits    = 0x007fffff
	sinTiny         = .0003      // below it, sin(x) is x
	twelveBits      = 0xfffff000 // of a fraction; the square is exact
	signBit         = 0x80000000
)

// emitFunctions emits the functions.
func emitFunctions(c *build.Context, k *constants) {
	bodies := map[string]func(v *vectors){
		"exp": func(v *vectors) { v.store("d", k.exp(v, v.load("x"))) }, "log": k.log, "tanh": k.tanh, "erf": k.erf, "erfc": k.erfc, "sigmoid": k.sigmoid,
		"sin": k.sin, "cos": func(v *vectors) { v.store("d", k.wave(v, v.load("x"), 1)) },
	}
	for _, l := range functions {
		emitLoop(c, l, bodies[l.name], false)
	}
}

// constants are memory operands of eight equal elements, by their bits.
type constants struct {
	c       *build.Context
	made    map[uint32]operand.Mem
	doubles map[uint64]operand.Mem // of four
}

func newConstants(c *build.Context) *constants {
	return &constants{c: c, made: map[uint32]operand.Mem{}, doubles: map[uint64]operand.Mem{}}
}

func (k *constants) bits(bits uint32) operand.Mem {
	if m, ok := k.made[bits]; ok {
		return m
	}
	data := k.c.StaticGlobal("word" + operand.U32(bits).Asm()[3:])
	k.c.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 8 {
		k.c.AppendDatum(operand.U32(bits))
	}
	k.made[bits] = data
	return data
}

func (k *constants) float(value float32) operand.Mem { return k.bits(math.Float32bits(value)) }

// load returns a constant in a register.
func (k *constants) load(value float32) reg.VecVirtual {
	r := k.c.YMM()
	k.c.VMOVUPS(k.float(value), r)
	return r
}

// polynomial returns the polynomial in x whose coefficients are listed from
// the highest power down.
func (k *constants) polynomial(x reg.VecVirtual, list ...float32) reg.VecVirtual {
	p := k.load(list[0])
	for _, value := range list[1:] {
		k.c.VFMADD213PS(k.float(value), x, p)
	}
	return p
}

// clamp limits x to the numbers between lo and hi; NaN stays NaN,
// because the constant is the first operand.
func (k *constants) clamp(v *vectors, x reg.VecVirtual, lo, hi float32) reg.VecVirtual {
	return v.op(k.c.VMINPS, nil, k.load(hi), v.max(k.load(lo), x))
}

// magnitude returns x without its sign.
func (k *constants) magnitude(x reg.VecVirtual) reg.VecVirtual {
	r := k.c.YMM()
	k.c.VANDPS(k.bits(0x7fffffff), x, r)
	return r
}

// exp returns the exponentials: x = n*log(2) + r, a polynomial in r, times
// two to the n in two factors, so that results below the normal numbers and
// infinity come out by themselves. The polynomial is that of the Cephes
// library, good to one unit in the last place.
func (k *constants) exp(v *vectors, x reg.VecVirtual) reg.VecVirtual {
	c := k.c
	x = k.clamp(v, x, -104, 89)
	n := c.YMM()
	c.VMULPS(k.float(log2e), x, n)
	c.VROUNDPS(operand.U8(0), n, n)
	c.VFNMADD231PS(k.float(ln2High), n, x)
	c.VFNMADD231PS(k.float(ln2Low), n, x)
	p := k.polynomial(x, expTerms...)
	square := v.mul(x, x)
	c.VFMADD213PS(x, square, p)
	c.VADDPS(k.float(1), p, p)
	whole, half := c.YMM(), c.YMM()
	c.VCVTPS2DQ(n, whole)
	c.VPSRAD(operand.U8(1), whole, half)
	c.VPSUBD(half, whole, whole)
	for _, e := range []reg.VecVirtual{whole, half} {
		c.VPSLLD(operand.U8(23), e, e)
		c.VPADDD(k.float(1), e, e)
		p = v.mul(p, e)
	}
	return p
}

// sigmoid is 1/(1+e) of e = exp(-|x|), and e/(1+e) of negative numbers, which
// keeps those near zero exact.
func (k *constants) sigmoid(v *vectors) {
	c := k.c
	x := v.load("x")
	negative := c.YMM()
	c.VORPS(k.bits(signBit), x, negative)
	e := k.exp(v, negative)
	one := k.load(1)
	// The sign of x chooses.
	v.store("d", v.div(v.where(x, e, one), v.add(one, e)))
}

// tanh is a rational function, the one that Eigen computes.
func (k *constants) tanh(v *vectors) {
	c := k.c
	in := v.load("x")
	x := k.clamp(v, in, -tanhLimit, tanhLimit)
	square := v.mul(x, x)
	p, q := k.polynomial(square, tanhTerms...), k.polynomial(square, tanhDivisor...)
	tiny := c.YMM()
	const less = operand.U8(0x11) // ordered, no signal
	c.VCMPPS(less, k.float(0.0004), k.magnitude(in), tiny)
	v.store("d", v.where(tiny, in, v.div(v.mul(x, p), q)))
}

// erf is a rational function, the one that Eigen computes.
func (k *constants) erf(v *vectors) {
	x := k.clamp(v, v.load("x"), -4, 4)
	square := v.mul(x, x)
	p, q := k.polynomial(square, erfTerms...), k.polynomial(square, erfDivisor...)
	v.store("d", v.div(v.mul(x, p), q))
}

// erfc is t*exp(p(t) - z*z) of z = |x| and t = 1/(1+z/2), less than two by it for negative
// x. The square is taken apart, because its rounding would be that of the result.
func (k *constants) erfc(v *vectors) {
	c := k.c
	in := v.load("x")
	z := v.op(c.VMINPS, nil, k.load(erfcLimit), k.magnitude(in))
	t := k.load(.5)
	c.VFMADD213PS(k.float(1), z, t)
	t = v.div(k.load(1), t).(reg.VecVirtual)
	high := c.YMM()
	c.VANDPS(k.bits(twelveBits), z, high)
	p := k.polynomial(t, erfcTerms...)
	c.VFMADD231PS(v.sub(high, z), v.add(high, z), p)
	y := v.mul(t, k.exp(v, p))
	square := v.mul(high, high)
	c.VORPS(k.bits(signBit), square, square)
	y = v.mul(y, k.exp(v, square))
	v.store("d", v.where(in, v.sub(k.load(2), y), y))
}

// log takes x apart into a mantissa around one, whose logarithm is a polynomial
// of the Cephes library, and a power of two.
func (k *constants) log(v *vectors) {
	c := k.c
	in := v.load("x")
	const less, equal, notGreaterEqual = operand.U8(0x11), operand.U8(0), operand.U8(0x19)
	// Numbers below the normal ones are scaled up.
	small := c.YMM()
	c.VCMPPS(less, k.bits(smallestNormal), in, small)
	scaled := c.YMM()
	c.VMULPS(k.float(1<<23), in, scaled)
	x := v.where(small, scaled, in)
	shift := c.YMM()
	c.VANDPS(k.float(23), small, shift)
	e := c.YMM()
	c.VPSRLD(operand.U8(23), x, e)
	c.VPSUBD(k.bits(126), e, e)
	c.VCVTDQ2PS(e, e)
	e = v.sub(e, shift)
	c.VANDPS(k.bits(fractionBits), x, x)
	c.VORPS(k.float(.5), x, x)
	low, back, again := c.YMM(), c.YMM(), c.YMM()
	c.VCMPPS(less, k.float(sqrtHalf), x, low)
	c.VANDPS(k.float(1), low, back)
	e = v.sub(e, back)
	c.VANDPS(x, low, again)
	c.VSUBPS(k.float(1), x, x)
	x = v.add(x, again)
	square := v.mul(x, x)
	y := k.polynomial(x, logTerms...)
	y = v.mul(v.mul(y, x), square)
	c.VFMADD231PS(k.float(ln2Low), e, y)
	c.VFNMADD231PS(k.float(.5), square, y)
	y = v.add(x, y)
	c.VFMADD231PS(k.float(ln2High), e, y)
	// Infinity and NaN stay, zero gives minus infinity, and what is
	// negative no number.
	odd, zero, negative := c.YMM(), c.YMM(), c.YMM()
	c.VCMPPS(operand.U8(0x15), k.bits(infinity), in, odd) // not less, or unordered
	y = v.where(odd, in, y)
	c.VCMPPS(less, k.float(0), in, negative)
	c.VORPS(negative, y, y)
	c.VCMPPS(equal, k.float(0), in, zero)
	minus := k.c.YMM()
	c.VMOVUPS(k.bits(minusInfinity), minus)
	v.store("d", v.where(zero, minus, y))
}
