package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is a kind of vector: its elements, and the width of the registers.
type lanes struct {
	prefix string // of function names
	goType string
	size   uint64 // bytes of an element
	width  uint64 // bytes of a register
	suffix string // of function names
}

// tileCols is the width of a tile of the product, in registers.
const tileCols = 2

// narrowRows is the height of the highest tile of one register, which suits
// products of few columns.
const narrowRows = 16

// tileRows is the height of the highest tile. It is a multiple of three,
// because three rows share a pointer.
func (l lanes) tileRows() int {
	if l.width == 64 {
		return 12
	}
	return 6
}

func emitBLAS(c *build.Context) {
	for _, l := range []lanes{
		{"sgemm", "float32", 4, 32, "AVX2"},
		{"dgemm", "float64", 8, 32, "AVX2"},
		{"sgemm", "float32", 4, 64, "AVX512"},
		{"dgemm", "float64", 8, 64, "AVX512"},
		pairs,
	} {
		for rows := 1; rows <= l.tileRows(); rows++ {
			emitTile(c, l, rows, "Tile", tileCols)
		}
		if l.width < 64 || l.size == 8 {
			continue
		}
		for rows := 1; rows <= narrowRows; rows++ {
			emitTile(c, l, rows, "Narrow", 1)
		}
	}
	for _, n := range []int{24, 48, 64, 96, 128} {
		emitGather(c, n)
	}
	emitTranspose8(c)
	emitTranspose4(c)
	emitTranspose2(c, "sTranspose2", "float32", 4)
	emitTranspose2(c, "dTranspose2", "float64", 8)
	emitPairRows(c)
}

// emitTile writes the function that computes a tile of rows by two registers
// of a product and keeps it in registers for the whole inner dimension.
func emitTile(c *build.Context, l lanes, rows int, kind string, cols int) {
	name := fmt.Sprintf("%s%s%d%s", l.prefix, kind, rows, l.suffix)
	declare(c, name, fmt.Sprintf("computes %d by %d elements of a product", rows, cols*int(l.width/l.size)), fmt.Sprintf("func(k int, a *%[1]s, rs, cs int, b *%[1]s, ldb int, c *%[1]s, ldc int, add, segments, skipA, skipB int)", l.goType))
	t := &tile{c: c, l: l, rows: rows, cols: cols}
	t.prefetch()
	t.load()
	t.multiply()
	t.store()
}

type tile struct {
	c    *build.Context
	l    lanes
	rows int
	cols int // in registers

	k, rs, cs, b, ldb reg.Register
	segments          reg.Register   // left to do
	a                 []reg.Register // pointers to every third row
	acc               [][]reg.VecVirtual
}

func (t *tile) vec() reg.VecVirtual {
	if t.l.width == 64 {
		return t.c.ZMM()
	}
	return t.c.YMM()
}

// bytes loads a count of elements as a count of bytes.
func (t *tile) bytes(param string) reg.Register {
	r := t.c.Load(t.c.Param(param), t.c.GP64())
	shift := uint64(2)
	if t.l.size == 8 {
		shift = 3
	}
	t.c.SHLQ(operand.U8(shift), r)
	return r
}

// prefetch has the processor get what the tile writes to while it computes. The
// stores of a tile are done in order, so each would wait for its cache line.
func (t *tile) prefetch() {
	c := t.c
	p, ldc := c.Load(c.Param("c"), c.GP64()), t.bytes("ldc")
	for i := range t.rows {
		for at := 0; at < t.cols*int(t.l.width); at += 64 {
			c.PREFETCHT0(operand.Mem{Base: p, Disp: at})
		}
		if i < t.rows-1 {
			c.ADDQ(ldc, p)
		}
	}
}

func (t *tile) load() {
	c := t.c
	t.k, t.segments = c.GP64(), c.Load(c.Param("segments"), c.GP64())
	first := c.Load(c.Param("a"), c.GP64())
	t.a = append(t.a, first)
	t.rs, t.cs = t.bytes("rs"), t.bytes("cs")
	t.b, t.ldb = c.Load(c.Param("b"), c.GP64()), t.bytes("ldb")
	for i := 3; i < t.rows; i += 3 {
		p := c.GP64()
		c.LEAQ(operand.Mem{Base: t.a[len(t.a)-1], Index: t.rs, Scale: 2}, p)
		c.ADDQ(t.rs, p)
		t.a = append(t.a, p)
	}
	for range t.rows {
		row := make([]reg.VecVirtual, t.cols)
		for j := range row {
			row[j] = t.vec()
			t.zero(row[j])
		}
		t.acc = append(t.acc, row)
	}
}

