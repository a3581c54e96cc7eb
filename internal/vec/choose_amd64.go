//go:build amd64 && !noasm

package vec

import "unsafe"

// eight is a register of one number.
type eight [8]float32

func eightOf(s float32) *eight { return &eight{s, s, s, s, s, s, s, s} }

// next is the step of an operand that is a slice; that of an eight is 0.
const next = 32

func word32(s []uint32) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(s))) }
func octet(s []bool) *byte       { return (*byte)(unsafe.Pointer(unsafe.SliceData(s))) }
func first(s []float32) *float32 { return unsafe.SliceData(s) }

// eights returns how many of n elements the functions below do.
func eights(n int) int {
	if !assembly {
		return 0
	}
	return n &^ 7
}

func chooseWide(d []uint32, cond []bool, x, y []uint32) int {
	n := eights(len(d))
	sChoose(word32(d), octet(cond), word32(x), next, word32(y), next, n)
	return n
}

func chooseOrWide(d []uint32, cond []bool, want bool, x []uint32, v uint32) int {
	n := eights(len(d))
	all := [8]uint32{v, v, v, v, v, v, v, v}
	if want {
		sChoose(word32(d), octet(cond), word32(x), next, word32(all[:]), 0, n)
	} else {
		sChoose(word32(d), octet(cond), word32(all[:]), 0, word32(x), next, n)
	}
	return n
}

func lessWide(d []bool, x, y []float32) int {
	n := eights(len(d))
	sLess(octet(d), first(x), next, first(y), next, n)
	return n
}

func lessScalarWide(d []bool, x []float32, s float32) int {
	n := eights(len(d))
	sLess(octet(d), first(x), next, &eightOf(s)[0], 0, n)
	return n
}

func scalarLessWide(d []bool, s float32, x []float32) int {
	n := eights(len(d))
	sLess(octet(d), &eightOf(s)[0], 0, first(x), next, n)
	return n
}

func lessEqualWide(d []bool, x, y []float32) int {
	n := eights(len(d))
	sLessEqual(octet(d), first(x), next, first(y), next, n)
	return n
}

func lessEqualScalarWide(d []bool, x []float32, s float32) int {
	n := eights(len(d))
	sLessEqual(octet(d), first(x), next, &eightOf(s)[0], 0, n)
	return n
}

func scalarLessEqualWide(d []bool, s float32, x []float32) int {
	n := eights(len(d))
	sLessEqual(octet(d), &eightOf(s)[0], 0, first(x), next, n)
	return n
}

func equalWide(d []bool, x, y []float32, unequal bool) int {
	n := eights(len(d))
	if unequal {
		sNotEqual(octet(d), first(x), next, first(y), next, n)
	} else {
		sEqual(octet(d), first(x), next, first(y), next, n)
	}
	return n
}

func equalScalarWide(d []bool, x []float32, s float32, unequal bool) int {
	n := eights(len(d))
	if unequal {
		sNotEqual(octet(d), first(x), next, &eightOf(s)[0], 0, n)
	} else {
		sEqual(octet(d), first(x), next, &eightOf(s)[0], 0, n)
	}
	return n
}
