package main

import (
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

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
		body := func(v *vectors) { l.body(avx{v}) }
		emitLoop(c, l, body, false)
		emitLoop(c, l, body, true)
	}
	k := newConstants(c)
	emitFunctions(c, k)
	emitFolds(c)
	emitRows(c)
	emitWinograd(c)
	emitToLargest(c)
	emitChoices(c)
	emitHalves(c, k)
	emitWideHalves(c)
	emitWideBfloats(c)
	emitColors(c, k)
	emitWindow(c)
}

func emitLoop(c *build.Context, l loop, body func(v *vectors), double bool) {
	goType, prefix, turn := "float32", "s", uint64(8)
	if double {
		goType, prefix, turn = "float64", "d", 4
	}
	name := prefix + strings.ToUpper(l.name[:1]) + l.name[1:]
	params := []string{strings.Join(strings.Fields(l.slices), ", ") + " *" + goType}
	if l.scalars != "" {
		params = append(params, strings.Join(strings.Fields(l.scalars), ", ")+" "+goType)
	}
	declare(c, name, l.doc, "func("+strings.Join(append(params, "n int"), ", ")+")")
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
	body(v)
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

// max returns y where the two are equal or one is NaN.
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
	const greater = operand.U8(0x1e) // ordered, no signal
	return v.compare(greater, x, y)
}

// equal returns a mask of where x == y.
func (v *vectors) equal(x, y reg.VecVirtual) reg.VecVirtual {
	const equal = operand.U8(0) // ordered, no signal
	return v.compare(equal, x, y)
}

func (v *vectors) compare(kind operand.U8, x, y reg.VecVirtual) reg.VecVirtual {
	r := v.c.YMM()
	if v.double {
		v.c.VCMPPD(kind, y, x, r)
	} else {
		v.c.VCMPPS(kind, y, x, r)
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

// avx is arithmetic on vectors.
type avx struct{ v *vectors }

func (a avx) load(slice string) value     { return a.v.load(slice) }
func (a avx) store(slice string, x value) { a.v.store(slice, ymm(x)) }
func (a avx) scalar(name string) value    { return a.v.scalar[name] }
func (a avx) add(x, y value) value        { return a.v.add(ymm(x), ymm(y)) }
func (a avx) sub(x, y value) value        { return a.v.sub(ymm(x), ymm(y)) }
func (a avx) mul(x, y value) value        { return a.v.mul(ymm(x), ymm(y)) }
func (a avx) div(x, y value) value        { return a.v.div(ymm(x), ymm(y)) }
func (a avx) sqrt(x value) value          { return a.v.sqrt(ymm(x)) }
func (a avx) floor(x value) value         { return a.v.floor(ymm(x)) }
func (a avx) rectified(x value) value     { return a.v.max(a.v.zero(), ymm(x)) }
func (a avx) positive(x value) value      { return a.v.above(ymm(x), a.v.zero()) }
func (a avx) above(x, y value) value      { return a.v.above(ymm(x), ymm(y)) }
func (a avx) equal(x, y value) value      { return a.v.equal(ymm(x), ymm(y)) }
func (a avx) and(x, mask value) value     { return a.v.and(ymm(x), ymm(mask)) }

func (a avx) where(mask, x, y value) value { return a.v.where(ymm(mask), ymm(x), ymm(y)) }

func ymm(x value) reg.VecVirtual { return x.(reg.VecVirtual) }
