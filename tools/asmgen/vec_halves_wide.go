package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Rounding to halves by the conversions of AVX-512, which round as the integers of AVX2 do
// in five times the instructions. NaN becomes the one that those make.

// emitWideHalves emits the functions. The length is a multiple of sixteen.
func emitWideHalves(c *build.Context) {
	emitWideHalf(c, "toHalfAVX512", "rounds x to halves", "d *uint16, x *float32", 32, func(half reg.VecVirtual, d reg.Register) {
		c.VMOVUPS(half, operand.Mem{Base: d})
	})
	emitWideHalf(c, "roundHalfAVX512", "rounds x as halves are", "d, x *float32", 64, func(half reg.VecVirtual, d reg.Register) {
		x := c.ZMM()
		c.VCVTPH2PS(half, x)
		c.VMOVUPS(x, operand.Mem{Base: d})
	})
}

// emitWideHalf emits one of them, which stores so many bytes for sixteen elements.
func emitWideHalf(c *build.Context, name, does, params string, out uint64, store func(half reg.VecVirtual, d reg.Register)) {
	declare(c, name, does, "func("+params+", n int)")
	d, x := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("x"), c.GP64())
	sign, none := spreadBits(c, signBit), spreadBits(c, quiet)
	sixteens(c, func() {
		v, half, odd := c.ZMM(), c.YMM(), c.K()
		c.VMOVUPS(operand.Mem{Base: x}, v)
		c.VCMPPS(unordered, v, v, odd)
		c.VPANDD(sign, v, odd, v)
		c.VPORD(none, v, odd, v)
		const toNearestEven = operand.U8(0)
		c.VCVTPS2PH(toNearestEven, v, half)
		store(half, d)
		c.ADDQ(operand.U8(64), x)
		c.ADDQ(operand.Imm(out), d)
	})
}

// unordered compares for where a number is none.
const unordered = operand.U8(3)

// sixteens repeats what body emits for each sixteen of n elements, and returns.
func sixteens(c *build.Context, body func()) {
	n := c.Load(c.Param("n"), c.GP64())
	c.SUBQ(operand.U8(16), n)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	body()
	c.SUBQ(operand.U8(16), n)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// emitWideBfloats emits the conversions of bfloat16 by the integers of AVX-512: that by one
// instruction takes numbers below the normal ones for zero.
func emitWideBfloats(c *build.Context) {
	declare(c, "fromBfloat16AVX512", "sets d to the bfloat16s x", "func(d *float32, x *uint16, n int)")
	d, x := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("x"), c.GP64())
	sixteens(c, func() {
		v := c.ZMM()
		c.VPMOVZXWD(operand.Mem{Base: x}, v)
		c.VPSLLD(operand.U8(16), v, v)
		c.VMOVUPS(v, operand.Mem{Base: d})
		c.ADDQ(operand.U8(32), x)
		c.ADDQ(operand.U8(64), d)
	})
	emitWideBfloat(c, "toBfloat16AVX512", "rounds x to bfloat16s", "d *uint16, x *float32", 32, func(v reg.VecVirtual, d reg.Register) {
		c.VPMOVDW(v, operand.Mem{Base: d})
	})
	emitWideBfloat(c, "roundBfloat16AVX512", "rounds x as bfloat16s are", "d, x *float32", 64, func(v reg.VecVirtual, d reg.Register) {
		c.VPSLLD(operand.U8(16), v, v)
		c.VMOVUPS(v, operand.Mem{Base: d})
	})
}

// emitWideBfloat emits a rounding; store gets the bits of the bfloat16s in integers of 32 bits.
func emitWideBfloat(c *build.Context, name, does, params string, out uint64, store func(v reg.VecVirtual, d reg.Register)) {
	declare(c, name, does, "func("+params+", n int)")
	d, x := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("x"), c.GP64())
	one, half, no := spreadBits(c, 1), spreadBits(c, 0x7fff), spreadBits(c, quiet>>16)
	sixteens(c, func() {
		v, odd, wrong := c.ZMM(), c.ZMM(), c.K()
		c.VMOVUPS(operand.Mem{Base: x}, v)
		c.VCMPPS(unordered, v, v, wrong)
		c.VPSRLD(operand.U8(16), v, odd)
		c.VPANDD(one, odd, odd)
		c.VPADDD(half, v, v)
		c.VPADDD(odd, v, v)
		c.VPSRLD(operand.U8(16), v, v)
		c.VMOVDQA32(no, wrong, v)
		store(v, d)
		c.ADDQ(operand.U8(64), x)
		c.ADDQ(operand.Imm(out), d)
	})
}

// spreadBits returns a register of equal words.
func spreadBits(c *build.Context, bits uint32) reg.VecVirtual {
	word, all := c.GP32(), c.ZMM()
	c.MOVL(operand.U32(bits), word)
	c.VPBROADCASTD(word, all)
	return all
}
