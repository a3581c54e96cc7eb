package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Choices and comparisons, whose booleans are bytes. Each operand is a slice or one
// number for all: then it is a register of that number, and the operand's step is 0,
// where it is 32 for a slice.

// emitChoices emits them. The length is a multiple of eight.
func emitChoices(c *build.Context) {
	emitChoose(c)
	emitCompare(c, "sLess", "<", 0x11)
	emitCompare(c, "sLessEqual", "<=", 0x12)
	emitCompare(c, "sEqual", "==", 0)
	emitCompare(c, "sNotEqual", "!=", 4)
}

// operands loads the pointers of x and y, and returns what loads and advances them.
func operands(c *build.Context) (load func() (x, y reg.VecVirtual), advance func()) {
	var at, step [2]reg.Register
	for i, name := range []string{"x", "y"} {
		at[i], step[i] = c.Load(c.Param(name), c.GP64()), c.Load(c.Param(name+"Step"), c.GP64())
	}
	load = func() (x, y reg.VecVirtual) {
		x, y = c.YMM(), c.YMM()
		c.VMOVUPS(operand.Mem{Base: at[0]}, x)
		c.VMOVUPS(operand.Mem{Base: at[1]}, y)
		return x, y
	}
	advance = func() {
		c.ADDQ(step[0], at[0])
		c.ADDQ(step[1], at[1])
	}
	return load, advance
}

// eights makes a loop of body, which does eight elements.
func eights(c *build.Context, body func()) {
	n := c.Load(c.Param("n"), c.GP64())
	c.SUBQ(operand.Imm(8), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	body()
	c.SUBQ(operand.Imm(8), n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

func emitChoose(c *build.Context) {
	declare(c, "sChoose", "sets d to x where cond is not 0, else to y", "func(d *float32, cond *byte, x *float32, xStep int, y *float32, yStep, n int)")
	d, cond := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("cond"), c.GP64())
	load, advance := operands(c)
	zero := c.YMM()
	c.VPXOR(zero, zero, zero)
	eights(c, func() {
		unset := c.YMM()
		c.VPMOVZXBD(operand.Mem{Base: cond}, unset)
		c.VPCMPEQD(zero, unset, unset)
		x, y := load()
		c.VBLENDVPS(unset, y, x, x)
		c.VMOVUPS(x, operand.Mem{Base: d})
		c.ADDQ(operand.Imm(32), d)
		c.ADDQ(operand.Imm(8), cond)
		advance()
	})
}

// emitCompare emits a comparison by a predicate of VCMPPS that signals nothing. What is no
// number is unequal to all, and none of the others holds for it.
func emitCompare(c *build.Context, name, sign string, predicate uint8) {
	declare(c, name, fmt.Sprintf("sets d to whether x %s y, as 1 or 0", sign), "func(d *byte, x *float32, xStep int, y *float32, yStep, n int)")
	d := c.Load(c.Param("d"), c.GP64())
	load, advance := operands(c)
	one := c.YMM()
	c.VPCMPEQD(one, one, one)
	c.VPSRLD(operand.U8(31), one, one)
	eights(c, func() {
		x, y := load()
		mask, high := c.YMM(), c.XMM()
		c.VCMPPS(operand.U8(predicate), y, x, mask)
		c.VPAND(one, mask, mask)
		c.VEXTRACTI128(operand.U8(1), mask, high)
		c.VPACKSSDW(high, mask.AsX(), high)
		c.VPACKSSWB(high, high, high)
		c.VMOVQ(high, operand.Mem{Base: d})
		c.ADDQ(operand.Imm(8), d)
		advance()
	})
}
