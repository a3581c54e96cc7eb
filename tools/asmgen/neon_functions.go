package main

import "math"

// emitNEONFunctions emits what emitFunctions does, with the same operations, so
// that results have the same bits.
func emitNEONFunctions(f *neonFile) {
	bodies := map[string]func(v *neonVectors, x vreg) vreg{
		"exp": (*neonVectors).exp, "log": (*neonVectors).log, "tanh": (*neonVectors).tanh, "erf": (*neonVectors).erf, "erfc": (*neonVectors).erfc, "sigmoid": (*neonVectors).sigmoid,
		"sin": (*neonVectors).sin, "cos": func(v *neonVectors, x vreg) vreg { return v.wave(x, 1) },
	}
	for _, l := range functions {
		body := bodies[l.name]
		emitNEONLoop(f, l, func(v *neonVectors) { v.store("d", body(v, v.load("x").(vreg))) }, false, 1)
	}
}

// bits and float return a constant in a register.
func (v *neonVectors) bits(bits uint32) vreg {
	return v.n.load("FMOVQ", v.n.bits(v.table, bits), v.n.vec())
}

func (v *neonVectors) float(x float32) vreg { return v.bits(math.Float32bits(x)) }

// plus returns sum + x*y, rounded once, and minus sum - x*y; sum is lost.
func (v *neonVectors) plus(sum, x, y vreg) vreg  { return v.n.op("fmla", false, sum, x, y) }
func (v *neonVectors) minus(sum, x, y vreg) vreg { return v.n.op("fmls", false, sum, x, y) }

// polynomial returns the polynomial in x whose coefficients are listed from
// the highest power down.
func (v *neonVectors) polynomial(x vreg, list []float32) vreg {
	p := v.float(list[0])
	for _, c := range list[1:] {
		p = v.plus(v.float(c), x, p)
	}
	return p
}

// clamp limits x to the numbers between lo and hi; NaN stays NaN.
func (v *neonVectors) clamp(x vreg, lo, hi float32) vreg {
	return v.op("fmin", v.op("fmax", x, v.float(lo)), v.float(hi))
}

// shift returns x shifted as an integer.
func (v *neonVectors) shift(name string, x vreg, distance int) vreg {
	return v.n.opWith(name, false, distance, v.n.vec(), x)
}

func (v *neonVectors) exp(x vreg) vreg {
	x = v.clamp(x, -104, 89)
	n := v.op("frintn", v.op("fmul", x, v.float(log2e)))
	x = v.minus(x, n, v.float(ln2High))
	x = v.minus(x, n, v.float(ln2Low))
	p := v.polynomial(x, expTerms)
	p = v.plus(x, v.op("fmul", x, x), p)
	p = v.op("fadd", p, v.float(1))
	whole := v.op("fcvtns", n)
	half := v.shift("sshr", whole, 1)
	whole = v.op("sub", whole, half)
	for _, e := range []vreg{whole, half} {
		p = v.op("fmul", p, v.op("add", v.shift("shl", e, 23), v.float(1)))
	}
	return p
}

func (v *neonVectors) sigmoid(x vreg) vreg {
	e := v.exp(v.bitwise("orr", x, v.bits(signBit)))
	one := v.float(1)
	sum := v.op("fadd", one, e)
	return v.op("fdiv", v.where(v.shift("sshr", x, 31), e, one), sum)
}

func (v *neonVectors) tanh(in vreg) vreg {
	x := v.clamp(in, -tanhLimit, tanhLimit)
	square := v.op("fmul", x, x)
	p, q := v.polynomial(square, tanhTerms), v.polynomial(square, tanhDivisor)
	tiny := v.op("fcmgt", v.float(0.0004), v.op("fabs", in))
	return v.where(tiny, in, v.op("fdiv", v.op("fmul", x, p), q)).(vreg)
}

func (v *neonVectors) erf(x vreg) vreg {
	x = v.clamp(x, -4, 4)
	square := v.op("fmul", x, x)
	p, q := v.polynomial(square, erfTerms), v.polynomial(square, erfDivisor)
	return v.op("fdiv", v.op("fmul", x, p), q)
}

func (v *neonVectors) erfc(in vreg) vreg {
	z := v.op("fmin", v.op("fabs", in), v.float(erfcLimit))
	t := v.op("fdiv", v.float(1), v.plus(v.float(1), z, v.float(.5)))
	high := v.bitwise("and", z, v.bits(twelveBits))
	p := v.plus(v.polynomial(t, erfcTerms), v.op("fsub", high, z), v.op("fadd", high, z))
	y := v.op("fmul", t, v.exp(p))
	y = v.op("fmul", y, v.exp(v.bitwise("orr", v.op("fmul", high, high), v.bits(signBit))))
	return v.where(v.shift("sshr", in, 31), v.op("fsub", v.float(2), y), y).(vreg)
}

func (v *neonVectors) log(in vreg) vreg {
	// Numbers below the normal ones are scaled up.
	small := v.op("fcmgt", v.bits(smallestNormal), in)
	shift := v.bitwise("and", v.float(23), small)
	x := v.where(small, v.op("fmul", in, v.float(1<<23)), in).(vreg)
	e := v.op("scvtf", v.op("sub", v.shift("ushr", x, 23), v.bits(126)))
	e = v.op("fsub", e, shift)
	x = v.bitwise("orr", v.bitwise("and", x, v.bits(fractionBits)), v.float(.5))
	low := v.op("fcmgt", v.float(sqrtHalf), x)
	e = v.op("fsub", e, v.bitwise("and", v.float(1), low))
	x = v.op("fadd", v.op("fsub", x, v.float(1)), v.bitwise("and", low, x))
	square := v.op("fmul", x, x)
	y := v.op("fmul", v.op("fmul", v.polynomial(x, logTerms), x), square)
	y = v.plus(y, e, v.float(ln2Low))
	y = v.minus(y, square, v.float(.5))
	y = v.plus(v.op("fadd", x, y), e, v.float(ln2High))
	// Infinity and NaN stay, zero gives minus infinity, and what is
	// negative no number.
	y = v.where(v.op("fcmgt", v.bits(infinity), in), y, in).(vreg)
	zero := v.n.zero(v.n.vec())
	y = v.bitwise("orr", y, v.op("fcmgt", zero, in))
	return v.where(v.op("fcmeq", in, zero), v.bits(minusInfinity), y).(vreg)
}