func (t *tile) zero(v reg.VecVirtual) {
	if t.l.width == 64 {
		t.c.VPXORD(v, v, v)
		return
	}
	t.c.VXORPS(v, v, v)
}

// unroll is the number of steps of the inner dimension in one turn.
const unroll = 4

// multiply goes through the inner dimension: k steps in each segment, between
// which are skipA and skipB elements that are left out.
func (t *tile) multiply() {
	c := t.c
	c.Label("segment")
	c.Load(c.Param("k"), t.k)
	c.SUBQ(operand.U8(unroll), t.k)
	c.JLT(operand.LabelRef("tail"))
	c.Label("loop")
	for range unroll {
		t.step()
	}
	c.SUBQ(operand.U8(unroll), t.k)
	c.JGE(operand.LabelRef("loop"))
	c.Label("tail")
	c.ADDQ(operand.U8(unroll), t.k)
	c.JE(operand.LabelRef("done"))
	c.Label("single")
	t.step()
	c.DECQ(t.k)
	c.JNE(operand.LabelRef("single"))
	c.Label("done")
	c.DECQ(t.segments)
	c.JE(operand.LabelRef("sum"))
	skip := t.bytes("skipA")
	for _, p := range t.a {
		c.ADDQ(skip, p)
	}
	c.ADDQ(t.bytes("skipB"), t.b)
	c.JMP(operand.LabelRef("segment"))
	c.Label("sum")
}

