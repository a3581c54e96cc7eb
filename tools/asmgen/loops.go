package main

// loop is a function over slices of equal length, a whole number of registers
// long, and scalars. Parameters are named in the order of the signature.
type loop struct {
	name    string
	doc     string
	slices  string // "d x y": pointers to elements
	scalars string // "s": elements
	body    func(v arithmetic)
}

// value is a vector register of one of the processors.
type value any

// arithmetic is what the bodies of loops are made of, on each processor. Bodies
// name slices and scalars, and combine registers.
type arithmetic interface {
	load(slice string) value
	store(slice string, x value)
	scalar(name string) value

	add(x, y value) value
	sub(x, y value) value
	mul(x, y value) value
	div(x, y value) value
	sqrt(x value) value
	floor(x value) value

	rectified(x value) value      // zero where x is less
	positive(x value) value       // a mask of where x is above zero
	above(x, y value) value       // a mask of where x is above y
	equal(x, y value) value       // a mask of where they are equal numbers
	and(x, mask value) value      // zero where the mask is not set
	where(mask, x, y value) value // x where the mask is set, else y; the mask may be lost
}

// The loops compute, element by element, exactly what the portable functions
// of the package do: the same operations in the same order, none fused.
var loops = []loop{
	{"add", "sets d to x+y", "d x y", "", func(v arithmetic) { v.store("d", v.add(v.load("x"), v.load("y"))) }},
	{"sub", "sets d to x-y", "d x y", "", func(v arithmetic) { v.store("d", v.sub(v.load("x"), v.load("y"))) }},
	{"mul", "sets d to x*y", "d x y", "", func(v arithmetic) { v.store("d", v.mul(v.load("x"), v.load("y"))) }},
	{"div", "sets d to x/y", "d x y", "", func(v arithmetic) { v.store("d", v.div(v.load("x"), v.load("y"))) }},
	{"addScalar", "sets d to x+s", "d x", "s", func(v arithmetic) { v.store("d", v.add(v.load("x"), v.scalar("s"))) }},
	{"mulScalar", "sets d to x*s", "d x", "s", func(v arithmetic) { v.store("d", v.mul(v.load("x"), v.scalar("s"))) }},
	{"divScalar", "sets d to x/s", "d x", "s", func(v arithmetic) { v.store("d", v.div(v.load("x"), v.scalar("s"))) }},
	{"relu", "sets d to x, and to zero where x is less", "d x", "", func(v arithmetic) { v.store("d", v.rectified(v.load("x"))) }},
	{"reluGrad", "sets d to grad*one where x is above zero, else to grad*0", "d grad x", "one", func(v arithmetic) {
		v.store("d", v.mul(v.load("grad"), v.and(v.scalar("one"), v.positive(v.load("x")))))
	}},
	{"abs", "sets d to none-x where x is below none, which is zero, else to x+none", "d x", "none", func(v arithmetic) {
		x, none := v.load("x"), v.scalar("none")
		v.store("d", v.where(v.above(none, x), v.sub(none, x), v.add(x, none)))
	}},
	{"clippedRelu", "sets d to x, to zero where x is less, and to top where x is more", "d x", "top", func(v arithmetic) {
		x := v.load("x")
		v.store("d", v.where(v.positive(v.sub(x, v.scalar("top"))), v.scalar("top"), v.rectified(x)))
	}},
	{"clippedReluGrad", "sets d to grad*one where x is between zero and top, else to grad*0", "d grad x", "top one", func(v arithmetic) {
		x := v.load("x")
		inside := v.and(v.scalar("one"), v.positive(x))
		v.store("d", v.mul(v.load("grad"), v.and(inside, v.positive(v.sub(v.scalar("top"), x)))))
	}},
	{"quantize", "rounds x, between low and high, to multiples of scale: floor((x-low)*inverse-zero+half)*scale", "d x", "low high inverse zero half scale", func(v arithmetic) {
		x, low, high := v.load("x"), v.scalar("low"), v.scalar("high")
		x = v.where(v.above(x, high), high, x)
		x = v.where(v.above(low, x), low, x)
		level := v.floor(v.add(v.sub(v.mul(v.sub(x, low), v.scalar("inverse")), v.scalar("zero")), v.scalar("half")))
		v.store("d", v.mul(level, v.scalar("scale")))
	}},
	{"quantizeGrad", "sets d to grad where x is from low to high, lower to it below, higher to it above, and else to grad*0; none is zero", "d lower higher grad x", "low high one none", func(v arithmetic) {
		x, g, one := v.load("x"), v.load("grad"), v.scalar("one")
		low, high := v.scalar("low"), v.scalar("high")
		inside := v.where(v.above(x, high), v.scalar("none"), v.and(one, v.equal(x, x)))
		v.store("d", v.mul(g, v.where(v.above(low, x), v.scalar("none"), inside)))
		v.store("lower", v.mul(g, v.and(one, v.above(low, x))))
		v.store("higher", v.mul(g, v.and(one, v.above(x, high))))
	}},
	{"larger", "sets best to x, and place to at, where x is above best", "best place x", "at", func(v arithmetic) {
		x, best := v.load("x"), v.load("best")
		v.store("place", v.where(v.above(x, best), v.scalar("at"), v.load("place")))
		v.store("best", v.where(v.above(x, best), x, best))
	}},
	{"largest", "sets d to x where x is above it or no number", "d x", "", func(v arithmetic) {
		d, x := v.load("d"), v.load("x")
		v.store("d", v.where(v.equal(x, x), v.where(v.above(x, d), x, d), x))
	}},
	{"raise", "sets d to x unless d is above it", "d x", "", func(v arithmetic) {
		d, x := v.load("d"), v.load("x")
		v.store("d", v.where(v.above(d, x), d, x))
	}},
	{"lower", "sets d to x unless d is below it", "d x", "", func(v arithmetic) {
		d, x := v.load("d"), v.load("x")
		v.store("d", v.where(v.above(x, d), d, x))
	}},
	{"addEqual", "adds x to d where place is at", "d x place", "at", func(v arithmetic) {
		v.store("d", v.add(v.load("d"), v.and(v.load("x"), v.equal(v.load("place"), v.scalar("at")))))
	}},
	{"maximum", "sets d to x where it is above y or no number, else to y", "d x y", "", func(v arithmetic) {
		x, y := v.load("x"), v.load("y")
		v.store("d", v.where(v.equal(x, x), v.where(v.above(x, y), x, y), x))
	}},
	{"minimum", "sets d to x where it is below y or no number, else to y", "d x y", "", func(v arithmetic) {
		x, y := v.load("x"), v.load("y")
		v.store("d", v.where(v.equal(x, x), v.where(v.above(y, x), x, y), x))
	}},
	{"expm1", "sets d to exp(x)-one, given u=exp(x) and l=log(u); minus is -one", "d x u l", "one minus", func(v arithmetic) {
		x, u, one := v.load("x"), v.load("u"), v.scalar("one")
		rest := v.sub(u, one)
		y := v.where(v.equal(u, one), x, v.mul(rest, v.div(x, v.load("l"))))
		v.store("d", v.where(v.above(v.scalar("minus"), x), rest, v.where(v.above(x, one), rest, y)))
	}},
	{"log1p", "sets d to log(one+x), given u=one+x and l=log(u)", "d x u l", "one", func(v arithmetic) {
		x, u, l, one := v.load("x"), v.load("u"), v.load("l"), v.scalar("one")
		rest := v.sub(u, one)
		y := v.where(v.equal(rest, x), l, v.mul(l, v.div(x, rest)))
		v.store("d", v.where(v.equal(u, one), x, y))
	}},
	{"elu", "sets d to x*above where it is above zero, else to e*below", "d x e", "above below", func(v arithmetic) {
		x := v.load("x")
		v.store("d", v.where(v.positive(x), v.mul(v.scalar("above"), x), v.mul(v.scalar("below"), v.load("e"))))
	}},
	{"eluGrad", "sets d to grad*(y+below) where y is below none, else to grad*above", "d grad y", "above below none", func(v arithmetic) {
		g, y := v.load("grad"), v.load("y")
		v.store("d", v.where(v.above(v.scalar("none"), y), v.mul(g, v.add(y, v.scalar("below"))), v.mul(g, v.scalar("above"))))
	}},
	{"sign", "sets d to one where x is above none, to minus where it is below, else to none, or x if that is no number", "d x", "one minus none", func(v arithmetic) {
		x, none := v.load("x"), v.scalar("none")
		sign := v.where(v.above(none, x), v.scalar("minus"), v.where(v.equal(x, x), none, x))
		v.store("d", v.where(v.above(x, none), v.scalar("one"), sign))
	}},
	{"rotate", "sets x to c*x-s*y and y to s*x+c*y", "x y", "c s", func(v arithmetic) {
		x, y, c, s := v.load("x"), v.load("y"), v.scalar("c"), v.scalar("s")
		v.store("x", v.sub(v.mul(c, x), v.mul(s, y)))
		v.store("y", v.add(v.mul(s, x), v.mul(c, y)))
	}},
	{"subScaled", "subtracts x*s+y*t from d", "d x y", "s t", func(v arithmetic) {
		v.store("d", v.sub(v.load("d"), v.add(v.mul(v.load("x"), v.scalar("s")), v.mul(v.load("y"), v.scalar("t")))))
	}},
	{"square", "sets d to x*x", "d x", "", func(v arithmetic) { x := v.load("x"); v.store("d", v.mul(x, x)) }},
	{"floor", "sets d to x rounded down", "d x", "", func(v arithmetic) { v.store("d", v.floor(v.load("x"))) }},
	{"addScaled", "adds x*s to d", "d x", "s", func(v arithmetic) { v.store("d", v.add(v.load("d"), v.mul(v.load("x"), v.scalar("s")))) }},
	{"addProduct", "adds x*y to d", "d x y", "", func(v arithmetic) { v.store("d", v.add(v.load("d"), v.mul(v.load("x"), v.load("y")))) }},
	{"sqrt", "sets d to the square roots of x", "d x", "", func(v arithmetic) { v.store("d", v.sqrt(v.load("x"))) }},
	{"scalarSub", "sets d to s-x", "d x", "s", func(v arithmetic) { v.store("d", v.sub(v.scalar("s"), v.load("x"))) }},
	{"scalarDiv", "sets d to s/x", "d x", "s", func(v arithmetic) { v.store("d", v.div(v.scalar("s"), v.load("x"))) }},
	{"rsqrt", "sets d to one/sqrt(x)", "d x", "one", func(v arithmetic) { v.store("d", v.div(v.scalar("one"), v.sqrt(v.load("x")))) }},
	{"squaredDifference", "sets d to the squares of x-y", "d x y", "", func(v arithmetic) {
		x := v.sub(v.load("x"), v.load("y"))
		v.store("d", v.mul(x, x))
	}},
	{"tanhGrad", "sets d to grad*(one-y*y)", "d y grad", "one", func(v arithmetic) {
		y := v.load("y")
		v.store("d", v.mul(v.load("grad"), v.sub(v.scalar("one"), v.mul(y, y))))
	}},
	{"sigmoidGrad", "sets d to grad*y*(one-y)", "d y grad", "one", func(v arithmetic) {
		y := v.load("y")
		v.store("d", v.mul(v.mul(v.load("grad"), y), v.sub(v.scalar("one"), y)))
	}},
	{"leakyRelu", "sets d to x where it is above zero, else to slope*x", "d x", "slope", func(v arithmetic) {
		x := v.load("x")
		v.store("d", v.where(v.positive(x), x, v.mul(v.scalar("slope"), x)))
	}},
	{"leakyReluGrad", "sets d to grad where x is above zero, else to slope*grad", "d grad x", "slope", func(v arithmetic) {
		g := v.load("grad")
		v.store("d", v.where(v.positive(v.load("x")), g, v.mul(v.scalar("slope"), g)))
	}},
	{"normalize", "sets d to (x-mean)*factor+offset", "d x mean factor offset", "", func(v arithmetic) {
		v.store("d", v.add(v.mul(v.sub(v.load("x"), v.load("mean")), v.load("factor")), v.load("offset")))
	}},
	{"normalizeGrad", "sets d to factor*(grad-shift-(x-mean)*slope)", "d grad x mean factor shift slope", "", func(v arithmetic) {
		x := v.mul(v.sub(v.load("x"), v.load("mean")), v.load("slope"))
		v.store("d", v.mul(v.load("factor"), v.sub(v.sub(v.load("grad"), v.load("shift")), x)))
	}},
	{"moments", "adds x-shift to sums and its square to squares", "sums squares x shift", "", func(v arithmetic) {
		x := v.sub(v.load("x"), v.load("shift"))
		v.store("sums", v.add(v.load("sums"), x))
		v.store("squares", v.add(v.load("squares"), v.mul(x, x)))
	}},
	{"gradMoments", "adds grad to sums and grad*(x-mean) to dots", "sums dots grad x mean", "", func(v arithmetic) {
		g := v.load("grad")
		v.store("sums", v.add(v.load("sums"), g))
		v.store("dots", v.add(v.load("dots"), v.mul(g, v.sub(v.load("x"), v.load("mean")))))
	}},
	{"butterfly", "sets sum to a+b, and rest to (a-b)*w, complex numbers", "sumRe sumIm restRe restIm aRe aIm bRe bIm", "wRe wIm", func(v arithmetic) {
		aRe, bRe, aIm, bIm := v.load("aRe"), v.load("bRe"), v.load("aIm"), v.load("bIm")
		re, im := times(v, v.sub(aRe, bRe), v.sub(aIm, bIm))
		v.store("sumRe", v.add(aRe, bRe))
		v.store("sumIm", v.add(aIm, bIm))
		v.store("restRe", re)
		v.store("restIm", im)
	}},
	{"mirror", "makes complex numbers d and e of a real signal's spectrum", "dRe dIm eRe eIm aRe aIm bRe bIm", "wRe wIm half", func(v arithmetic) {
		aRe, bRe, aIm, bIm, half := v.load("aRe"), v.load("bRe"), v.load("aIm"), v.load("bIm"), v.scalar("half")
		re, im := times(v, v.mul(half, v.add(aIm, bIm)), v.mul(half, v.sub(bRe, aRe)))
		evenRe, evenIm := v.mul(half, v.add(aRe, bRe)), v.mul(half, v.sub(aIm, bIm))
		v.store("dRe", v.add(evenRe, re))
		v.store("dIm", v.add(evenIm, im))
		v.store("eRe", v.sub(evenRe, re))
		v.store("eIm", v.sub(im, evenIm))
	}},
	{"descend", "subtracts lr*grad from w", "w grad", "lr", func(v arithmetic) {
		v.store("w", v.sub(v.load("w"), v.mul(v.load("grad"), v.scalar("lr"))))
	}},
	{"momentum", "is a step of the momentum optimizer", "w acc grad", "lr m", func(v arithmetic) {
		acc := v.add(v.mul(v.load("acc"), v.scalar("m")), v.load("grad"))
		v.store("acc", acc)
		v.store("w", v.sub(v.load("w"), v.mul(acc, v.scalar("lr"))))
	}},
	{"nesterov", "is a step of the momentum optimizer with Nesterov's look ahead", "w acc grad", "lr m", func(v arithmetic) {
		g, lr, m := v.load("grad"), v.scalar("lr"), v.scalar("m")
		acc := v.add(v.mul(v.load("acc"), m), g)
		v.store("acc", acc)
		v.store("w", v.sub(v.load("w"), v.add(v.mul(g, lr), v.mul(v.mul(acc, m), lr))))
	}},
	{"adagrad", "is a step of the Adagrad optimizer", "w acc grad", "lr eps", func(v arithmetic) {
		g := v.load("grad")
		acc := v.add(v.load("acc"), v.mul(g, g))
		v.store("acc", acc)
		v.store("w", v.sub(v.load("w"), v.div(v.mul(g, v.scalar("lr")), v.add(v.sqrt(acc), v.scalar("eps")))))
	}},
	{"adam", "is a step of the Adam optimizer; c1 and c2 are one less the decays", "w m v grad", "alpha c1 c2 eps", func(v arithmetic) {
		g := v.load("grad")
		m := v.load("m")
		m = v.add(m, v.mul(v.sub(g, m), v.scalar("c1")))
		v.store("m", m)
		s := v.load("v")
		s = v.add(s, v.mul(v.sub(v.mul(g, g), s), v.scalar("c2")))
		v.store("v", s)
		v.store("w", v.sub(v.load("w"), v.div(v.mul(m, v.scalar("alpha")), v.add(v.sqrt(s), v.scalar("eps")))))
	}},
	{"rmsProp", "is a step of the RMSProp optimizer; c is one less the decay", "w ms mom grad", "lr c m eps", func(v arithmetic) {
		g := v.load("grad")
		ms := v.load("ms")
		ms = v.add(ms, v.mul(v.sub(v.mul(g, g), ms), v.scalar("c")))
		v.store("ms", ms)
		step := v.div(v.mul(g, v.scalar("lr")), v.sqrt(v.add(ms, v.scalar("eps"))))
		mom := v.add(v.mul(v.load("mom"), v.scalar("m")), step)
		v.store("mom", mom)
		v.store("w", v.sub(v.load("w"), mom))
	}},
	{"centeredRMSProp", "is a step of the centered RMSProp optimizer; c is one less the decay", "w mg ms mom grad", "lr c m eps", func(v arithmetic) {
		g := v.load("grad")
		ms, mg := v.load("ms"), v.load("mg")
		ms = v.add(ms, v.mul(v.sub(v.mul(g, g), ms), v.scalar("c")))
		v.store("ms", ms)
		mg = v.add(mg, v.mul(v.sub(g, mg), v.scalar("c")))
		v.store("mg", mg)
		root := v.sqrt(v.add(v.sub(ms, v.mul(mg, mg)), v.scalar("eps")))
		mom := v.add(v.mul(v.load("mom"), v.scalar("m")), v.div(v.mul(g, v.scalar("lr")), root))
		v.store("mom", mom)
		v.store("w", v.sub(v.load("w"), mom))
	}},
	{"adadelta", "is a step of the Adadelta optimizer; c is one less rho", "w acc update grad", "lr rho c eps", func(v arithmetic) {
		g, update := v.load("grad"), v.load("update")
		rho, c, eps := v.scalar("rho"), v.scalar("c"), v.scalar("eps")
		acc := v.add(v.mul(v.load("acc"), rho), v.mul(v.mul(g, g), c))
		v.store("acc", acc)
		u := v.mul(v.div(v.sqrt(v.add(update, eps)), v.sqrt(v.add(acc, eps))), g)
		v.store("w", v.sub(v.load("w"), v.mul(u, v.scalar("lr"))))
		v.store("update", v.add(v.mul(update, rho), v.mul(v.mul(u, u), c)))
	}},
	{"ftrl", "is a step of the Ftrl optimizer; minus is -l1, and l2 and shrinkage are doubled", "w acc linear grad", "lr l1 minus l2 shrinkage", func(v arithmetic) {
		g, w, acc := v.load("grad"), v.load("w"), v.load("acc")
		lr, l1, minus := v.scalar("lr"), v.scalar("l1"), v.scalar("minus")
		next := v.add(acc, v.mul(g, g))
		v.store("acc", next)
		root := v.sqrt(next)
		change := v.mul(v.div(v.sub(root, v.sqrt(acc)), lr), w)
		z := v.add(v.load("linear"), v.sub(v.add(g, v.mul(v.scalar("shrinkage"), w)), change))
		v.store("linear", z)
		w = v.div(v.where(v.above(z, l1), v.sub(l1, z), v.sub(minus, z)), v.add(v.div(root, lr), v.scalar("l2")))
		v.store("w", v.where(v.above(z, l1), w, v.and(w, v.above(minus, z))))
	}},
}

// times returns the product of a complex number and w.
func times(v arithmetic, re, im value) (value, value) {
	wRe, wIm := v.scalar("wRe"), v.scalar("wIm")
	return v.sub(v.mul(re, wRe), v.mul(im, wIm)), v.add(v.mul(re, wIm), v.mul(im, wRe))
}
