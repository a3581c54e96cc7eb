package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// emitPause emits the loop in which a goroutine waits for another processor.
func emitPause(c *build.Context) {
	c.Function("pause")
	c.Attributes(attr.NOSPLIT)
	c.Doc("pause executes the instruction for waiting loops n times, n being above zero.")
	c.SignatureExpr("func(n int)")
	n := c.Load(c.Param("n"), c.GP64())
	c.Label("loop")
	c.PAUSE()
	c.SUBQ(operand.Imm(1), n)
	c.JG(operand.LabelRef("loop"))
	c.RET()
}
