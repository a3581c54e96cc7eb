package main

import "fmt"

// neonRows and neonColumns are the largest tile of the product, in rows and
// registers; its sums and one row of b are in registers. neonNarrowRows is the
// height of one of half as many columns.
const (
	neonRows, neonColumns = 6, 4
	neonNarrowRows        = 12
)

// emitNEONBLAS emits what emitBLAS does.
func emitNEONBLAS(f *neonFile) {
	for rows := 1; rows <= neonRows; rows++ {
		emitNEONTile(f, fmt.Sprintf("sgemmTile%dNEON", rows), false, rows, neonColumns)
	}
	for rows := 1; rows <= neonNarrowRows; rows++ {
		emitNEONTile(f, fmt.Sprintf("sgemmNarrow%dNEON", rows), false, rows, neonColumns/2)
	}
	for rows := 1; rows <= neonRows; rows++ {
		emitNEONTile(f, fmt.Sprintf("dgemmTile%dNEON", rows), true, rows, neonColumns)
	}
	for _, bytes := range []int{24, 48, 64} {
		emitNEONGather(f, bytes)
	}
	emitNEONTranspose4(f)
	emitNEONTranspose2(f, "sTranspose2", "float32", false)
	emitNEONTranspose2(f, "dTranspose2", "float64", true)
}

// neonTile has the registers of a function that computes a tile.
type neonTile struct {
	n      *neonFunction
	double bool

	b, ldb, cs string
	a          []string // pointers to the rows
	at         string   // bytes from there to the element under way
	acc        [][]vreg
}

// emitNEONTile writes the function that computes a tile of rows by registers of
// a product and keeps it in registers for the whole inner dimension.
func emitNEONTile(f *neonFile, name string, double bool, rows, columns int) {
	goType, elements := "float32", 4
	if double {
		goType, elements = "float64", 2
	}
	n := f.function(name, fmt.Sprintf("computes %d by %d elements of a product", rows, columns*elements),
		fmt.Sprintf("k int, a *%[1]s, rs, cs int, b *%[1]s, ldb int, c *%[1]s, ldc, add, segments, skipA, skipB int", goType))
	t := &neonTile{n: n, double: double, acc: make([][]vreg, rows)}
	t.load(columns)
	t.multiply()
	t.save()
}

// bytes loads a count of elements as a count of bytes.
func (t *neonTile) bytes(name string) string {
	r := t.n.param(name)
	t.n.line("LSL $%[2]d, %[1]s, %[1]s", r, map[bool]int{false: 2, true: 3}[t.double])
	return r
}

func (t *neonTile) load(columns int) {
	n := t.n
	t.a = append(t.a, n.param("a"))
	rs := t.bytes("rs")
	t.cs, t.b, t.ldb, t.at = t.bytes("cs"), n.param("b"), t.bytes("ldb"), n.gp()
	n.line("MOVD $0, %s", t.at)
	for i := range t.acc {
		if i > 0 {
			p := n.gp()
			n.line("ADD %s, %s, %s", rs, t.a[i-1], p)
			t.a = append(t.a, p)
		}
		for range columns {
			t.acc[i] = append(t.acc[i], n.zero(n.kept()))
		}
	}
}

// multiply goes through the inner dimension: k steps in each segment, between
// which are skipA and skipB elements that are left out.
func (t *neonTile) multiply() {
	n := t.n
	segments, k, skip := n.param("segments"), n.gp(), n.gp()
	n.label("segment")
	n.line("MOVD %s, %s", n.place("k"), k)
	n.line("SUBS $%[2]d, %[1]s, %[1]s", k, unroll)
	n.line("BLT tail")
	n.label("loop")
	for range unroll {
		t.step()
	}
	n.line("SUBS $%[2]d, %[1]s, %[1]s", k, unroll)
	n.line("BGE loop")
	n.label("tail")
	n.line("ADDS $%[2]d, %[1]s, %[1]s", k, unroll)
	n.line("BEQ done")
	n.label("single")
	t.step()
	n.line("SUBS $1, %[1]s, %[1]s", k)
	n.line("BNE single")
	n.label("done")
	n.line("SUBS $1, %[1]s, %[1]s", segments)
	n.line("BEQ sum")
	for _, s := range []struct{ place, to string }{{n.place("skipA"), t.at}, {n.place("skipB"), t.b}} {
		n.line("MOVD %s, %s", s.place, skip)
		n.line("ADD %s<<%d, %[3]s, %[3]s", skip, map[bool]int{false: 2, true: 3}[t.double], s.to)
	}
	n.line("B segment")
	n.label("sum")
}

// step adds one column of a times one row of b.
func (t *neonTile) step() {
	n := t.n
	opcode := map[bool]string{false: "FMOVS", true: "FMOVD"}[t.double]
	row := make([]vreg, len(t.acc[0]))
	for j := range row {
		row[j] = n.load("FMOVQ", offset(t.b, 16*j), n.vec())
	}
	n.line("ADD %[2]s, %[1]s, %[1]s", t.b, t.ldb)
	for i, acc := range t.acc {
		v := n.load(opcode, fmt.Sprintf("(%s)(%s)", t.a[i], t.at), n.vec())
		for j := range acc {
			n.opWith("fmla.lane", t.double, 0, acc[j], row[j], v)
		}
	}
	n.line("ADD %[2]s, %[1]s, %[1]s", t.at, t.cs)
}

// save writes the tile to c, or adds it to what is there.
func (t *neonTile) save() {
	n := t.n
	p, ldc, add := n.param("c"), t.bytes("ldc"), n.param("add")
	n.line("CBZ %s, store", add)
	sum := t.at // no longer needed
	n.line("MOVD %s, %s", p, sum)
	for _, row := range t.acc {
		for j, v := range row {
			n.op("fadd", t.double, v, v, n.load("FMOVQ", offset(sum, 16*j), n.vec()))
		}
		n.line("ADD %[2]s, %[1]s, %[1]s", sum, ldc)
	}
	n.label("store")
	for _, row := range t.acc {
		for j, v := range row {
			n.store("FMOVQ", v, offset(p, 16*j))
		}
		n.line("ADD %[2]s, %[1]s, %[1]s", p, ldc)
	}
	n.line("RET")
}
