package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Conversions to float32 from integers, and between float32 and the types of 16 bits. These
// are done in integers: numbers below the normal ones and those that are none take no longer,
// and keep their bits.

// halves emits them, and constants.
type halves struct {
	c *build.Context
	k *constants
}

// emitHalves emits the functions. The length is a multiple of eight.
func emitHalves(c *build.Context, k *constants) {
	h := halves{c, k}
	h.emit("fromHalf", "sets d to the halves x", "d *float32, x *uint16", 16, 32, h.loadShort, h.fromHalf, h.store)
	h.emit("toHalf", "rounds x to halves", "d *uint16, x *float32", 32, 16, h.load, h.toHalf, h.storeShort)
	h.emit("roundHalf", "rounds x as halves are", "d, x *float32", 32, 32, h.load, h.roundHalf, h.store)
	h.emit("fromBfloat16", "sets d to the bfloat16s x", "d *float32, x *uint16", 16, 32, h.loadShort, h.fromBfloat16, h.store)
	h.emit("toBfloat16", "rounds x to bfloat16s", "d *uint16, x *float32", 32, 16, h.load, h.toBfloat16, h.storeShort)
	h.emit("roundBfloat16", "rounds x as bfloat16s are", "d, x *float32", 32, 32, h.load, h.roundBfloat16, h.store)
	h.emit("fromByte", "sets d to the bytes x", "d *float32, x *byte", 8, 32, h.loadByte, h.fromInteger, h.store)
	h.emit("fromInt32", "sets d to the integers x", "d *float32, x *int32", 32, 32, h.load, h.fromInteger, h.store)
}

// emit makes a function that takes eight elements in so many bytes, and gives them in others.
func (h *halves) emit(name, does, params string, in, out uint8, load func(at operand.Mem) reg.VecVirtual, f func(x reg.VecVirtual) reg.VecVirtual, store func(x reg.VecVirtual, at operand.Mem)) {
	c := h.c
	declare(c, name, does, "func("+params+", n int)")
	d, x := c.Load(c.Param("d"), c.GP64()), c.Load(c.Param("x"), c.GP64())
	eights(c, func() {
		store(f(load(operand.Mem{Base: x})), operand.Mem{Base: d})
		c.ADDQ(operand.U8(in), x)
		c.ADDQ(operand.U8(out), d)
	})
}

func (h *halves) load(at operand.Mem) reg.VecVirtual {
	r := h.c.YMM()
	h.c.VMOVUPS(at, r)
	return r
}

func (h *halves) loadShort(at operand.Mem) reg.VecVirtual {
	r := h.c.YMM()
	h.c.VPMOVZXWD(at, r)
	return r
}

func (h *halves) loadByte(at operand.Mem) reg.VecVirtual {
	r := h.c.YMM()
	h.c.VPMOVZXBD(at, r)
	return r
}

func (h *halves) store(x reg.VecVirtual, at operand.Mem) { h.c.VMOVUPS(x, at) }

func (h *halves) storeShort(x reg.VecVirtual, at operand.Mem) {
	high := h.c.XMM()
	h.c.VEXTRACTI128(operand.U8(1), x, high)
	h.c.VPACKUSDW(high, x.AsX(), high)
	h.c.VMOVUPS(high, at)
}

// do returns an operation on x and a constant.
func (h *halves) do(f func(...operand.Op), bits uint32, x reg.VecVirtual) reg.VecVirtual {
	r := h.c.YMM()
	f(h.k.bits(bits), x, r)
	return r
}

// above returns a mask of where x, an integer, is above a constant.
func (h *halves) above(x reg.VecVirtual, bits uint32) reg.VecVirtual {
	return h.do(h.c.VPCMPGTD, bits, x)
}

// below returns a mask of where x, an integer, is below a constant.
func (h *halves) below(x reg.VecVirtual, bits uint32) reg.VecVirtual {
	limit, mask := h.c.YMM(), h.c.YMM()
	h.c.VMOVUPS(h.k.bits(bits), limit)
	h.c.VPCMPGTD(x, limit, mask)
	return mask
}

// where returns a constant where the mask is set, else x.
func (h *halves) where(mask reg.VecVirtual, bits uint32, x reg.VecVirtual) reg.VecVirtual {
	r := h.c.YMM()
	h.c.VBLENDVPS(mask, h.k.bits(bits), x, r)
	return r
}

func (h *halves) shifted(f func(...operand.Op), by uint8, x reg.VecVirtual) reg.VecVirtual {
	r := h.c.YMM()
	f(operand.U8(by), x, r)
	return r
}

