package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitJPEG emits what package jpeg does with each sample: the inverse transforms of
// eight lines of eight coefficients, the interpolation of colour, and the conversion
// of colour. All of it is arithmetic of 32 or 16 bits, as in the loops in Go.
func emitJPEG(c *build.Context) {
	j := &jpegEmitter{c, map[string]bool{}}
	j.emitTransform("fastAVX2", "the fast transform", j.fast, 5)
	j.emitTransform("accurateAVX2", "the accurate transform", j.accurate, 0)
	j.emitWideHigh()
	j.emitColours()
}

type jpegEmitter struct {
	c     *build.Context
	known map[string]bool // constants
}

// dwords returns a constant of eight equal 32-bit elements.
func (j *jpegEmitter) dwords(v int32) operand.Mem {
	sign := "p"
	if v < 0 {
		sign = "m"
	}
	return j.constant(fmt.Sprintf("dword%s%d", sign, max(v, -v)), uint64(uint32(v))<<32|uint64(uint32(v)))
}

// words returns a constant of sixteen equal 16-bit elements.
func (j *jpegEmitter) words(v uint16) operand.Mem {
	return j.constant(fmt.Sprintf("word%d", v), uint64(v)*0x0001000100010001)
}

// constant returns a constant of a repeated 64-bit element, or of several.
func (j *jpegEmitter) constant(name string, quad ...uint64) operand.Mem {
	data := operand.NewDataAddr(operand.NewStaticSymbol(name), 0)
	if j.known[name] {
		return data
	}
	j.known[name] = true
	j.c.StaticGlobal(name)
	j.c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 4 {
		j.c.AppendDatum(operand.U64(quad[i%len(quad)]))
	}
	return data
}

func (j *jpegEmitter) op(f func(...operand.Op), x, y operand.Op) reg.VecVirtual {
	r := j.c.YMM()
	f(y, x, r)
	return r
}

func (j *jpegEmitter) add(x, y operand.Op) reg.VecVirtual { return j.op(j.c.VPADDD, x, y) }
func (j *jpegEmitter) sub(x, y operand.Op) reg.VecVirtual { return j.op(j.c.VPSUBD, x, y) }
func (j *jpegEmitter) mul(x reg.VecVirtual, by int32) reg.VecVirtual {
	return j.op(j.c.VPMULLD, x, j.dwords(by))
}

// right and left return x, shifted.
func (j *jpegEmitter) right(x reg.VecVirtual, n uint8) reg.VecVirtual {
	return j.op(j.c.VPSRAD, x, operand.U8(n))
}

func (j *jpegEmitter) left(x reg.VecVirtual, n uint8) reg.VecVirtual {
	return j.op(j.c.VPSLLD, x, operand.U8(n))
}

type lines [8]reg.VecVirtual

// emitTransform emits a transform of a block that is multiplied by its table: once
// down, once across. The result is shifted before it becomes samples.
func (j *jpegEmitter) emitTransform(name, doc string, pass func(r lines, second bool) lines, shift uint8) {
	c := j.c
	declare(c, name, "is "+doc+" of a block of coefficients, multiplied by a table, to samples", "func(coef *int16, table *int32, out *byte, stride int)")
	coef, table := c.Load(c.Param("coef"), c.GP64()), c.Load(c.Param("table"), c.GP64())
	out, stride := c.Load(c.Param("out"), c.GP64()), c.Load(c.Param("stride"), c.GP64())
	var r lines
	for i := range r {
		r[i] = c.YMM()
		c.VPMOVSXWD(operand.Mem{Base: coef, Disp: 16 * i}, r[i])
		c.VPMULLD(operand.Mem{Base: table, Disp: 32 * i}, r[i], r[i])
	}
	r = pass(j.transpose(pass(r, false)), true)
	for i, x := range r {
		if shift > 0 {
			c.VPSRAD(operand.U8(shift), x, x)
		}
		c.VPADDD(j.dwords(128), x, r[i])
	}
	j.store(r, out, stride)
	c.VZEROUPPER()
	c.RET()
}

