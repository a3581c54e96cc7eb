package main

import (
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairs are vectors of AVX512_BF16: an element is two bfloat16s that are next to each
// other in the inner dimension.
var pairs = lanes{"bgemm", "float32", 4, 64, "AVX512"}

// encodePairs has the tiles of pairs multiply by VDPBF16PS. Neither avo nor Go's assembler
// knows it; so the tiles are made with VFMADD231PS, which has the same operands, and their
// registers are known now.
func encodePairs(file *ir.File) {
	for _, f := range file.Functions() {
		if !strings.HasPrefix(f.Name, pairs.prefix) {
			continue
		}
		var nodes []ir.Node
		for _, n := range f.Nodes {
			if in, ok := n.(*ir.Instruction); ok && in.Opcode == "VFMADD231PS" {
				nodes = append(nodes, multiplyPairs(in.Operands)...)
			} else {
				nodes = append(nodes, n)
			}
		}
		f.Nodes = nodes
	}
}

// multiplyPairs returns VDPBF16PS as two words: four bytes that tell the registers beyond
// the first eight and the width, then the opcode and the rest of the registers.
func multiplyPairs(operands []operand.Op) []ir.Node {
	y, x, sum := number(operands[0]), number(operands[1]), number(operands[2])
	const map0F38, width512, f3 = 2, 0x40, 2
	not := func(n uint32, bit int) uint32 { return n>>bit&1 ^ 1 }
	p0 := not(sum, 3)<<7 | not(y, 4)<<6 | not(y, 3)<<5 | not(sum, 4)<<4 | map0F38
	p1 := (x&15^15)<<3 | 4 | f3
	p2 := width512 | not(x, 4)<<3
	modRM := 0xc0 | sum&7<<3 | y&7
	return []ir.Node{
		&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(p2<<24 | p1<<16 | p0<<8 | 0x62)}},
		&ir.Instruction{Opcode: "WORD", Operands: []operand.Op{operand.U16(modRM<<8 | 0x52)}},
	}
}

// number returns the number of a vector register.
func number(o operand.Op) uint32 {
	return uint32(reg.ToPhysical(o.(reg.Register)).PhysicalIndex())
}

// emitPairRows writes the function that makes pairs of two rows; n is a multiple of 16.
func emitPairRows(c *build.Context) {
	declare(c, "pairRowsAVX2", "sets d to the pairs of elements of x and y", "func(d *float32, x, y *uint16, n int)")
	d, x, y := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("x"), c.GP64()), c.Load(c.Param("y"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	c.SUBQ(operand.U8(16), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	r, s, lo, hi := c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VMOVUPS(operand.Mem{Base: x}, r)
	c.VMOVUPS(operand.Mem{Base: y}, s)
	c.VPUNPCKLWD(s, r, lo)
	c.VPUNPCKHWD(s, r, hi)
	first, second := c.YMM(), c.YMM()
	c.VPERM2I128(operand.U8(0x20), hi, lo, first)
	c.VPERM2I128(operand.U8(0x31), hi, lo, second)
	c.VMOVUPS(first, operand.Mem{Base: d})
	c.VMOVUPS(second, operand.Mem{Base: d, Disp: 32})
	c.ADDQ(operand.U8(32), x)
	c.ADDQ(operand.U8(32), y)
	c.ADDQ(operand.U8(64), d)
	c.SUBQ(operand.U8(16), n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}