// step adds one column of a times one row of b.
func (t *tile) step() {
	c := t.c
	row := make([]reg.VecVirtual, t.cols)
	for j := range row {
		row[j] = t.vec()
		c.VMOVUPS(operand.Mem{Base: t.b, Disp: j * int(t.l.width)}, row[j])
	}
	c.ADDQ(t.ldb, t.b)
	for i := range t.rows {
		v := t.vec()
		m := operand.Mem{Base: t.a[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = t.rs, uint8(i%3)
		}
		if t.l.size == 8 {
			c.VBROADCASTSD(m, v)
		} else {
			c.VBROADCASTSS(m, v)
		}
		for j := range row {
			if t.l.size == 8 {
				c.VFMADD231PD(row[j], v, t.acc[i][j])
			} else {
				c.VFMADD231PS(row[j], v, t.acc[i][j])
			}
		}
	}
	for _, p := range t.a {
		c.ADDQ(t.cs, p)
	}
}

// store writes the tile to c, or adds it to what is there.
func (t *tile) store() {
	c := t.c
	p, ldc := c.Load(c.Param("c"), c.GP64()), t.bytes("ldc")
	add := c.Load(c.Param("add"), c.GP64())
	c.TESTQ(add, add)
	c.JE(operand.LabelRef("store"))
	sum := c.GP64()
	c.MOVQ(p, sum)
	for i, row := range t.acc {
		for j, v := range row {
			m := operand.Mem{Base: sum, Disp: j * int(t.l.width)}
			if t.l.size == 8 {
				c.VADDPD(m, v, v)
			} else {
				c.VADDPS(m, v, v)
			}
		}
		if i < t.rows-1 {
			c.ADDQ(ldc, sum)
		}
	}
	c.Label("store")
	for i, row := range t.acc {
		for j, v := range row {
			c.VMOVUPS(v, operand.Mem{Base: p, Disp: j * int(t.l.width)})
		}
		if i < t.rows-1 {
			c.ADDQ(ldc, p)
		}
	}
	c.VZEROUPPER()
	c.RET()
}

// emitGather writes the function that copies n bytes from each of k rows.
func emitGather(c *build.Context, n int) {
	name := fmt.Sprintf("gather%d", n)
	declare(c, name, fmt.Sprintf("copies %d bytes from each of k rows that are ld bytes apart", n), "func(dst, src *byte, ld, k int)")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	ld, k := c.Load(c.Param("ld"), c.GP64()), c.Load(c.Param("k"), c.GP64())
	c.TESTQ(k, k)
	c.JE(operand.LabelRef("done"))
	c.Label("loop")
	type move struct {
		v  reg.Register
		at int
	}
	var moves []move
	for at := 0; at < n; {
		from := operand.Mem{Base: src, Disp: at}
		switch left := n - at; {
		case left >= 32:
			v := c.YMM()
			c.VMOVUPS(from, v)
			moves, at = append(moves, move{v, at}), at+32
		case left >= 16:
			v := c.XMM()
			c.VMOVUPS(from, v)
			moves, at = append(moves, move{v, at}), at+16
		default:
			v := c.GP64()
			c.MOVQ(from, v)
			moves, at = append(moves, move{v, at}), at+8
		}
	}
	for _, m := range moves {
		to := operand.Mem{Base: dst, Disp: m.at}
		if _, ok := m.v.(reg.GP); ok {
			c.MOVQ(m.v, to)
		} else {
			c.VMOVUPS(m.v, to)
		}
	}
	c.ADDQ(ld, src)
	c.ADDQ(operand.Imm(uint64(n)), dst)
	c.DECQ(k)
	c.JNE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

const transposeDoc = "makes %d rows of k elements, ld bytes apart, columns: step bytes apart are the rows of dst"

// transposeParams declares a transposing function and loads its parameters.
func transposeParams(c *build.Context, name, goType string, rows int) (dst, src, ld, step, k reg.Register) {
	declare(c, name, fmt.Sprintf(transposeDoc, rows), fmt.Sprintf("func(dst, src *%s, ld, step, k int)", goType))
	return c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64()),
		c.Load(c.Param("ld"), c.GP64()), c.Load(c.Param("step"), c.GP64()), c.Load(c.Param("k"), c.GP64())
}

// emitTranspose8 writes the function that transposes blocks of 8 by 8; k is a
// multiple of 8. Halves of two rows that are four apart are loaded into one
// register, so that no shuffle crosses the halves. The next eight rows are fetched
// meanwhile: each begins where the processor does not expect it.
func emitTranspose8(c *build.Context) {
	dst, src, ld, step, k := transposeParams(c, "sTranspose8AVX2", "float32", 8)
	ld3, step3, src4, dst4, next := c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	c.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, step3)
	c.SUBQ(operand.U8(8), k)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	c.LEAQ(operand.Mem{Base: src, Index: ld, Scale: 4}, src4)
	c.LEAQ(operand.Mem{Base: dst, Index: step, Scale: 4}, dst4)
	c.TESTQ(operand.U32(8), k) // a cache line has two blocks
	c.JNE(operand.LabelRef("block"))
	c.LEAQ(operand.Mem{Base: src, Index: ld, Scale: 8}, next)
	for range 2 {
		for _, m := range rowsAt(next, ld, ld3) {
			c.PREFETCHT0(m)
		}
		c.LEAQ(operand.Mem{Base: next, Index: ld, Scale: 4}, next)
	}
	c.Label("block")
	for half, to := range []reg.Register{dst, dst4} {
		var r [4]reg.VecVirtual
		low, high := rowsAt(src, ld, ld3), rowsAt(src4, ld, ld3)
		for i := range r {
			r[i] = c.YMM()
			low[i].Disp, high[i].Disp = 16*half, 16*half
			c.VMOVUPS(low[i], r[i].AsX())
			c.VINSERTF128(operand.U8(1), high[i], r[i], r[i])
		}
		out := transposeQuads(c, r)
		for i, m := range rowsAt(to, step, step3) {
			c.VMOVUPS(out[i], m)
		}
	}
	c.ADDQ(operand.U8(32), src)
	c.LEAQ(operand.Mem{Base: dst, Index: step, Scale: 8}, dst)
	c.SUBQ(operand.U8(8), k)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.VZEROUPPER()
	c.RET()
}

// transposeQuads transposes blocks of 4 by 4 in both halves of the registers.
func transposeQuads(c *build.Context, r [4]reg.VecVirtual) (out [4]reg.VecVirtual) {
	lo01, hi01, lo23, hi23 := c.YMM(), c.YMM(), c.YMM(), c.YMM()
	c.VUNPCKLPS(r[1], r[0], lo01)
	c.VUNPCKHPS(r[1], r[0], hi01)
	c.VUNPCKLPS(r[3], r[2], lo23)
	c.VUNPCKHPS(r[3], r[2], hi23)
	for i := range out {
		out[i] = c.YMM()
	}
	c.VUNPCKLPD(lo23, lo01, out[0])
	c.VUNPCKHPD(lo23, lo01, out[1])
	c.VUNPCKLPD(hi23, hi01, out[2])
	c.VUNPCKHPD(hi23, hi01, out[3])
	return out
}

