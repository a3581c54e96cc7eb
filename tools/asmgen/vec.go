package main

import (
	"math"
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
	emitLoop(c, loop{name: "exp", doc: "sets d to the exponentials of x", slices: "d x", body: exponential}, false)
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

// constant returns a float32 as a memory operand of eight equal elements.
func constant(c *build.Context, name string, value float32) operand.Mem {
	data := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for range 8 {
		c.AppendDatum(operand.U32(math.Float32bits(value)))
	}
	return data
}

// exponential is the body of exp: x = n*log(2) + r, a polynomial in r, times
// two to the n in two factors, so that results below the normal numbers and
// infinity come out by themselves. The polynomial is that of the Cephes
// library, good to one unit in the last place.
func exponential(v *vectors) {
	c := v.c
	x := v.load("x")
	// The constant is the first operand, so that what is no number stays so.
	one := constant(c, "expOne", 1)
	lo, hi := c.YMM(), c.YMM()
	c.VMOVUPS(constant(c, "expLow", -104), lo)
	c.VMOVUPS(constant(c, "expHigh", 89), hi)
	x = v.max(lo, x)
	x = v.op(c.VMINPS, nil, hi, x)
	n := c.YMM()
	c.VMULPS(constant(c, "expLog2e", 1.44269504088896341), x, n)
	c.VROUNDPS(operand.U8(0), n, n)
	c.VFNMADD231PS(constant(c, "expLn2High", 0.693359375), n, x)
	c.VFNMADD231PS(constant(c, "expLn2Low", -2.12194440e-4), n, x)
	p := c.YMM()
	c.VMOVUPS(constant(c, "expP0", 1.9875691500e-4), p)
	for i, k := range []float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		c.VFMADD213PS(constant(c, "expP"+string(rune('1'+i)), k), x, p)
	}
	square := v.mul(x, x)
	c.VFMADD213PS(x, square, p)
	c.VADDPS(one, p, p)
	whole, half := c.YMM(), c.YMM()
	c.VCVTPS2DQ(n, whole)
	c.VPSRAD(operand.U8(1), whole, half)
	c.VPSUBD(half, whole, whole)
	for _, e := range []reg.VecVirtual{whole, half} {
		c.VPSLLD(operand.U8(23), e, e)
		c.VPADDD(one, e, e)
		p = v.mul(p, e)
	}
	v.store("d", p)
}
