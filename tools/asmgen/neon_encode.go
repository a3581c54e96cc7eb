package main

import (
	"fmt"
	"strings"
)

// Go's assembler knows few of the floating-point instructions on vectors, so
// they are written as words, with the assembly that the ARM Architecture
// Reference Manual (chapter C7, Advanced SIMD) gives them as comments.

// form is how an instruction's operands are written and encoded. Registers are
// d, n and m in the lowest five bits of each field:
//
//	31..23   22   21   20..16   15..10   9..5   4..0
//	op       sz   op   m        op       n      d
type form int

const (
	three  form = iota // d, n, m of four float32, or two float64 (sz)
	two                // d, n of the same
	bits3              // d, n, m of 16 bytes
	left               // d, n, a shift to the left of 32-bit elements
	right              // d, n, a shift to the right of 32-bit elements
	byLane             // d, n, and one element of m
	spread             // d, and one element of n
	widen              // d of two wide elements, n of two narrow ones
	widen2             // the same of the upper half of n
	long               // d of two wide elements, n and m of two narrow ones
	longer             // the same of the upper halves of n and m
)

// encoding is an instruction on the float32 or 32-bit elements of whole
// registers, with all registers zero.
type encoding struct {
	bits uint32
	form form
}

var encodings = map[string]encoding{
	"fadd": {0x4e20d400, three}, "fsub": {0x4ea0d400, three}, "fmul": {0x6e20dc00, three}, "fdiv": {0x6e20fc00, three},
	"fmax": {0x4e20f400, three}, "fmin": {0x4ea0f400, three}, "fmla": {0x4e20cc00, three}, "fmls": {0x4ea0cc00, three},
	"fcmeq": {0x4e20e400, three}, "fcmgt": {0x6ea0e400, three},
	"add": {0x4ea08400, three}, "sub": {0x6ea08400, three},
	"zip1": {0x4e803800, three}, "zip2": {0x4e807800, three}, "uzp1": {0x4e801800, three}, "uzp2": {0x4e805800, three},
	"fabs": {0x4ea0f800, two}, "fsqrt": {0x6ea1f800, two}, "frintm": {0x4e219800, two}, "frintn": {0x4e218800, two},
	"fcvtns": {0x4e21a800, two}, "scvtf": {0x4e21d800, two},
	"and": {0x4e201c00, bits3}, "bic": {0x4e601c00, bits3}, "orr": {0x4ea01c00, bits3}, "eor": {0x6e201c00, bits3}, "bsl": {0x6e601c00, bits3},
	"shl": {0x4f005400, left}, "sshr": {0x4f000400, right}, "ushr": {0x6f000400, right},
	"fmla.lane": {0x4f801000, byLane}, "fmul.lane": {0x4f809000, byLane}, "dup": {0x4e000400, spread},
	"fcvtl": {0x0e617800, widen}, "fcvtl2": {0x4e617800, widen2},
	"umull": {0x2ea0c000, long}, "umull2": {0x6ea0c000, longer},
}

// size is the bit that makes elements 64 bits wide.
const size = 1 << 22

// encode returns an instruction and its assembly. Operands are registers; the
// last of a shift is its distance, and of one element its number.
func encode(name string, double bool, operands ...int) (word uint32, text string) {
	e, ok := encodings[name]
	if !ok {
		panic("no encoding of " + name)
	}
	word = e.bits | uint32(operands[0]) | uint32(operands[1])<<5
	if double && e.form != spread {
		word |= size
	}
	name, _, _ = strings.Cut(name, ".")
	v := func(i int, arrangement string) string { return fmt.Sprintf("v%d.%s", operands[i], arrangement) }
	full, half, wide := "4s", "2s", "2d"
	if double {
		full = "2d"
	}
	list := []string{v(0, full), v(1, full)}
	switch e.form {
	case three:
		word |= uint32(operands[2]) << 16
		list = append(list, v(2, full))
	case bits3:
		word |= uint32(operands[2]) << 16
		list = []string{v(0, "16b"), v(1, "16b"), v(2, "16b")}
	case left:
		word |= uint32(32+operands[2]) << 16
		list = append(list, fmt.Sprintf("#%d", operands[2]))
	case right:
		word |= uint32(64-operands[2]) << 16
		list = append(list, fmt.Sprintf("#%d", operands[2]))
	case byLane:
		word |= uint32(operands[2])<<16 | lane(double, operands[3])
		list = append(list, v(2, fmt.Sprintf("%c[%d]", full[1], operands[3])))
	case spread:
		word |= spreadLane(double, operands[2])
		list[1] = v(1, fmt.Sprintf("%c[%d]", full[1], operands[2]))
	case widen, widen2:
		list = []string{v(0, wide), v(1, map[form]string{widen: half, widen2: "4s"}[e.form])}
	case long, longer:
		word |= uint32(operands[2]) << 16
		from := map[form]string{long: half, longer: "4s"}[e.form]
		list = []string{v(0, wide), v(1, from), v(2, from)}
	}
	return word, name + " " + strings.Join(list, ", ")
}

// lane is the number of an element of a product's last operand: its bits are
// 11 and 21 for float32, and 11 for float64.
func lane(double bool, i int) uint32 {
	if double {
		return uint32(i) << 11
	}
	return uint32(i>>1)<<11 | uint32(i&1)<<21
}

// spreadLane is the number of the element that fills a register; the lowest bit
// that is set says how wide it is.
func spreadLane(double bool, i int) uint32 {
	if double {
		return uint32(i)<<20 | 1<<19
	}
	return uint32(i)<<19 | 1<<18
}
