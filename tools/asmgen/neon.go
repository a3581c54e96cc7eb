package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// neonFile is the arm64 assembly of one package, and its declarations.
type neonFile struct {
	pkg       string
	functions []*neonFunction
	constants []uint32 // each fills a register
}

// neonFunction is a function under way. Its general registers are given out in
// order and kept; vector registers are virtual, and one is free again after the
// last line that names it, unless it was kept.
type neonFunction struct {
	file      *neonFile
	name, doc string
	signature string
	places    map[string]string // parameters, as operands
	arguments int               // bytes of the parameters
	general   int               // registers given out
	pinned    []bool            // by virtual register
	lines     []neonLine
}

// vreg is a virtual vector register.
type vreg int

// neonLine is a line with the registers that it names, and its text, once they
// are known.
type neonLine struct {
	registers []vreg
	text      func(physical []int) string
}

// function begins a function; parameters are as in Go.
func (f *neonFile) function(name, doc, parameters string) *neonFunction {
	n := &neonFunction{file: f, name: name, doc: name + " " + doc + ".", signature: "func " + name + "(" + parameters + ")", places: map[string]string{}}
	var names []string
	for part := range strings.SplitSeq(parameters, ", ") {
		name, goType, typed := strings.Cut(part, " ")
		names = append(names, name)
		if !typed {
			continue
		}
		width := 8
		if goType == "float32" {
			width = 4
		}
		for _, name := range names {
			n.arguments = (n.arguments + width - 1) / width * width
			n.places[name] = fmt.Sprintf("%s+%d(FP)", name, n.arguments)
			n.arguments += width
		}
		names = nil
	}
	n.arguments = (n.arguments + 7) / 8 * 8
	f.functions = append(f.functions, n)
	return n
}

// line adds an instruction that names no vector register.
func (n *neonFunction) line(format string, a ...any) {
	text := "\t" + fmt.Sprintf(format, a...)
	n.lines = append(n.lines, neonLine{text: func([]int) string { return text }})
}

func (n *neonFunction) label(name string) {
	n.lines = append(n.lines, neonLine{text: func([]int) string { return name + ":" }})
}

// gp returns a general register that nothing else uses. R16 and above belong to
// the linker, the platform and the runtime, up to R18 and from R27.
func (n *neonFunction) gp() string {
	const last = 26
	r := n.general
	if n.general++; n.general == 16 {
		n.general = 19
	}
	if r > last {
		panic(n.name + ": no general register is left")
	}
	return fmt.Sprintf("R%d", r)
}

// param loads a parameter into a general register.
func (n *neonFunction) param(name string) string {
	r := n.gp()
	n.line("MOVD %s, %s", n.place(name), r)
	return r
}

func (n *neonFunction) place(name string) string {
	at, ok := n.places[name]
	if !ok {
		panic(n.name + " has no parameter " + name)
	}
	return at
}

func (n *neonFunction) vec() vreg {
	n.pinned = append(n.pinned, false)
	return vreg(len(n.pinned) - 1)
}

// kept is a vector register that is never given out again: of what is set
// before a loop and used in it.
func (n *neonFunction) kept() vreg {
	r := n.vec()
	n.pinned[r] = true
	return r
}

// op adds an instruction on registers, all of them whole.
func (n *neonFunction) op(name string, double bool, registers ...vreg) vreg {
	return n.opWith(name, double, -1, registers...)
}

// opWith is op with a last operand that is a number.
func (n *neonFunction) opWith(name string, double bool, number int, registers ...vreg) vreg {
	n.lines = append(n.lines, neonLine{registers, func(physical []int) string {
		if number >= 0 {
			physical = append(physical, number)
		}
		word, text := encode(name, double, physical...)
		return fmt.Sprintf("\tWORD $0x%08x // %s", word, text)
	}})
	return registers[0]
}

// load sets a register by one of FMOVQ, FMOVD and FMOVS, which move 16, 8 and 4
// bytes; the rest of the register becomes zero.
func (n *neonFunction) load(opcode, address string, r vreg) vreg {
	n.lines = append(n.lines, neonLine{[]vreg{r}, func(p []int) string { return fmt.Sprintf("\t%s %s, F%d", opcode, address, p[0]) }})
	return r
}

