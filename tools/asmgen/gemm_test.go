package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// Not every machine has AVX-512, so the tiles are also run on a machine made of
// Go: it knows the few instructions that emitTile uses, and fails on others.

// machine executes one function on a small memory.
type machine struct {
	t      *testing.T
	params map[int]int64 // by offset from the frame pointer
	gp     map[reg.ID]int64
	vec    map[reg.ID][]byte
	memory []byte
	flag   int64 // the result that conditional jumps look at
	size   int   // bytes of an element
	paired bool  // its elements are pairs of bfloat16s
}

func (m *machine) address(o operand.Mem) int64 {
	a := m.gp[m.id(o.Base)] + int64(o.Disp)
	if o.Index != nil {
		a += m.gp[m.id(o.Index)] * int64(o.Scale)
	}
	return a
}

// id names a whole vector register, whatever part of it an operand is.
func (m *machine) id(r reg.Register) reg.ID {
	p := reg.ToPhysical(r)
	if p == nil {
		m.t.Fatalf("register %v was not allocated", r)
	}
	return reg.ID(uint32(p.Kind())<<16 | uint32(p.PhysicalIndex()))
}

func (m *machine) integer(o operand.Op) int64 {
	switch o := o.(type) {
	case operand.Mem:
		return m.params[o.Disp]
	case reg.Register:
		return m.gp[m.id(o)]
	case operand.U8:
		return int64(o)
	}
	m.t.Fatalf("operand %v (%T) is no integer", o, o)
	return 0
}

// vector returns a source as elements; n is the bytes of the register.
func (m *machine) vector(o operand.Op, n int) []byte {
	switch o := o.(type) {
	case operand.Mem:
		a := m.address(o)
		if a < 0 || a+int64(n) > int64(len(m.memory)) {
			m.t.Fatalf("%d bytes at %d are outside the memory of %d", n, a, len(m.memory))
		}
		return m.memory[a : a+int64(n)]
	case reg.Register:
		if v := m.vec[m.id(o)]; len(v) >= n {
			return v[:n]
		}
		m.t.Fatalf("register %v is read before it is written", o)
	}
	m.t.Fatalf("operand %v is no vector", o)
	return nil
}

func (m *machine) element(v []byte, i int) float64 {
	if m.size == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(v[8*i:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(v[4*i:])))
}

func (m *machine) setElement(v []byte, i int, x float64) {
	if m.size == 8 {
		binary.LittleEndian.PutUint64(v[8*i:], math.Float64bits(x))
		return
	}
	binary.LittleEndian.PutUint32(v[4*i:], math.Float32bits(float32(x)))
}

// run executes a function to its RET.
func (m *machine) run(f *ir.Function) {
	labels := map[string]int{}
	for i, n := range f.Nodes {
		if l, ok := n.(ir.Label); ok {
			labels[string(l)] = i
		}
	}
	for pc, steps := 0, 0; pc < len(f.Nodes); pc++ {
		if steps++; steps > 1<<20 {
			m.t.Fatal("the function does not end")
		}
		in, ok := f.Nodes[pc].(*ir.Instruction)
		if !ok {
			continue
		}
		if in.Opcode == "RET" {
			return
		}
		if target := in.TargetLabel(); target != nil {
			if m.jumps(in.Opcode) {
				pc = labels[string(*target)]
			}
			continue
		}
		switch {
		case in.Opcode == "PREFETCHT0":
		case strings.HasPrefix(in.Opcode, "V"):
			m.vectorOp(in)
		default:
			m.integerOp(in)
		}
	}
	m.t.Fatal("the function ran past its end")
}

func (m *machine) jumps(opcode string) bool {
	switch opcode {
	case "JLT":
		return m.flag < 0
	case "JGE":
		return m.flag >= 0
	case "JE", "JEQ":
		return m.flag == 0
	case "JNE":
		return m.flag != 0
	case "JMP":
		return true
	}
	m.t.Fatalf("jump %s is not known", opcode)
	return false
}

func (m *machine) integerOp(in *ir.Instruction) {
	o := in.Operands
	last := m.id(o[len(o)-1].(reg.Register))
	switch in.Opcode {
	case "MOVQ":
		m.gp[last] = m.integer(o[0])
		return
	case "LEAQ":
		m.gp[last] = m.address(o[0].(operand.Mem))
		return
	case "TESTQ":
		m.flag = m.gp[last] & m.integer(o[0])
		return
	case "SHLQ":
		m.gp[last] <<= m.integer(o[0])
	case "ADDQ":
		m.gp[last] += m.integer(o[0])
	case "SUBQ":
		m.gp[last] -= m.integer(o[0])
	case "DECQ":
		m.gp[last]--
	default:
		m.t.Fatalf("instruction %s is not known", in.Opcode)
	}
	m.flag = m.gp[last]
}