func (h *halves) or(x, y reg.VecVirtual) reg.VecVirtual {
	r := h.c.YMM()
	h.c.VORPS(x, y, r)
	return r
}

const (
	exponentGap = (127 - 15) << 23 // between the exponents of float32 and half
	quiet       = 0x7fc00000       // no number
	half        = 0x3f000000       // 0.5; its unit in the last place is a half's smallest number
)

// fromHalf takes the bits of halves in integers of 32 bits.
func (h *halves) fromHalf(x reg.VecVirtual) reg.VecVirtual {
	c := h.c
	sign := h.do(c.VANDPS, signBit, h.shifted(c.VPSLLD, 16, x))
	m := h.do(c.VANDPS, 0x0fffe000, h.shifted(c.VPSLLD, 13, x))
	infinite := h.do(c.VANDPS, exponentGap, h.above(m, 0x0f7fffff)) // or no number
	normal := h.do(c.VPADDD, exponentGap, m)
	c.VPADDD(infinite, normal, normal)
	// Below the normal numbers the fraction is added to 2^-14, and that taken away.
	small := h.do(c.VPADDD, 113<<23, m)
	small = h.do(c.VSUBPS, 113<<23, small)
	c.VBLENDVPS(h.below(m, smallestNormal), small, normal, normal)
	return h.or(sign, normal)
}

// toHalf gives the bits of halves in integers of 32 bits.
func (h *halves) toHalf(x reg.VecVirtual) reg.VecVirtual {
	c := h.c
	sign := h.do(c.VANDPS, 0x8000, h.shifted(c.VPSRLD, 16, x))
	m := h.do(c.VANDPS, 0x7fffffff, x)
	odd := h.do(c.VANDPS, 1, h.shifted(c.VPSRLD, 13, m))
	r := h.do(c.VPADDD, 0x100000000-exponentGap+0xfff, m)
	c.VPADDD(odd, r, r)
	r = h.shifted(c.VPSRLD, 13, r)
	small := h.do(c.VADDPS, half, m)
	small = h.do(c.VPSUBD, half, small)
	c.VBLENDVPS(h.below(m, 113<<23), small, r, r)
	r = h.where(h.above(m, 0x477fefff), 0x7c00, r)
	r = h.where(h.above(m, infinity), 0x7e00, r)
	return h.or(sign, r)
}

func (h *halves) fromBfloat16(x reg.VecVirtual) reg.VecVirtual {
	return h.shifted(h.c.VPSLLD, 16, x)
}

func (h *halves) toBfloat16(x reg.VecVirtual) reg.VecVirtual {
	c := h.c
	odd := h.do(c.VANDPS, 1, h.shifted(c.VPSRLD, 16, x))
	r := h.do(c.VPADDD, 0x7fff, x)
	c.VPADDD(odd, r, r)
	r = h.shifted(c.VPSRLD, 16, r)
	return h.where(h.above(h.do(c.VANDPS, 0x7fffffff, x), infinity), 0x7fc0, r)
}

// roundHalf is fromHalf of toHalf, in fewer steps.
func (h *halves) roundHalf(x reg.VecVirtual) reg.VecVirtual {
	c := h.c
	sign := h.do(c.VANDPS, signBit, x)
	m := h.do(c.VANDPS, 0x7fffffff, x)
	odd := h.do(c.VANDPS, 1, h.shifted(c.VPSRLD, 13, m))
	r := h.do(c.VPADDD, 0xfff, m)
	c.VPADDD(odd, r, r)
	r = h.do(c.VANDPS, 0xffffe000, r)
	small := h.do(c.VSUBPS, half, h.do(c.VADDPS, half, m))
	c.VBLENDVPS(h.below(m, 113<<23), small, r, r)
	r = h.where(h.above(m, 0x477fefff), infinity, r)
	r = h.where(h.above(m, infinity), quiet, r)
	return h.or(sign, r)
}

// roundBfloat16 is fromBfloat16 of toBfloat16, in fewer steps.
func (h *halves) roundBfloat16(x reg.VecVirtual) reg.VecVirtual {
	c := h.c
	odd := h.do(c.VANDPS, 1, h.shifted(c.VPSRLD, 16, x))
	r := h.do(c.VPADDD, 0x7fff, x)
	c.VPADDD(odd, r, r)
	r = h.do(c.VANDPS, 0xffff0000, r)
	return h.where(h.above(h.do(c.VANDPS, 0x7fffffff, x), infinity), quiet, r)
}

func (h *halves) fromInteger(x reg.VecVirtual) reg.VecVirtual {
	r := h.c.YMM()
	h.c.VCVTDQ2PS(x, r)
	return r
}
