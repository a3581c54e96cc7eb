package main

import (
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loop is a function over slices of equal length, a whole number of registers
// long, and scalars. Parameters are named in the order of the signature.
type loop struct {
	name    string
	doc     string
	slices  string // "d x y": pointers to elements
	scalars string // "s": elements
	body    func(v *vectors)
}

// vectors are the registers of a turn of a loop. Bodies name slices and
// scalars, and combine registers.
type vectors struct {
	c      *build.Context
	double bool
	at     map[string]operand.Mem
	scalar map[string]reg.VecVirtual
}

func emitVec(c *build.Context) {
	for _, l := range loops {
		emitLoop(c, l, false)
		emitLoop(c, l, true)
	}
	emitFunctions(c)
	emitFolds(c)
	emitRows(c)
	emitWinograd(c)
}

func emitLoop(c *build.Context, l loop, double bool) {
	goType, prefix, turn := "float32", "s", uint64(8)
	if double {
		goType, prefix, turn = "float64", "d", 4
	}
	name := prefix + strings.ToUpper(l.name[:1]) + l.name[1:] + "AVX2"
	c.Function(name)
	c.Attributes(attr.NOSPLIT)
	c.Pragma("noescape")
	c.Doc(name + " " + l.doc + ".")
	params := []string{strings.Join(strings.Fields(l.slices), ", ") + " *" + goType}
	if l.scalars != "" {
		params = append(params, strings.Join(strings.Fields(l.scalars), ", ")+" "+goType)
	}
	c.SignatureExpr("func(" + strings.Join(append(params, "n int"), ", ") + ")")
	v := &vectors{c: c, double: double, at: map[string]operand.Mem{}, scalar: map[string]reg.VecVirtual{}}
	offset := c.GP64()
	c.XORQ(offset, offset)
	for _, s := range strings.Fields(l.slices) {
		v.at[s] = operand.Mem{Base: c.Load(c.Param(s), c.GP64()), Index: offset, Scale: 1}
	}
	for _, s := range strings.Fields(l.scalars) {
		v.scalar[s] = v.spread(c.Param(s))
	}
	n := c.Load(c.Param("n"), c.GP64())
	c.SUBQ(operand.Imm(turn), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	l.body(v)
	c.ADDQ(operand.Imm(32), offset)
	c.SUBQ(operand.Imm(turn), n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// spread loads a parameter into all elements of a register.
func (v *vectors) spread(p gotypes.Component) reg.VecVirtual {
	r := v.c.YMM()
	m, err := p.Resolve()
	if err != nil {
		panic(err)
	}
	if v.double {
		v.c.VBROADCASTSD(m.Addr, r)
	} else {
		v.c.VBROADCASTSS(m.Addr, r)
	}
	return r
}

func (v *vectors) load(name string) reg.VecVirtual {
	r := v.c.YMM()
	v.c.VMOVUPS(v.at[name], r)
	return r
}

func (v *vectors) store(name string, r reg.VecVirtual) { v.c.VMOVUPS(r, v.at[name]) }

// op returns x op y, the operands in the order of arithmetic.
func (v *vectors) op(single, double func(...operand.Op), x, y reg.VecVirtual) reg.VecVirtual {
	r := v.c.YMM()
	if v.double {
		single = double
	}
	single(y, x, r)
	return r
}

func (v *vectors) add(x, y reg.VecVirtual) reg.VecVirtual { return v.op(v.c.VADDPS, v.c.VADDPD, x, y) }
func (v *vectors) sub(x, y reg.VecVirtual) reg.VecVirtual { return v.op(v.c.VSUBPS, v.c.VSUBPD, x, y) }
func (v *vectors) mul(x, y reg.VecVirtual) reg.VecVirtual { return v.op(v.c.VMULPS, v.c.VMULPD, x, y) }
func (v *vectors) div(x, y reg.VecVirtual) reg.VecVirtual { return v.op(v.c.VDIVPS, v.c.VDIVPD, x, y) }
func (v *vectors) and(x, y reg.VecVirtual) reg.VecVirtual { return v.op(v.c.VANDPS, v.c.VANDPD, x, y) }

// max returns y where the two are equal or one is no number.
func (v *vectors) max(x, y reg.VecVirtual) reg.VecVirtual { return v.op(v.c.VMAXPS, v.c.VMAXPD, x, y) }

func (v *vectors) sqrt(x reg.VecVirtual) reg.VecVirtual {
	r := v.c.YMM()
	if v.double {
		v.c.VSQRTPD(x, r)
	} else {
		v.c.VSQRTPS(x, r)
	}
	return r
}

func (v *vectors) floor(x reg.VecVirtual) reg.VecVirtual {
	r := v.c.YMM()
	const down = operand.U8(9) // without a signal
	if v.double {
		v.c.VROUNDPD(down, x, r)
	} else {
		v.c.VROUNDPS(down, x, r)
	}
	return r
}

func (v *vectors) zero() reg.VecVirtual {
	r := v.c.YMM()
	v.c.VXORPS(r, r, r)
	return r
}

// above returns a mask of where x > y.
func (v *vectors) above(x, y reg.VecVirtual) reg.VecVirtual {
	r := v.c.YMM()
	const greater = operand.U8(0x1e) // ordered, no signal
	if v.double {
		v.c.VCMPPD(greater, y, x, r)
	} else {
		v.c.VCMPPS(greater, y, x, r)
	}
	return r
}

// where returns x where the mask is set, else y.
func (v *vectors) where(mask, x, y reg.VecVirtual) reg.VecVirtual {
	r := v.c.YMM()
	if v.double {
		v.c.VBLENDVPD(mask, x, y, r)
	} else {
		v.c.VBLENDVPS(mask, x, y, r)
	}
	return r
}

// The loops compute, element by element, exactly what the portable functions
// of the package do: the same operations in the same order, none fused.
var loops = []loop{
	{"add", "sets d to x+y", "d x y", "", func(v *vectors) { v.store("d", v.add(v.load("x"), v.load("y"))) }},
	{"sub", "sets d to x-y", "d x y", "", func(v *vectors) { v.store("d", v.sub(v.load("x"), v.load("y"))) }},
	{"mul", "sets d to x*y", "d x y", "", func(v *vectors) { v.store("d", v.mul(v.load("x"), v.load("y"))) }},
	{"div", "sets d to x/y", "d x y", "", func(v *vectors) { v.store("d", v.div(v.load("x"), v.load("y"))) }},
	{"addScalar", "sets d to x+s", "d x", "s", func(v *vectors) { v.store("d", v.add(v.load("x"), v.scalar["s"])) }},
	{"mulScalar", "sets d to x*s", "d x", "s", func(v *vectors) { v.store("d", v.mul(v.load("x"), v.scalar["s"])) }},
	{"divScalar", "sets d to x/s", "d x", "s", func(v *vectors) { v.store("d", v.div(v.load("x"), v.scalar["s"])) }},
	{"relu", "sets d to x, and to zero where x is less", "d x", "", func(v *vectors) { v.store("d", v.max(v.zero(), v.load("x"))) }},
	{"reluGrad", "sets d to grad where x is above zero, else to zero", "d grad x", "", func(v *vectors) {
		v.store("d", v.and(v.load("grad"), v.above(v.load("x"), v.zero())))
	}},
	{"square", "sets d to x*x", "d x", "", func(v *vectors) { x := v.load("x"); v.store("d", v.mul(x, x)) }},
	{"floor", "sets d to x rounded down", "d x", "", func(v *vectors) { v.store("d", v.floor(v.load("x"))) }},
	{"addScaled", "adds x*s to d", "d x", "s", func(v *vectors) { v.store("d", v.add(v.load("d"), v.mul(v.load("x"), v.scalar["s"]))) }},
	{"sqrt", "sets d to the square roots of x", "d x", "", func(v *vectors) { v.store("d", v.sqrt(v.load("x"))) }},
	{"scalarSub", "sets d to s-x", "d x", "s", func(v *vectors) { v.store("d", v.sub(v.scalar["s"], v.load("x"))) }},
	{"scalarDiv", "sets d to s/x", "d x", "s", func(v *vectors) { v.store("d", v.div(v.scalar["s"], v.load("x"))) }},
	{"rsqrt", "sets d to one/sqrt(x)", "d x", "one", func(v *vectors) { v.store("d", v.div(v.scalar["one"], v.sqrt(v.load("x")))) }},
	{"squaredDifference", "sets d to the squares of x-y", "d x y", "", func(v *vectors) {
		x := v.sub(v.load("x"), v.load("y"))
		v.store("d", v.mul(x, x))
	}},
	{"tanhGrad", "sets d to grad*(one-y*y)", "d y grad", "one", func(v *vectors) {
		y := v.load("y")
		v.store("d", v.mul(v.load("grad"), v.sub(v.scalar["one"], v.mul(y, y))))
	}},
	{"sigmoidGrad", "sets d to grad*y*(one-y)", "d y grad", "one", func(v *vectors) {
		y := v.load("y")
		v.store("d", v.mul(v.mul(v.load("grad"), y), v.sub(v.scalar["one"], y)))
	}},
	{"leakyRelu", "sets d to x where it is above zero, else to slope*x", "d x", "slope", func(v *vectors) {
		x := v.load("x")
		v.store("d", v.where(v.above(x, v.zero()), x, v.mul(v.scalar["slope"], x)))
	}},
	{"leakyReluGrad", "sets d to grad where x is above zero, else to slope*grad", "d grad x", "slope", func(v *vectors) {
		g := v.load("grad")
		v.store("d", v.where(v.above(v.load("x"), v.zero()), g, v.mul(v.scalar["slope"], g)))
	}},
	{"normalize", "sets d to (x-mean)*factor+offset", "d x mean factor offset", "", func(v *vectors) {
		v.store("d", v.add(v.mul(v.sub(v.load("x"), v.load("mean")), v.load("factor")), v.load("offset")))
	}},
	{"normalizeGrad", "sets d to factor*(grad-shift-(x-mean)*slope)", "d grad x mean factor shift slope", "", func(v *vectors) {
		x := v.mul(v.sub(v.load("x"), v.load("mean")), v.load("slope"))
		v.store("d", v.mul(v.load("factor"), v.sub(v.sub(v.load("grad"), v.load("shift")), x)))
	}},
	{"moments", "adds x-shift to sums and its square to squares", "sums squares x shift", "", func(v *vectors) {
		x := v.sub(v.load("x"), v.load("shift"))
		v.store("sums", v.add(v.load("sums"), x))
		v.store("squares", v.add(v.load("squares"), v.mul(x, x)))
	}},
	{"gradMoments", "adds grad to sums and grad*(x-mean) to dots", "sums dots grad x mean", "", func(v *vectors) {
		g := v.load("grad")
		v.store("sums", v.add(v.load("sums"), g))
		v.store("dots", v.add(v.load("dots"), v.mul(g, v.sub(v.load("x"), v.load("mean")))))
	}},
	{"descend", "subtracts lr*grad from w", "w grad", "lr", func(v *vectors) {
		v.store("w", v.sub(v.load("w"), v.mul(v.load("grad"), v.scalar["lr"])))
	}},
	{"momentum", "is a step of the momentum optimizer", "w acc grad", "lr m", func(v *vectors) {
		acc := v.add(v.mul(v.load("acc"), v.scalar["m"]), v.load("grad"))
		v.store("acc", acc)
		v.store("w", v.sub(v.load("w"), v.mul(acc, v.scalar["lr"])))
	}},
	{"nesterov", "is a step of the momentum optimizer with Nesterov's look ahead", "w acc grad", "lr m", func(v *vectors) {
		g, lr, m := v.load("grad"), v.scalar["lr"], v.scalar["m"]
		acc := v.add(v.mul(v.load("acc"), m), g)
		v.store("acc", acc)
		v.store("w", v.sub(v.load("w"), v.add(v.mul(g, lr), v.mul(v.mul(acc, m), lr))))
	}},
	{"adagrad", "is a step of the Adagrad optimizer", "w acc grad", "lr", func(v *vectors) {
		g := v.load("grad")
		acc := v.add(v.load("acc"), v.mul(g, g))
		v.store("acc", acc)
		v.store("w", v.sub(v.load("w"), v.div(v.mul(g, v.scalar["lr"]), v.sqrt(acc))))
	}},
	{"adam", "is a step of the Adam optimizer; c1 and c2 are one less the decays", "w m v grad", "alpha c1 c2 eps", func(v *vectors) {
		g := v.load("grad")
		m := v.load("m")
		m = v.add(m, v.mul(v.sub(g, m), v.scalar["c1"]))
		v.store("m", m)
		s := v.load("v")
		s = v.add(s, v.mul(v.sub(v.mul(g, g), s), v.scalar["c2"]))
		v.store("v", s)
		v.store("w", v.sub(v.load("w"), v.div(v.mul(m, v.scalar["alpha"]), v.add(v.sqrt(s), v.scalar["eps"]))))
	}},
	{"rmsProp", "is a step of the RMSProp optimizer; c is one less the decay", "w ms mom grad", "lr c m eps", func(v *vectors) {
		g := v.load("grad")
		ms := v.load("ms")
		ms = v.add(ms, v.mul(v.sub(v.mul(g, g), ms), v.scalar["c"]))
		v.store("ms", ms)
		step := v.div(v.mul(g, v.scalar["lr"]), v.sqrt(v.add(ms, v.scalar["eps"])))
		mom := v.add(v.mul(v.load("mom"), v.scalar["m"]), step)
		v.store("mom", mom)
		v.store("w", v.sub(v.load("w"), mom))
	}},
}