// emitTranspose4 writes the function that transposes blocks of 4 by 4; k is a
// multiple of 4.
func emitTranspose4(c *build.Context) {
	dst, src, ld, step, k := transposeParams(c, "sTranspose4", "float32", 4)
	ld3, step3 := c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	c.LEAQ(operand.Mem{Base: step, Index: step, Scale: 2}, step3)
	c.SUBQ(operand.U8(4), k)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	var r [4]reg.VecVirtual
	for i, m := range rowsAt(src, ld, ld3) {
		r[i] = c.XMM()
		c.VMOVUPS(m, r[i])
	}
	lo01, hi01, lo23, hi23 := c.XMM(), c.XMM(), c.XMM(), c.XMM()
	c.VUNPCKLPS(r[1], r[0], lo01)
	c.VUNPCKHPS(r[1], r[0], hi01)
	c.VUNPCKLPS(r[3], r[2], lo23)
	c.VUNPCKHPS(r[3], r[2], hi23)
	out := [4]reg.VecVirtual{c.XMM(), c.XMM(), c.XMM(), c.XMM()}
	c.VMOVLHPS(lo23, lo01, out[0])
	c.VMOVHLPS(lo01, lo23, out[1])
	c.VMOVLHPS(hi23, hi01, out[2])
	c.VMOVHLPS(hi01, hi23, out[3])
	for i, m := range rowsAt(dst, step, step3) {
		c.VMOVUPS(out[i], m)
	}
	c.ADDQ(operand.U8(16), src)
	c.LEAQ(operand.Mem{Base: dst, Index: step, Scale: 4}, dst)
	c.SUBQ(operand.U8(4), k)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.RET()
}

func rowsAt(p, ld, ld3 reg.Register) [4]operand.Mem {
	return [4]operand.Mem{{Base: p}, {Base: p, Index: ld, Scale: 1}, {Base: p, Index: ld, Scale: 2}, {Base: p, Index: ld3, Scale: 1}}
}

// emitTranspose2 writes the function that transposes two rows; k is a multiple
// of the number of elements in 16 bytes.
func emitTranspose2(c *build.Context, name, goType string, size int) {
	dst, src, ld, step, k := transposeParams(c, name, goType, 2)
	turn := 16 / size
	c.SUBQ(operand.U8(uint64(turn)), k)
	c.JLT(operand.LabelRef("done"))
	c.Label("loop")
	r0, r1, lo, hi := c.XMM(), c.XMM(), c.XMM(), c.XMM()
	c.VMOVUPS(operand.Mem{Base: src}, r0)
	c.VMOVUPS(operand.Mem{Base: src, Index: ld, Scale: 1}, r1)
	if size == 8 {
		c.VUNPCKLPD(r1, r0, lo)
		c.VUNPCKHPD(r1, r0, hi)
		c.VMOVUPS(lo, operand.Mem{Base: dst})
		c.VMOVUPS(hi, operand.Mem{Base: dst, Index: step, Scale: 1})
	} else {
		c.VUNPCKLPS(r1, r0, lo)
		c.VUNPCKHPS(r1, r0, hi)
		c.VMOVLPS(lo, operand.Mem{Base: dst})
		c.VMOVHPS(lo, operand.Mem{Base: dst, Index: step, Scale: 1})
		c.LEAQ(operand.Mem{Base: dst, Index: step, Scale: 2}, dst)
		c.VMOVLPS(hi, operand.Mem{Base: dst})
		c.VMOVHPS(hi, operand.Mem{Base: dst, Index: step, Scale: 1})
	}
	c.LEAQ(operand.Mem{Base: dst, Index: step, Scale: 2}, dst)
	c.ADDQ(operand.U8(16), src)
	c.SUBQ(operand.U8(uint64(turn)), k)
	c.JGE(operand.LabelRef("loop"))
	c.Label("done")
	c.RET()
}