func (n *neonFunction) store(opcode string, r vreg, address string) {
	n.lines = append(n.lines, neonLine{[]vreg{r}, func(p []int) string { return fmt.Sprintf("\t%s F%d, %s", opcode, p[0], address) }})
}

// zero returns a register of zeros.
func (n *neonFunction) zero(r vreg) vreg {
	n.lines = append(n.lines, neonLine{[]vreg{r}, func(p []int) string { return fmt.Sprintf("\tVEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16", p[0]) }})
	return r
}

// table returns a general register that points to the constants.
func (n *neonFunction) table() string {
	r := n.gp()
	n.line("MOVD $constants<>(SB), %s", r)
	return r
}

// bits returns the operand of a constant of four equal elements, given the
// register that points to all of them.
func (n *neonFunction) bits(table string, bits uint32) string {
	i := slices.Index(n.file.constants, bits)
	if i < 0 {
		i = len(n.file.constants)
		n.file.constants = append(n.file.constants, bits)
	}
	return fmt.Sprintf("%d(%s)", 16*i, table)
}

func (n *neonFunction) float(table string, value float32) string {
	return n.bits(table, math.Float32bits(value))
}

// allocate returns the lines with physical registers. The first register of a
// line is its result, which may take the place of what is read there last.
func (n *neonFunction) allocate() []string {
	last := make([]int, len(n.pinned))
	for i, l := range n.lines {
		for _, r := range l.registers {
			last[r] = i
		}
	}
	at := make([]int, len(n.pinned)) // one more than the physical register
	var used [32]bool
	release := func(r vreg, line int) {
		if last[r] == line && !n.pinned[r] {
			used[at[r]-1] = false
		}
	}
	out := make([]string, len(n.lines))
	for i, l := range n.lines {
		physical := make([]int, len(l.registers))
		for k := len(physical) - 1; k >= 0; k-- {
			r := l.registers[k]
			if at[r] == 0 {
				at[r] = n.free(k == 0, &used)
			}
			physical[k] = at[r] - 1
			if k > 0 && r != l.registers[0] {
				release(r, i)
			}
		}
		if len(physical) > 0 {
			release(l.registers[0], i)
		}
		out[i] = l.text(physical)
	}
	return out
}

// free takes a physical register for a result, and returns one more than its
// number.
func (n *neonFunction) free(result bool, used *[32]bool) int {
	i := slices.Index(used[:], false)
	if i < 0 {
		panic(n.name + ": no vector register is left")
	}
	if !result {
		panic(n.name + ": a vector register is read before it is set")
	}
	used[i] = true
	return i + 1
}

const neonHeader = "// Code generated by command: go run ./asmgen ... DO NOT EDIT.\n\n//go:build arm64 && !noasm\n\n"

// assembly returns the file of assembly.
func (f *neonFile) assembly() []byte {
	var b bytes.Buffer
	b.WriteString(neonHeader + "#include \"textflag.h\"\n")
	for _, n := range f.functions {
		fmt.Fprintf(&b, "\n// %s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", n.signature, n.name, n.arguments)
		for _, line := range n.allocate() {
			b.WriteString(line + "\n")
		}
	}
	if len(f.constants) > 0 {
		b.WriteByte('\n')
		for i, bits := range f.constants {
			for half := range 2 {
				fmt.Fprintf(&b, "DATA constants<>+%d(SB)/8, $0x%08[2]x%08[2]x\n", 16*i+8*half, bits)
			}
		}
		fmt.Fprintf(&b, "GLOBL constants<>(SB), RODATA|NOPTR, $%d\n", 16*len(f.constants))
	}
	return b.Bytes()
}

// declarations returns the file of Go declarations.
func (f *neonFile) declarations() []byte {
	var b bytes.Buffer
	b.WriteString(neonHeader + "package " + f.pkg + "\n")
	for _, n := range f.functions {
		fmt.Fprintf(&b, "\n// %s\n//\n//go:noescape\n%s\n", n.doc, n.signature)
	}
	return b.Bytes()
}

// offset is the operand of so many bytes after what a register points to.
func offset(register string, bytes int) string {
	if bytes == 0 {
		return "(" + register + ")"
	}
	return fmt.Sprintf("%d(%s)", bytes, register)
}