// store packs columns to bytes and stores them as lines.
func (j *jpegEmitter) store(r lines, out, stride reg.Register) {
	c := j.c
	for i := 0; i < 8; i += 2 {
		c.VPACKSSDW(r[i+1], r[i], r[i])
	}
	order := j.constant("byRow", 0x0d0905010c080400, 0x0f0b07030e0a0602)
	for i := 0; i < 8; i += 4 {
		c.VPACKUSWB(r[i+2], r[i], r[i])
		c.VPSHUFB(order, r[i], r[i])
	}
	low, high := c.YMM(), c.YMM()
	c.VPUNPCKLDQ(r[4], r[0], low)
	c.VPUNPCKHDQ(r[4], r[0], high)
	at := operand.Mem{Base: out}
	for half := range 2 {
		for _, pair := range []reg.VecVirtual{low, high} {
			x := pair.AsX()
			if half == 1 {
				x = c.XMM()
				c.VEXTRACTI128(operand.U8(1), pair, x)
			}
			c.VMOVQ(x, at)
			c.ADDQ(stride, out)
			c.VMOVHPS(x, at)
			c.ADDQ(stride, out)
		}
	}
}

// transpose exchanges lines and columns.
func (j *jpegEmitter) transpose(r lines) (t lines) {
	c := j.c
	var a, b lines
	for i := 0; i < 8; i += 2 {
		a[i], a[i+1] = j.op(c.VPUNPCKLDQ, r[i], r[i+1]), j.op(c.VPUNPCKHDQ, r[i], r[i+1])
	}
	for i := 0; i < 8; i += 4 {
		b[i], b[i+1] = j.op(c.VPUNPCKLQDQ, a[i], a[i+2]), j.op(c.VPUNPCKHQDQ, a[i], a[i+2])
		b[i+2], b[i+3] = j.op(c.VPUNPCKLQDQ, a[i+1], a[i+3]), j.op(c.VPUNPCKHQDQ, a[i+1], a[i+3])
	}
	for i := range 4 {
		t[i], t[i+4] = c.YMM(), c.YMM()
		c.VPERM2I128(operand.U8(0x20), b[i+4], b[i], t[i])
		c.VPERM2I128(operand.U8(0x31), b[i+4], b[i], t[i+4])
	}
	return t
}

// fast is one direction of the fast transform.
func (j *jpegEmitter) fast(r lines, _ bool) (o lines) {
	t10, t11, t13 := j.add(r[0], r[4]), j.sub(r[0], r[4]), j.add(r[2], r[6])
	t12 := j.sub(j.right(j.mul(j.sub(r[2], r[6]), 362), 8), t13)
	e0, e3, e1, e2 := j.add(t10, t13), j.sub(t10, t13), j.add(t11, t12), j.sub(t11, t12)

	z13, z10 := j.add(r[5], r[3]), j.sub(r[5], r[3])
	z11, z12 := j.add(r[1], r[7]), j.sub(r[1], r[7])
	o7 := j.add(z11, z13)
	z5 := j.right(j.mul(j.add(z10, z12), 473), 8)
	o6 := j.sub(j.add(j.right(j.mul(z10, -669), 8), z5), o7)
	o5 := j.sub(j.right(j.mul(j.sub(z11, z13), 362), 8), o6)
	o4 := j.add(j.sub(j.right(j.mul(z12, 277), 8), z5), o5)

	o[0], o[7] = j.add(e0, o7), j.sub(e0, o7)
	o[1], o[6] = j.add(e1, o6), j.sub(e1, o6)
	o[2], o[5] = j.add(e2, o5), j.sub(e2, o5)
	o[4], o[3] = j.add(e3, o4), j.sub(e3, o4)
	return o
}

// accurate is one direction of the accurate transform.
func (j *jpegEmitter) accurate(r lines, second bool) (o lines) {
	shift := uint8(11)
	if second {
		shift = 18
	}
	z1, z3, z4 := j.add(r[7], r[1]), j.add(r[7], r[3]), j.add(r[5], r[1])
	z2 := j.add(r[5], r[3])
	z5 := j.mul(j.add(z3, z4), 9633)
	z1, z2 = j.mul(z1, -7373), j.mul(z2, -20995)
	z3, z4 = j.add(z5, j.mul(z3, -16069)), j.add(z5, j.mul(z4, -3196))
	o0 := j.add(j.add(j.mul(r[7], 2446), z1), z3)
	o1 := j.add(j.add(j.mul(r[5], 16819), z2), z4)
	o2 := j.add(j.add(j.mul(r[3], 25172), z2), z3)
	o3 := j.add(j.add(j.mul(r[1], 12299), z1), z4)

	z1 = j.mul(j.add(r[2], r[6]), 4433)
	t2, t3 := j.add(z1, j.mul(r[6], -15137)), j.add(z1, j.mul(r[2], 6270))
	half := j.dwords(1 << (shift - 1))
	t0 := j.add(j.left(j.add(r[0], r[4]), 13), half)
	t1 := j.add(j.left(j.sub(r[0], r[4]), 13), half)
	e0, e3, e1, e2 := j.add(t0, t3), j.sub(t0, t3), j.add(t1, t2), j.sub(t1, t2)

	o[0], o[7] = j.right(j.add(e0, o3), shift), j.right(j.sub(e0, o3), shift)
	o[1], o[6] = j.right(j.add(e1, o2), shift), j.right(j.sub(e1, o2), shift)
	o[2], o[5] = j.right(j.add(e2, o1), shift), j.right(j.sub(e2, o1), shift)
	o[3], o[4] = j.right(j.add(e3, o0), shift), j.right(j.sub(e3, o0), shift)
	return o
}