func (m *machine) vectorOp(in *ir.Instruction) {
	if in.Opcode == "VZEROUPPER" {
		return
	}
	o := in.Operands
	n := m.width(o)
	out := make([]byte, n)
	switch in.Opcode {
	case "VMOVUPS":
		if to, ok := o[1].(operand.Mem); ok {
			copy(m.vector(to, n), m.vector(o[0], n))
			return
		}
		copy(out, m.vector(o[0], n))
	case "VXORPS", "VPXORD": // only ever of a register with itself
		if o[0] != o[1] {
			m.t.Fatalf("%s of different registers", in.Opcode)
		}
	case "VBROADCASTSS", "VBROADCASTSD":
		for i := range n / m.size {
			m.setElement(out, i, m.element(m.vector(o[0], m.size), 0))
		}
	case "VADDPS", "VADDPD":
		x, y := m.vector(o[0], n), m.vector(o[1], n)
		for i := range n / m.size {
			m.setElement(out, i, m.element(x, i)+m.element(y, i))
		}
	case "VFMADD231PS", "VFMADD231PD":
		x, y, z := m.vector(o[0], n), m.vector(o[1], n), m.vector(o[2], n)
		for i := range n / m.size {
			if m.paired {
				m.setElement(out, i, m.multiplyPair(x, y, z, i))
				continue
			}
			m.setElement(out, i, math.FMA(m.element(x, i), m.element(y, i), m.element(z, i)))
		}
	default:
		m.t.Fatalf("instruction %s is not known", in.Opcode)
	}
	m.vec[m.id(o[len(o)-1].(reg.Register))] = out
}

// width returns the bytes of an instruction's registers.
func (m *machine) width(ops []operand.Op) int {
	for _, o := range ops {
		if r, ok := o.(reg.Register); ok {
			return int(r.Size())
		}
	}
	m.t.Fatal("an instruction without registers")
	return 0
}

// compileBLAS returns the functions of internal/blas by name.
func compileBLAS(t *testing.T) map[string]*ir.Function {
	t.Helper()
	c := build.NewContext()
	emitBLAS(c)
	file, err := c.Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := pass.Compile.Execute(file); err != nil {
		t.Fatal(err)
	}
	list := map[string]*ir.Function{}
	for _, f := range file.Functions() {
		list[f.Name] = f
	}
	return list
}

func TestTiles(t *testing.T) {
	functions := compileBLAS(t)
	for _, l := range []lanes{{"sgemm", "", 4, 32, "AVX2"}, {"dgemm", "", 8, 32, "AVX2"}, {"sgemm", "", 4, 64, "AVX512"}, {"dgemm", "", 8, 64, "AVX512"}} {
		for rows := 1; rows <= l.tileRows(); rows++ {
			runTiles(t, functions, l, rows, "Tile", tileCols)
		}
		for rows := 1; rows <= narrowRows && l.width == 64 && l.size == 4; rows++ {
			runTiles(t, functions, l, rows, "Narrow", 1)
		}
	}
}

func runTiles(t *testing.T, functions map[string]*ir.Function, l lanes, rows int, kind string, cols int) {
	f := functions[fmt.Sprintf("%s%s%d%s", l.prefix, kind, rows, l.suffix)]
	t.Run(f.Name, func(t *testing.T) {
		for k := range 10 {
			for add := range 2 {
				for segments := 1; segments <= 3; segments++ {
					runTile(t, f, l, rows, cols*int(l.width/l.size), k, segments, int64(add))
				}
			}
		}
	})
}

// runTile computes a tile of small whole numbers, whose products are exact.
func runTile(t *testing.T, f *ir.Function, l lanes, rows, cols, k, segments int, add int64) {
	size := int(l.size)
	const skipA, skipB = 2, 3
	rs, cs, ldb, ldc := segments*(k+skipA)+3, 1, cols+2, cols+5
	nextA, nextB := k+skipA, k*ldb+skipB
	a, b, c := 64, 64+size*rs*rows, 64+size*(rs*rows+segments*nextB+ldb)
	m := &machine{t: t, gp: map[reg.ID]int64{}, vec: map[reg.ID][]byte{}, size: size, memory: make([]byte, c+size*ldc*rows)}
	for i := range (len(m.memory) - a) / size {
		m.setElement(m.memory[a:], i, float64(i*7%11-5))
	}
	before := append([]byte(nil), m.memory...)
	m.params = map[int]int64{0: int64(k), 8: int64(a), 16: int64(rs), 24: int64(cs), 32: int64(b), 40: int64(ldb), 48: int64(c), 56: int64(ldc), 64: add,
		72: int64(segments), 80: skipA, 88: skipB}
	m.run(f)
	for i := range rows * ldc {
		row, col := i/ldc, i%ldc
		want := m.element(before[c:], i)
		if col < cols {
			want *= float64(add)
			for x := range segments * k {
				s, x := x/max(k, 1), x%max(k, 1)
				want += m.element(before[a:], row*rs+s*nextA+x*cs) * m.element(before[b:], s*nextB+x*ldb+col)
			}
		}
		if got := m.element(m.memory[c:], i); got != want {
			t.Fatalf("k=%d in %d segments, add=%d: element %d,%d is %v, want %v", k, segments, add, row, col, got, want)
		}
	}
}
