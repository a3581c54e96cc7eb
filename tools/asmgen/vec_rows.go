package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowsColumns is the largest number of columns that one function of rows takes.
const rowsColumns = 16

const addRowsDoc = "adds %d columns of rows of y, times s, to rows of d. Entry e has the row of d at to+2e, that of y at from+2e; rows are ld bytes apart"

// emitRows emits the product of a sparse and a dense matrix, for each number of
// columns a function.
func emitRows(c *build.Context) {
	for n := 1; n <= rowsColumns; n++ {
		emitAddRows(c, n)
	}
}

// emitAddRows emits the function that adds scaled rows of n columns. Each entry
// has two indices of 8 bytes; to and from say which is which.
func emitAddRows(c *build.Context, n int) {
	name := fmt.Sprintf("sAddRows%d", n)
	declare(c, name, fmt.Sprintf(addRowsDoc, n), "func(d, y, s *float32, to, from *int64, ld, count int)")
	d, y, s := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("y"), c.GP64()), c.Load(c.Param("s"), c.GP64())
	to, from := c.Load(c.Param("to"), c.GP64()), c.Load(c.Param("from"), c.GP64())
	ld, count := c.Load(c.Param("ld"), c.GP64()), c.Load(c.Param("count"), c.GP64())
	c.TESTQ(count, count)
	c.JE(operand.LabelRef("done"))
	c.Label("loop")
	source, target := c.GP64(), c.GP64()
	c.MOVQ(operand.Mem{Base: from}, source)
	c.IMULQ(ld, source)
	c.MOVQ(operand.Mem{Base: to}, target)
	c.IMULQ(ld, target)
	scale := c.YMM()
	c.VBROADCASTSS(operand.Mem{Base: s}, scale)
	for at := 0; at < n; {
		width := 8
		for width > n-at {
			width /= 2
		}
		addPiece(c, width, scale, operand.Mem{Base: y, Index: source, Scale: 1, Disp: 4 * at}, operand.Mem{Base: d, Index: target, Scale: 1, Disp: 4 * at})
		at += width
	}
	c.ADDQ(operand.U8(16), from)
	c.ADDQ(operand.U8(16), to)
	c.ADDQ(operand.U8(4), s)
	c.DECQ(count)
	c.JNE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// addPiece adds so many elements, times a scale, to others.
func addPiece(c *build.Context, width int, scale reg.VecVirtual, from, to operand.Mem) {
	v := c.YMM()
	switch width {
	case 8:
		c.VMULPS(from, scale, v)
		c.VADDPS(to, v, v)
		c.VMOVUPS(v, to)
	case 4:
		c.VMULPS(from, scale.AsX(), v.AsX())
		c.VADDPS(to, v.AsX(), v.AsX())
		c.VMOVUPS(v.AsX(), to)
	case 2:
		sum := c.XMM()
		c.VMOVSD(from, v.AsX())
		c.VMULPS(v.AsX(), scale.AsX(), v.AsX())
		c.VMOVSD(to, sum)
		c.VADDPS(sum, v.AsX(), v.AsX())
		c.VMOVLPS(v.AsX(), to)
	default:
		c.VMULSS(from, scale.AsX(), v.AsX())
		c.VADDSS(to, v.AsX(), v.AsX())
		c.VMOVSS(v.AsX(), to)
	}
}
