package main

import "slices"

// emitNEONWinograd emits what emitWinograd does.
func emitNEONWinograd(f *neonFile) {
	for _, s := range sandwiches {
		emitNEONSandwich(f, s)
	}
}

// neonSandwich has the registers of a function under way.
type neonSandwich struct {
	n    *neonFunction
	half vreg
}

// emitNEONSandwich emits the function for all channels of so many tiles. The
// matrix of one register of channels is loaded at once.
func emitNEONSandwich(f *neonFile, s sandwich) {
	n := f.function("sWinograd"+s.name+"NEON", s.doc(), "d *float32, toRow, toCol, toTile int, x *float32, row, col, tile, channels, tiles int")
	w := &neonSandwich{n: n, half: n.kept()}
	n.load("FMOVQ", n.float(n.table(), .5), w.half)
	d, toRow, toCol, toTile := n.param("d"), n.param("toRow"), n.param("toCol"), n.param("toTile")
	x, row, col, tile := n.param("x"), n.param("row"), n.param("col"), n.param("tile")
	channels, tiles := n.param("channels"), n.param("tiles")
	source, target, line, at, count := n.gp(), n.gp(), n.gp(), n.gp(), n.gp()
	n.label("tile")
	n.line("MOVD %s, %s", x, source)
	n.line("MOVD %s, %s", d, target)
	n.line("MOVD %s, %s", channels, count)
	n.label("channel")
	n.line("MOVD %s, %s", source, line)
	in := make([][]vreg, len(s.l[0])) // by columns
	for range s.l[0] {
		n.line("MOVD %s, %s", line, at)
		for j := range in {
			in[j] = append(in[j], n.load("FMOVQ", offset(at, 0), n.vec()))
			n.line("ADD %[2]s, %[1]s, %[1]s", at, col)
		}
		n.line("ADD %[2]s, %[1]s, %[1]s", line, row)
	}
	n.line("MOVD %s, %s", target, line)
	for _, factors := range s.l {
		t := make([]vreg, len(in))
		for j := range t {
			t[j] = w.sum(factors, in[j])
		}
		n.line("MOVD %s, %s", line, at)
		for _, factors := range s.l {
			n.store("FMOVQ", w.sum(factors, t), offset(at, 0))
			n.line("ADD %[2]s, %[1]s, %[1]s", at, toCol)
		}
		n.line("ADD %[2]s, %[1]s, %[1]s", line, toRow)
	}
	n.line("ADD $16, %[1]s, %[1]s", source)
	n.line("ADD $16, %[1]s, %[1]s", target)
	n.line("SUBS $4, %[1]s, %[1]s", count)
	n.line("BGT channel")
	n.line("ADD %[2]s, %[1]s, %[1]s", x, tile)
	n.line("ADD %[2]s, %[1]s, %[1]s", d, toTile)
	n.line("SUBS $1, %[1]s, %[1]s", tiles)
	n.line("BNE tile")
	n.line("RET")
}

// sum returns the sum of the vectors with whole factors and half of the sum of
// those with half ones. Its register is that of a vector if there is only one.
func (f *neonSandwich) sum(factors []int, x []vreg) vreg {
	whole, someWhole := f.signed(factors, x, 2)
	half, someHalf := f.signed(factors, x, 1)
	if !someHalf {
		return whole
	}
	half = f.n.op("fmul", false, f.n.vec(), half, f.half)
	if someWhole {
		half = f.n.op("fadd", false, half, whole, half)
	}
	return half
}

// signed adds up the vectors whose factor is plus or minus size, in the order of
// sandwichFunction.signed, and reports whether there are any.
func (f *neonSandwich) signed(factors []int, x []vreg, size int) (acc vreg, some bool) {
	first := slices.Index(factors, size)
	if first >= 0 {
		acc, some = x[first], true
	}
	for k, factor := range factors {
		if k == first || factor != size && factor != -size {
			continue
		}
		if !some {
			acc, some = f.n.zero(f.n.vec()), true
		}
		name := "fadd"
		if factor < 0 {
			name = "fsub"
		}
		acc = f.n.op(name, false, f.n.vec(), acc, x[k])
	}
	return acc, some
}
