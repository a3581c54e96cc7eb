package main

import "strings"

// emitNEONVec emits what emitVec does.
func emitNEONVec(f *neonFile) {
	for _, l := range loops {
		body := func(v *neonVectors) { l.body(v) }
		emitNEONLoop(f, l, body, false, neonTurns)
		emitNEONLoop(f, l, body, true, neonTurns)
	}
	emitNEONFunctions(f)
	emitNEONFolds(f)
	emitNEONRows(f)
	emitNEONWinograd(f)
}

// neonTurns is how many registers a turn of a loop of few instructions does.
const neonTurns = 4

// neonVectors are the registers of a turn of a loop: arithmetic on NEON.
type neonVectors struct {
	n       *neonFunction
	double  bool
	at      map[string]string // general registers that point to the slices
	scalars map[string]vreg
	offset  int    // of the register under way, in bytes
	table   string // the general register that points to the constants
}

// emitNEONLoop emits a loop over so many registers at a time, then one for the
// rest.
func emitNEONLoop(f *neonFile, l loop, body func(v *neonVectors), double bool, turns int) {
	goType, prefix, elements := "float32", "s", 4
	if double {
		goType, prefix, elements = "float64", "d", 2
	}
	parameters := strings.Join(strings.Fields(l.slices), ", ") + " *" + goType
	if l.scalars != "" {
		parameters += ", " + strings.Join(strings.Fields(l.scalars), ", ") + " " + goType
	}
	n := f.function(prefix+strings.ToUpper(l.name[:1])+l.name[1:], l.doc, parameters+", n int")
	v := &neonVectors{n: n, double: double, at: map[string]string{}, scalars: map[string]vreg{}}
	slices := strings.Fields(l.slices)
	for _, s := range slices {
		v.at[s] = n.param(s)
	}
	for _, s := range strings.Fields(l.scalars) {
		v.scalars[s] = v.spread(s)
	}
	left := n.param("n")
	if turns == 1 { // a function
		v.table = n.table()
	}
	for _, turn := range []struct {
		label, next string
		registers   int
	}{{"turn", "rest", turns}, {"single", "done", 1}} {
		if turn.label == "turn" && turns == 1 {
			continue
		}
		n.line("SUBS $%d, %s, %s", turn.registers*elements, left, left)
		n.line("BLT %s", turn.next)
		n.label(turn.label)
		for i := range turn.registers {
			v.offset = 16 * i
			body(v)
		}
		for _, s := range slices {
			n.line("ADD $%d, %s, %s", 16*turn.registers, v.at[s], v.at[s])
		}
		n.line("SUBS $%d, %s, %s", turn.registers*elements, left, left)
		n.line("BGE %s", turn.label)
		n.label(turn.next)
		if turn.label == "turn" {
			n.line("ADD $%d, %s, %s", turn.registers*elements, left, left)
		}
	}
	n.line("RET")
}

// spread loads a parameter into all elements of a register.
func (v *neonVectors) spread(name string) vreg {
	opcode := "FMOVS"
	if v.double {
		opcode = "FMOVD"
	}
	r := v.n.kept()
	v.n.load(opcode, v.n.place(name), r)
	return v.n.opWith("dup", v.double, 0, r, r)
}

func (v *neonVectors) address(slice string) string { return offset(v.at[slice], v.offset) }

func (v *neonVectors) load(slice string) value { return v.n.load("FMOVQ", v.address(slice), v.n.vec()) }

func (v *neonVectors) store(slice string, x value) { v.n.store("FMOVQ", x.(vreg), v.address(slice)) }

func (v *neonVectors) scalar(name string) value { return v.scalars[name] }

// op returns the result of an instruction in a register of its own.
func (v *neonVectors) op(name string, operands ...value) vreg {
	registers := []vreg{v.n.vec()}
	for _, o := range operands {
		registers = append(registers, o.(vreg))
	}
	return v.n.op(name, v.double, registers...)
}

func (v *neonVectors) add(x, y value) value { return v.op("fadd", x, y) }
func (v *neonVectors) sub(x, y value) value { return v.op("fsub", x, y) }
func (v *neonVectors) mul(x, y value) value { return v.op("fmul", x, y) }
func (v *neonVectors) div(x, y value) value { return v.op("fdiv", x, y) }
func (v *neonVectors) sqrt(x value) value   { return v.op("fsqrt", x) }
func (v *neonVectors) floor(x value) value  { return v.op("frintm", x) }

// bitwise is op of an instruction that knows no elements.
func (v *neonVectors) bitwise(name string, x, y value) vreg {
	return v.n.op(name, false, v.n.vec(), x.(vreg), y.(vreg))
}

// rectified clears what is below zero; fmax would make minus zero plus zero.
func (v *neonVectors) rectified(x value) value {
	return v.bitwise("bic", x, v.op("fcmgt", v.n.zero(v.n.vec()), x))
}

func (v *neonVectors) positive(x value) value { return v.op("fcmgt", x, v.n.zero(v.n.vec())) }

func (v *neonVectors) above(x, y value) value { return v.op("fcmgt", x, y) }

func (v *neonVectors) equal(x, y value) value { return v.op("fcmeq", x, y) }

func (v *neonVectors) and(x, mask value) value { return v.bitwise("and", x, mask) }

func (v *neonVectors) where(mask, x, y value) value {
	return v.n.op("bsl", false, mask.(vreg), x.(vreg), y.(vreg))
}
