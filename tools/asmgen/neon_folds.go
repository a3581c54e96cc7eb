package main

import "fmt"

// emitNEONFolds emits what emitFolds does.
func emitNEONFolds(f *neonFile) {
	emitNEONLanes(f, "sLanes", "adds element i of x to lane i%16", false)
	emitNEONLanes(f, "sSquareLanes", "adds the square of element i of x to lane i%16", true)
	emitNEONMax(f)
}

// fold emits a loop over 16 elements at a time, with so many registers of lanes
// in use; each gets four of the elements of a turn.
func (n *neonFunction) fold(lanes []vreg, turn func(i int, x vreg)) {
	to, x, left := n.param("lanes"), n.param("x"), n.param("n")
	for i, r := range lanes {
		n.load("FMOVQ", offset(to, 16*i), r)
	}
	n.line("SUBS $16, %[1]s, %[1]s", left)
	n.line("BLT done")
	n.label("loop")
	for i := range 4 {
		turn(i, n.load("FMOVQ", offset(x, 16*i), n.vec()))
	}
	n.line("ADD $64, %[1]s, %[1]s", x)
	n.line("SUBS $16, %[1]s, %[1]s", left)
	n.line("BGE loop")
	n.label("done")
	for i, r := range lanes {
		n.store("FMOVQ", r, offset(to, 16*i))
	}
	n.line("RET")
}

// emitNEONLanes emits a function that adds to 16 lanes of float64.
func emitNEONLanes(f *neonFile, name, doc string, square bool) {
	n := f.function(name, doc, "lanes *float64, x *float32, n int")
	lanes := make([]vreg, 8)
	for i := range lanes {
		lanes[i] = n.kept()
	}
	n.fold(lanes, func(i int, x vreg) {
		for half, widen := range []string{"fcvtl", "fcvtl2"} {
			v := n.op(widen, false, n.vec(), x)
			if square {
				n.op("fmul", true, v, v, v)
			}
			n.op("fadd", true, lanes[2*i+half], lanes[2*i+half], v)
		}
	})
}

// emitNEONMax emits the search for the largest of each lane.
func emitNEONMax(f *neonFile) {
	n := f.function("sMaxLanes", "sets lane i%16 to element i of x where that is larger or no number", "lanes, x *float32, n int")
	lanes := []vreg{n.kept(), n.kept(), n.kept(), n.kept()}
	n.fold(lanes, func(i int, x vreg) { n.op("fmax", false, lanes[i], lanes[i], x) })
}

// emitNEONRows emits what emitRows does.
func emitNEONRows(f *neonFile) {
	for columns := 1; columns <= rowsColumns; columns++ {
		emitNEONAddRows(f, columns)
	}
}

func emitNEONAddRows(f *neonFile, columns int) {
	n := f.function(fmt.Sprintf("sAddRows%d", columns), fmt.Sprintf(addRowsDoc, columns), "d, y, s *float32, to, from *int64, ld, count int")
	d, y, s := n.param("d"), n.param("y"), n.param("s")
	to, from, ld, count := n.param("to"), n.param("from"), n.param("ld"), n.param("count")
	source, target := n.gp(), n.gp()
	n.line("CBZ %s, done", count)
	n.label("loop")
	n.line("MOVD.P 16(%s), %s", from, source)
	n.line("MADD %s, %s, %s, %s", ld, y, source, source)
	n.line("MOVD.P 16(%s), %s", to, target)
	n.line("MADD %s, %s, %s, %s", ld, d, target, target)
	scale := n.load("FMOVS", offset(s, 0), n.vec())
	n.line("ADD $4, %[1]s, %[1]s", s)
	for at := 0; at < columns; {
		opcode, width := piece(columns - at)
		v := n.load(opcode, offset(source, 4*at), n.vec())
		sum := n.load(opcode, offset(target, 4*at), n.vec())
		n.opWith("fmul.lane", false, 0, v, v, scale)
		n.store(opcode, n.op("fadd", false, sum, sum, v), offset(target, 4*at))
		at += width
	}
	n.line("SUB $1, %[1]s, %[1]s", count)
	n.line("CBNZ %s, loop", count)
	n.label("done")
	n.line("RET")
}

// piece returns how the next of so many elements are moved, and their number.
func piece(left int) (opcode string, width int) {
	switch {
	case left >= 4:
		return "FMOVQ", 4
	case left >= 2:
		return "FMOVD", 2
	}
	return "FMOVS", 1
}
