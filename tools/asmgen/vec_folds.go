package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitFolds emits what makes few numbers of a slice of float32. The length is a
// multiple of 16.
func emitFolds(c *build.Context) {
	emitLanes(c, "sLanes", "adds element i of x to lane i%16", nil)
	emitLanes(c, "sSquareLanes", "adds the square of element i of x to lane i%16", func(x reg.VecVirtual) { c.VMULPD(x, x, x) })
	emitSum(c)
	emitMax(c)
}

// emitLanes emits a function that adds to 16 lanes of float64.
func emitLanes(c *build.Context, name, doc string, f func(x reg.VecVirtual)) {
	declare(c, name, doc, "func(lanes *float64, x *float32, n int)")
	lanes, x, n := c.Load(c.Param("lanes"), c.GP64()), c.Load(c.Param("x"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = c.YMM()
		c.VMOVUPD(operand.Mem{Base: lanes, Disp: 32 * i}, acc[i])
	}
	c.SUBQ(operand.Imm(16), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	for i := range acc {
		v := c.YMM()
		c.VCVTPS2PD(operand.Mem{Base: x, Disp: 16 * i}, v)
		if f != nil {
			f(v)
		}
		c.VADDPD(v, acc[i], acc[i])
	}
	c.ADDQ(operand.Imm(64), x)
	c.SUBQ(operand.Imm(16), n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	for i := range acc {
		c.VMOVUPD(acc[i], operand.Mem{Base: lanes, Disp: 32 * i})
	}
	c.VZEROUPPER()
	c.RET()
}

// emitSum emits the sum of all lanes, which are added in halves. The length is 16 or more.
func emitSum(c *build.Context) {
	declare(c, "sSumLanes", "returns the sum of x", "func(x *float32, n int) float64")
	x, n := c.Load(c.Param("x"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = c.YMM()
		c.VXORPD(acc[i], acc[i], acc[i])
	}
	c.Label("loop")
	for i := range acc {
		v := c.YMM()
		c.VCVTPS2PD(operand.Mem{Base: x, Disp: 16 * i}, v)
		c.VADDPD(v, acc[i], acc[i])
	}
	c.ADDQ(operand.Imm(64), x)
	c.SUBQ(operand.Imm(16), n)
	c.JNE(operand.LabelRef("loop"))
	c.VADDPD(acc[2], acc[0], acc[0])
	c.VADDPD(acc[3], acc[1], acc[1])
	c.VADDPD(acc[1], acc[0], acc[0])
	sum, high := acc[0].AsX(), c.XMM()
	c.VEXTRACTF128(operand.U8(1), acc[0], high)
	c.VADDPD(high, sum, sum)
	c.VUNPCKHPD(sum, sum, high)
	c.VADDSD(high, sum, sum)
	c.Store(sum, c.ReturnIndex(0))
	c.VZEROUPPER()
	c.RET()
}

// emitMax emits the search for the largest of each lane.
func emitMax(c *build.Context) {
	declare(c, "sMaxLanes", "sets lane i%16 to element i of x where that is larger or no number", "func(lanes, x *float32, n int)")
	lanes, x, n := c.Load(c.Param("lanes"), c.GP64()), c.Load(c.Param("x"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	var acc, odd [2]reg.VecVirtual
	for i := range acc {
		acc[i], odd[i] = c.YMM(), c.YMM()
		c.VMOVUPS(operand.Mem{Base: lanes, Disp: 32 * i}, acc[i])
		c.VCMPPS(operand.U8(3), acc[i], acc[i], odd[i])
	}
	c.SUBQ(operand.Imm(16), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	for i := range acc {
		v, unordered := c.YMM(), c.YMM()
		c.VMOVUPS(operand.Mem{Base: x, Disp: 32 * i}, v)
		c.VCMPPS(operand.U8(3), v, v, unordered)
		c.VORPS(unordered, odd[i], odd[i])
		c.VMAXPS(v, acc[i], acc[i])
	}
	c.ADDQ(operand.Imm(64), x)
	c.SUBQ(operand.Imm(16), n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	for i := range acc {
		c.VORPS(odd[i], acc[i], acc[i]) // all bits set are NaN
		c.VMOVUPS(acc[i], operand.Mem{Base: lanes, Disp: 32 * i})
	}
	c.VZEROUPPER()
	c.RET()
}
