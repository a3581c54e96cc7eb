package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pooling is the function that passes the gradient of maximum pooling on.
type pooling struct {
	c                                              *build.Context
	grads, images, pooled, starts, pixels, channel reg.Register
}

// emitToLargest emits the gradient of maximum pooling for neighbouring windows. The
// channels are done eight, four and one at a time.
func emitToLargest(c *build.Context) {
	declare(c, "sToLargest", "adds each element of pooled to that of grads whose element of images is the first of the largest under its window. "+
		"The pixels of the first window begin at the elements of starts, those of the next one step bytes further", "func(grads, images, pooled *float32, starts *int, pixels, channels, step, count int)")
	load := func(param string) reg.Register { return c.Load(c.Param(param), c.GP64()) }
	p := &pooling{c: c, grads: load("grads"), images: load("images"), pooled: load("pooled"), starts: load("starts"), pixels: load("pixels"), channel: c.GP64()}
	step, count, left := load("step"), load("count"), c.GP64()
	c.Label("window")
	c.XORQ(p.channel, p.channel)
	c.Load(c.Param("channels"), left)
	for _, width := range []struct {
		lanes     int
		name, end string
	}{{8, "eight", "four"}, {4, "four", "one"}, {1, "one", "next"}} {
		c.Label(width.name)
		c.CMPQ(left, operand.Imm(uint64(width.lanes)))
		c.JLT(operand.LabelRef(width.end))
		p.channels(width.lanes, width.name)
		c.ADDQ(operand.Imm(uint64(4*width.lanes)), p.channel)
		c.SUBQ(operand.Imm(uint64(width.lanes)), left)
		c.JMP(operand.LabelRef(width.name))
	}
	c.Label("next")
	c.ADDQ(step, p.grads)
	c.ADDQ(step, p.images)
	c.ADDQ(p.channel, p.pooled)
	c.DECQ(count)
	c.JNE(operand.LabelRef("window"))
	c.VZEROUPPER()
	c.RET()
}

// channels does so many channels of a window: it numbers the pixels, finds that of the
// largest, and adds to it.
func (p *pooling) channels(lanes int, name string) {
	c := p.c
	vector := func() reg.VecVirtual {
		if lanes == 8 {
			return c.YMM()
		}
		return c.XMM()
	}
	move := c.VMOVUPS
	if lanes == 1 {
		move = c.VMOVSS
	}
	best, place, number, minus := vector(), vector(), vector(), vector()
	x, mask := vector(), vector()
	k, at := c.GP64(), c.GP64()
	pixel := func(from reg.Register) operand.Mem {
		c.MOVQ(operand.Mem{Base: p.starts, Index: k, Scale: 8}, at)
		c.LEAQ(operand.Mem{Base: p.channel, Index: at, Scale: 4}, at)
		return operand.Mem{Base: from, Index: at, Scale: 1}
	}
	c.VPCMPEQD(minus, minus, minus) // minus one
	c.VPXOR(number, number, number)
	c.VPXOR(place, place, place)
	c.XORQ(k, k)
	move(pixel(p.images), best)
	c.JMP(operand.LabelRef(name + "_compared"))
	c.Label(name + "_compare")
	move(pixel(p.images), x)
	c.VPSUBD(minus, number, number)
	c.VCMPPS(operand.U8(0x1e), best, x, mask)
	c.VBLENDVPS(mask, x, best, best)
	c.VBLENDVPS(mask, number, place, place)
	c.Label(name + "_compared")
	c.INCQ(k)
	c.CMPQ(k, p.pixels)
	c.JLT(operand.LabelRef(name + "_compare"))
	grad := best
	move(operand.Mem{Base: p.pooled, Index: p.channel, Scale: 1}, grad)
	c.VPXOR(number, number, number)
	c.XORQ(k, k)
	c.Label(name + "_add")
	c.VPCMPEQD(place, number, mask)
	c.VANDPS(mask, grad, x)
	to := pixel(p.grads)
	sum := vector()
	move(to, sum)
	c.VADDPS(x, sum, sum)
	move(sum, to)
	c.VPSUBD(minus, number, number)
	c.INCQ(k)
	c.CMPQ(k, p.pixels)
	c.JLT(operand.LabelRef(name + "_add"))
}
