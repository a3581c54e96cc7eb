package main

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sandwich is Y = L X L', of small matrices whose elements are vectors of
// channels. Factors are in halves.
type sandwich struct {
	name string
	l    [][]int
}

// sandwiches are those of Winograd's F(2x2,3x3); internal/vec has the same
// table.
var sandwiches = []sandwich{
	{"Input", [][]int{{2, 0, -2, 0}, {0, 2, 2, 0}, {0, -2, 2, 0}, {0, 2, 0, -2}}},
	{"Filter", [][]int{{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}}},
	{"Output", [][]int{{2, 2, 2, 0}, {0, 2, -2, -2}}},
	{"OutputGrad", [][]int{{2, 0}, {2, 2}, {2, -2}, {0, -2}}},
	{"FilterGrad", [][]int{{2, 1, 1, 0}, {0, 1, -1, 0}, {0, 1, 1, 2}}},
}

// doc says what the function does.
func (s sandwich) doc() string {
	to, from := len(s.l), len(s.l[0])
	return fmt.Sprintf("makes %d by %d vectors of %d by %d, in each tile. Strides are in bytes, channels in whole registers", to, to, from, from)
}

func emitWinograd(c *build.Context) {
	for _, s := range sandwiches {
		emitSandwich(c, s, 32, "AVX2")
		emitSandwich(c, s, 64, "AVX512")
	}
}

// sandwichFunction has the registers of a function under way.
type sandwichFunction struct {
	c      *build.Context
	s      sandwich
	width  int // bytes of a register
	half   reg.VecVirtual
	source [4]reg.Register // a pointer to each row
	col    reg.Register
	col3   reg.Register

	target, toRow, toCol, toCol3, back reg.Register
}

// param returns the place of a parameter.
func param(c *build.Context, name string) operand.Mem {
	b, err := c.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// emitSandwich emits the function for all channels of so many tiles.
func emitSandwich(c *build.Context, s sandwich, width int, suffix string) {
	name := "sWinograd" + s.name + suffix
	declare(c, name, s.doc(), "func(d *float32, toRow, toCol, toTile int, x *float32, row, col, tile int, channels, tiles int)")
	f := &sandwichFunction{c: c, s: s, width: width}
	f.strides()
	c.Label("tile")
	f.rows()
	count := c.GP64()
	c.MOVQ(param(c, "channels"), count)
	c.Label("channel")
	f.vectors()
	for k := range s.l[0] {
		c.ADDQ(operand.U8(uint64(width)), f.source[k])
	}
	c.ADDQ(f.back, f.target)
	c.SUBQ(operand.U8(uint64(width/4)), count)
	c.JG(operand.LabelRef("channel"))
	step := c.GP64()
	c.MOVQ(param(c, "tile"), step)
	c.ADDQ(step, param(c, "x"))
	c.MOVQ(param(c, "toTile"), step)
	c.ADDQ(step, param(c, "d"))
	c.DECQ(param(c, "tiles"))
	c.JNE(operand.LabelRef("tile"))
	c.VZEROUPPER()
	c.RET()
}

func (f *sandwichFunction) vec() reg.VecVirtual {
	if f.width == 64 {
		return f.c.ZMM()
	}
	return f.c.YMM()
}

// strides loads what is the same in all tiles.
func (f *sandwichFunction) strides() {
	c := f.c
	f.col, f.toRow, f.toCol = c.Load(c.Param("col"), c.GP64()), c.Load(c.Param("toRow"), c.GP64()), c.Load(c.Param("toCol"), c.GP64())
	f.col3, f.toCol3, f.back = c.GP64(), c.GP64(), c.GP64()
	c.LEAQ(operand.Mem{Base: f.col, Index: f.col, Scale: 2}, f.col3)
	c.LEAQ(operand.Mem{Base: f.toCol, Index: f.toCol, Scale: 2}, f.toCol3)
	c.MOVQ(operand.U32(uint32(f.width)), f.back)
	for range len(f.s.l) - 1 {
		c.SUBQ(f.toRow, f.back)
	}
	f.half = f.vec()
	bits := c.GP32()
	c.MOVL(operand.U32(0x3f000000), bits)
	x := c.XMM()
	c.MOVD(bits, x)
	c.VBROADCASTSS(x, f.half)
}

// rows makes the pointers of a tile.
func (f *sandwichFunction) rows() {
	c := f.c
	f.target = c.GP64()
	c.MOVQ(param(c, "d"), f.target)
	for k := range f.s.l[0] {
		f.source[k] = c.GP64()
		if k == 0 {
			c.MOVQ(param(c, "x"), f.source[0])
			continue
		}
		c.MOVQ(f.source[k-1], f.source[k])
		c.ADDQ(param(c, "row"), f.source[k])
	}
}

// column is the address of a column of a row.
func column(row, col, col3 reg.Register, j int) operand.Mem {
	switch j {
	case 0:
		return operand.Mem{Base: row}
	case 3:
		return operand.Mem{Base: row, Index: col3, Scale: 1}
	}
	return operand.Mem{Base: row, Index: col, Scale: uint8(j)}
}

// vectors computes the matrix of one register of channels.
func (f *sandwichFunction) vectors() {
	n := len(f.s.l[0])
	for i, factors := range f.s.l {
		t := make([]operand.Op, n)
		for j := range t {
			x := make([]operand.Op, n)
			for k := range x {
				x[k] = column(f.source[k], f.col, f.col3, j)
			}
			t[j] = f.sum(factors, x)
		}
		for m, factors := range f.s.l {
			f.c.VMOVUPS(f.sum(factors, t), column(f.target, f.toCol, f.toCol3, m))
		}
		if i < len(f.s.l)-1 {
			f.c.ADDQ(f.toRow, f.target)
		}
	}
}

// sum returns the sum of the vectors with whole factors and half of the sum of
// those with half ones.
func (f *sandwichFunction) sum(factors []int, x []operand.Op) operand.Op {
	whole, half := f.signed(factors, x, 2), f.signed(factors, x, 1)
	if half == nil {
		return whole
	}
	sum := f.vec()
	f.c.VMULPS(f.half, half, sum)
	if whole != nil {
		f.c.VADDPS(sum, whole, sum)
	}
	return sum
}

// signed adds up the vectors whose factor is plus or minus size, in order but
// for the first to be added, which comes first.
func (f *sandwichFunction) signed(factors []int, x []operand.Op, size int) operand.Op {
	first := slices.Index(factors, size)
	var acc operand.Op
	if first >= 0 {
		acc = f.loaded(x[first])
	}
	for k, factor := range factors {
		if k == first || factor != size && factor != -size {
			continue
		}
		if acc == nil {
			acc = f.zero()
		}
		sum := f.vec()
		if factor > 0 {
			f.c.VADDPS(x[k], acc, sum)
		} else {
			f.c.VSUBPS(x[k], acc, sum)
		}
		acc = sum
	}
	return acc
}

// loaded returns the register that holds a vector.
func (f *sandwichFunction) loaded(x operand.Op) operand.Op {
	if _, ok := x.(operand.Mem); !ok {
		return x
	}
	v := f.vec()
	f.c.VMOVUPS(x, v)
	return v
}

func (f *sandwichFunction) zero() reg.VecVirtual {
	v := f.vec()
	if f.width == 64 {
		f.c.VPXORD(v, v, v)
	} else {
		f.c.VXORPS(v, v, v)
	}
	return v
}