// emitWideHigh emits the interpolation of two lines to twice as many samples, those
// before the first and after the last one being there.
func (j *jpegEmitter) emitWideHigh() {
	c := j.c
	declare(c, "wideHighAVX2", "writes two samples for each of n, a multiple of 16. There are further ones before and after those of near and far", "func(near, far, out *byte, n int)")
	near, far := c.Load(c.Param("near"), c.GP64()), c.Load(c.Param("far"), c.GP64())
	out, n := c.Load(c.Param("out"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	c.Label("loop")
	sum := func(at int) reg.VecVirtual {
		x, y := c.YMM(), c.YMM()
		c.VPMOVZXBW(operand.Mem{Base: near, Disp: at}, x)
		c.VPADDW(x, x, y)
		c.VPADDW(y, x, x)
		c.VPMOVZXBW(operand.Mem{Base: far, Disp: at}, y)
		c.VPADDW(y, x, x)
		return x
	}
	left, right, here := sum(-1), sum(1), sum(0)
	c.VPADDW(here, left, left)
	c.VPADDW(here, right, right)
	c.VPADDW(here, here, here)
	c.VPADDW(here, left, left)
	c.VPADDW(here, right, right)
	c.VPADDW(j.words(8), left, left)
	c.VPADDW(j.words(7), right, right)
	c.VPSRLW(operand.U8(4), left, left)
	c.VPSRLW(operand.U8(4), right, right)
	c.VPSLLW(operand.U8(8), right, right)
	c.VPOR(right, left, left)
	c.VMOVDQU(left, operand.Mem{Base: out})
	c.ADDQ(operand.Imm(16), near)
	c.ADDQ(operand.Imm(16), far)
	c.ADDQ(operand.Imm(32), out)
	c.SUBQ(operand.Imm(16), n)
	c.JG(operand.LabelRef("loop"))
	c.VZEROUPPER()
	c.RET()
}

// emitColours emits the conversion of brightness and two differences to red, green
// and blue.
func (j *jpegEmitter) emitColours() {
	c := j.c
	declare(c, "coloursAVX2", "writes the pixels of n samples, a multiple of eight, and four more bytes", "func(y, cb, cr, out *byte, n int)")
	params := [3]reg.Register{c.Load(c.Param("y"), c.GP64()), c.Load(c.Param("cb"), c.GP64()), c.Load(c.Param("cr"), c.GP64())}
	out, n := c.Load(c.Param("out"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	order := j.constant("byPixel", 0x0602090501080400, 0x808080800b07030a)
	c.Label("loop")
	var s [3]reg.VecVirtual
	for i := range s {
		s[i] = c.YMM()
		c.VPMOVZXBD(operand.Mem{Base: params[i]}, s[i])
	}
	y, u, v := s[0], j.sub(s[1], j.dwords(128)), j.sub(s[2], j.dwords(128))
	half := j.dwords(1 << 15)
	red := j.add(y, j.right(j.add(j.mul(v, 91881), half), 16))
	green := j.add(y, j.right(j.add(j.add(j.mul(u, -22554), half), j.mul(v, -46802)), 16))
	blue := j.add(y, j.right(j.add(j.mul(u, 116130), half), 16))
	c.VPACKSSDW(green, red, red)
	c.VPACKSSDW(blue, blue, blue)
	c.VPACKUSWB(blue, red, red)
	c.VPSHUFB(order, red, red)
	c.VMOVDQU(red.AsX(), operand.Mem{Base: out})
	upper := c.XMM()
	c.VEXTRACTI128(operand.U8(1), red, upper)
	c.VMOVDQU(upper, operand.Mem{Base: out, Disp: 12})
	for _, p := range params {
		c.ADDQ(operand.Imm(8), p)
	}
	c.ADDQ(operand.Imm(24), out)
	c.SUBQ(operand.Imm(8), n)
	c.JG(operand.LabelRef("loop"))
	c.VZEROUPPER()
	c.RET()
}
