//go:build amd64 && !noasm

package vec

import "unsafe"

func shorts(s []uint16) *uint16 { return unsafe.SliceData(s) }

func fromHalvesWide(d []float32, x []uint16) int {
	n := eights(len(d))
	fromHalf(first(d), shorts(x), n)
	return n
}

func toHalvesWide(d []uint16, x []float32) int {
	n := eights(len(d))
	toHalf(shorts(d), first(x), n)
	return n
}

func roundHalvesWide(d, x []float32) int {
	n := eights(len(d))
	roundHalf(first(d), first(x), n)
	return n
}

func fromBfloat16sWide(d []float32, x []uint16) int {
	n := eights(len(d))
	fromBfloat16(first(d), shorts(x), n)
	return n
}

func toBfloat16sWide(d []uint16, x []float32) int {
	n := eights(len(d))
	toBfloat16(shorts(d), first(x), n)
	return n
}

func roundBfloat16sWide(d, x []float32) int {
	n := eights(len(d))
	roundBfloat16(first(d), first(x), n)
	return n
}
