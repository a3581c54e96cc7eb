package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// emitCRC writes the checksum of a few bytes: those of a word at a time, then
// what is left by half the size each time.
func emitCRC(c *build.Context) {
	declare(c, "shortSSE42", "returns the CRC-32C of the n bytes at p", "func(p *byte, n int) uint32")
	at := operand.Mem{Base: c.Load(c.Param("p"), c.GP64())}
	n := c.Load(c.Param("n"), c.GP64())
	crc := c.GP64()
	c.MOVL(operand.U32(0xffffffff), crc.As32())
	c.SUBQ(operand.Imm(8), n)
	c.JLT(operand.LabelRef("rest"))
	c.Label("words")
	c.CRC32Q(at, crc)
	c.ADDQ(operand.Imm(8), at.Base)
	c.SUBQ(operand.Imm(8), n)
	c.JGE(operand.LabelRef("words"))
	c.Label("rest") // n is 8 less than what is left; its low bits are the same
	for _, part := range []struct {
		size uint32
		sum  func()
	}{
		{4, func() { c.CRC32L(at, crc.As32()) }},
		{2, func() { c.CRC32W(at, crc.As32()) }},
		{1, func() { c.CRC32B(at, crc.As32()) }},
	} {
		next := "below" + string(rune('0'+part.size))
		c.TESTQ(operand.U32(part.size), n)
		c.JZ(operand.LabelRef(next))
		part.sum()
		c.ADDQ(operand.U32(part.size), at.Base)
		c.Label(next)
	}
	c.NOTL(crc.As32())
	c.Store(crc.As32(), c.ReturnIndex(0))
	c.RET()
}
