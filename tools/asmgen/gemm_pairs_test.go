package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// TestMultiplyPairs compares with what LLVM's assembler makes of VDPBF16PS.
func TestMultiplyPairs(t *testing.T) {
	for _, tt := range []struct {
		y, x, sum reg.Register
		want      string
	}{
		{reg.Z24, reg.Z23, reg.Z22, "62 82 46 40 52 f0"},
		{reg.Z4, reg.Z3, reg.Z2, "62 f2 66 48 52 d4"},
	} {
		nodes := multiplyPairs([]operand.Op{tt.y, tt.x, tt.sum})
		var code []byte
		code = binary.LittleEndian.AppendUint32(code, uint32(nodes[0].(*ir.Instruction).Operands[0].(operand.U32)))
		code = binary.LittleEndian.AppendUint16(code, uint16(nodes[1].(*ir.Instruction).Operands[0].(operand.U16)))
		if got := fmt.Sprintf("% x", code); got != tt.want {
			t.Errorf("%s, %s, %s: %s, want %s", tt.y.Asm(), tt.x.Asm(), tt.sum.Asm(), got, tt.want)
		}
	}
}

// TestPairTiles runs tiles of pairs on the machine made of Go.
func TestPairTiles(t *testing.T) {
	functions := compileBLAS(t)
	for rows := 1; rows <= pairs.tileRows(); rows++ {
		runPairs(t, functions[fmt.Sprintf("bgemmTile%dAVX512", rows)], rows, 32)
	}
	for rows := 1; rows <= narrowRows; rows++ {
		runPairs(t, functions[fmt.Sprintf("bgemmNarrow%dAVX512", rows)], rows, 16)
	}
}

// runPairs computes a tile of small whole numbers, whose products are exact.
func runPairs(t *testing.T, f *ir.Function, rows, cols int) {
	const k, a = 5, 64
	b, c := a+4*k*rows, a+4*k*(rows+cols)
	m := &machine{t: t, gp: map[reg.ID]int64{}, vec: map[reg.ID][]byte{}, size: 4, paired: true, memory: make([]byte, c+4*rows*cols)}
	for i := 0; i < c-a; i += 2 {
		binary.LittleEndian.PutUint16(m.memory[a+i:], uint16(math.Float32bits(float32(i*7%11-5))>>16))
	}
	m.params = map[int]int64{0: k, 8: a, 16: k, 24: 1, 32: int64(b), 40: int64(cols), 48: int64(c), 56: int64(cols), 64: 0, 72: 1, 80: 0, 88: 0}
	m.run(f)
	half := func(at int) float64 {
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(m.memory[at:])) << 16))
	}
	for i := range rows * cols {
		want := 0.0
		for l := range 2 * k {
			want += half(a+4*k*(i/cols)+2*l) * half(b+4*(cols*(l/2)+i%cols)+l%2*2)
		}
		if got := m.element(m.memory[c:], i); got != want {
			t.Fatalf("%s: element %d,%d is %v, want %v", f.Name, i/cols, i%cols, got, want)
		}
	}
}

// multiplyPair returns what VDPBF16PS makes of an element.
func (m *machine) multiplyPair(x, y, sum []byte, i int) float64 {
	s := m.element(sum, i)
	for at := 4*i + 2; at >= 4*i; at -= 2 {
		half := func(v []byte) float64 {
			return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(v[at:])) << 16))
		}
		s = float64(float32(s + half(x)*half(y)))
	}
	return s
}
