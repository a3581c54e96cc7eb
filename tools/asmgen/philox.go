package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const philoxDoc = "writes n blocks of four float32 numbers, n being a multiple of eight. The lower half of the counters must not overflow; keys are those of the rounds"

// emitPhilox emits the cipher of package philox for eight counters at once, whose
// words become numbers in [0, 1).
func emitPhilox(c *build.Context) {
	same := func(name string, v uint64) operand.Mem { return quads(c, name, func(int) uint64 { return v }) }
	k := philoxConstants{
		lanes: quads(c, "lanes", func(i int) uint64 { return uint64(i) }),
		mul0:  same("mul0", 0xD2511F53), mul1: same("mul1", 0xCD9E8D57), four: same("four", 4),
	}
	mask, one := same("fraction", 0x007fffff007fffff), same("one", 0x3f8000003f800000)
	emitPhiloxLoop(c, "uniforms", philoxDoc, k, func(x reg.VecVirtual) {
		c.VPAND(mask, x, x)
		c.VPOR(one, x, x)
		c.VSUBPS(one, x, x)
	})
}

// philoxConstants are the registers that do not change.
type philoxConstants struct{ lanes, mul0, mul1, four operand.Mem }

// quads returns a constant of four 64-bit elements.
func quads(c *build.Context, name string, f func(i int) uint64) operand.Mem {
	data := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 4 {
		c.AppendDatum(operand.U64(f(i)))
	}
	return data
}

// state is four counters: each word of the four in the lower half of a 64-bit
// element, whose upper half is unspecified, as the products do not read it.
type state [4]reg.VecVirtual

func emitPhiloxLoop(c *build.Context, name, doc string, k philoxConstants, finish func(x reg.VecVirtual)) {
	declare(c, name, doc, "func(out *uint32, counter *[2]uint64, keys *[20]uint64, n int)")
	out, counter := c.Load(c.Param("out"), c.GP64()), c.Load(c.Param("counter"), c.GP64())
	keys, n := c.Load(c.Param("keys"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	low, high, mul0, mul1, four := c.YMM(), c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VPBROADCASTQ(operand.Mem{Base: counter}, low)
	c.VPADDQ(k.lanes, low, low)
	c.VPBROADCASTQ(operand.Mem{Base: counter, Disp: 8}, high)
	c.VMOVDQU(k.mul0, mul0)
	c.VMOVDQU(k.mul1, mul1)
	c.VMOVDQU(k.four, four)
	c.Label("loop")
	var s [2]state
	for i := range s {
		s[i] = state{c.YMM(), c.YMM(), c.YMM(), c.YMM()}
		c.VMOVDQA(low, s[i][0])
		c.VPSRLQ(operand.U8(32), low, s[i][1])
		c.VMOVDQA(high, s[i][2])
		c.VPSRLQ(operand.U8(32), high, s[i][3])
		c.VPADDQ(four, low, low)
	}
	for round := range 10 {
		for i := range s {
			p0, p1 := c.YMM(), c.YMM()
			c.VPMULUDQ(mul0, s[i][0], p0)
			c.VPMULUDQ(mul1, s[i][2], p1)
			key := c.YMM()
			c.VPBROADCASTQ(operand.Mem{Base: keys, Disp: 16 * round}, key)
			c.VPXOR(key, s[i][1], s[i][1])
			c.VPSRLQ(operand.U8(32), p1, s[i][0])
			c.VPXOR(s[i][1], s[i][0], s[i][0])
			c.VPBROADCASTQ(operand.Mem{Base: keys, Disp: 16*round + 8}, key)
			c.VPXOR(key, s[i][3], s[i][3])
			c.VPSRLQ(operand.U8(32), p0, s[i][2])
			c.VPXOR(s[i][3], s[i][2], s[i][2])
			s[i][1], s[i][3] = p1, p0
		}
	}
	for i := range s {
		storeBlocks(c, s[i], operand.Mem{Base: out, Disp: 64 * i}, finish)
	}
	c.ADDQ(operand.Imm(128), out)
	c.SUBQ(operand.Imm(8), n)
	c.JG(operand.LabelRef("loop"))
	c.VZEROUPPER()
	c.RET()
}

// storeBlocks puts the words of four blocks in order.
func storeBlocks(c *build.Context, s state, to operand.Mem, finish func(x reg.VecVirtual)) {
	for i := 1; i < 4; i += 2 {
		c.VPSLLQ(operand.U8(32), s[i], s[i])
		c.VPBLENDD(operand.U8(0xaa), s[i], s[i-1], s[i-1])
	}
	even, odd := c.YMM(), c.YMM()
	c.VPUNPCKLQDQ(s[2], s[0], even)
	c.VPUNPCKHQDQ(s[2], s[0], odd)
	for i, half := range []operand.U8{0x20, 0x31} {
		x := c.YMM()
		c.VPERM2I128(half, odd, even, x)
		finish(x)
		c.VMOVDQU(x, to.Offset(32*i))
	}
}
