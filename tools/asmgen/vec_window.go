package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const windowDoc = "adds to each element i of d the products of x[i+r*xRow+t*xTap] and w[i+r*wRow+t*wTap] for rows r and taps t, in their order; " +
	"steps are in bytes, n is a multiple of 8"

// windowTurns are how many registers of sums a turn has: many so that additions need not
// wait for each other, or one for what is left over.
var windowTurns = []int{4, 1}

// emitWindow emits the sum of products over a window, which stays in registers.
func emitWindow(c *build.Context) {
	declare(c, "sWindow", windowDoc, "func(d, x, w *float32, rows, taps, xRow, xTap, wRow, wTap, n int)")
	d, x, w := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("x"), c.GP64()), c.Load(c.Param("w"), c.GP64())
	n, xTap, wTap := c.Load(c.Param("n"), c.GP64()), c.Load(c.Param("xTap"), c.GP64()), c.Load(c.Param("wTap"), c.GP64())
	for _, registers := range windowTurns {
		elements := uint32(8 * registers)
		label := fmt.Sprint("turn", registers)
		c.SUBQ(operand.U32(elements), n)
		c.JLT(operand.LabelRef("left" + label))
		c.Label(label)
		emitWindowTurn(c, label, registers, d, x, w, xTap, wTap)
		for _, p := range []reg.Register{d, x, w} {
			c.ADDQ(operand.U32(4*elements), p)
		}
		c.SUBQ(operand.U32(elements), n)
		c.JGE(operand.LabelRef(label))
		c.Label("left" + label)
		c.ADDQ(operand.U32(elements), n)
	}
	c.VZEROUPPER()
	c.RET()
}

// emitWindowTurn emits the sums of so many registers of elements.
func emitWindowTurn(c *build.Context, label string, registers int, d, x, w, xTap, wTap reg.Register) {
	sums := make([]reg.VecVirtual, registers)
	for i := range sums {
		sums[i] = c.YMM()
		c.VMOVUPS(operand.Mem{Base: d, Disp: 32 * i}, sums[i])
	}
	xAt, wAt := c.GP64(), c.GP64()
	c.MOVQ(x, xAt)
	c.MOVQ(w, wAt)
	rows := c.Load(c.Param("rows"), c.GP64())
	c.Label(label + "Row")
	xs, ws := c.GP64(), c.GP64()
	c.MOVQ(xAt, xs)
	c.MOVQ(wAt, ws)
	taps := c.Load(c.Param("taps"), c.GP64())
	c.Label(label + "Tap")
	for i := range sums {
		v := c.YMM()
		c.VMOVUPS(operand.Mem{Base: xs, Disp: 32 * i}, v)
		c.VMULPS(operand.Mem{Base: ws, Disp: 32 * i}, v, v)
		c.VADDPS(v, sums[i], sums[i])
	}
	c.ADDQ(xTap, xs)
	c.ADDQ(wTap, ws)
	c.DECQ(taps)
	c.JNE(operand.LabelRef(label + "Tap"))
	c.ADDQ(c.Load(c.Param("xRow"), c.GP64()), xAt)
	c.ADDQ(c.Load(c.Param("wRow"), c.GP64()), wAt)
	c.DECQ(rows)
	c.JNE(operand.LabelRef(label + "Row"))
	for i := range sums {
		c.VMOVUPS(sums[i], operand.Mem{Base: d, Disp: 32 * i})
	}
}
