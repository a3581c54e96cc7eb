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
	n, some := eights(len(d)), 0
	if avx512 {
		some = n &^ 15
		toHalfAVX512(shorts(d), first(x), some)
	}
	toHalf(shorts(d[some:]), first(x[some:]), n-some)
	return n
}

func roundHalvesWide(d, x []float32) int {
	n, some := eights(len(d)), 0
	if avx512 {
		some = n &^ 15
		roundHalfAVX512(first(d), first(x), some)
	}
	roundHalf(first(d[some:]), first(x[some:]), n-some)
	return n
}

func fromBfloat16sWide(d []float32, x []uint16) int {
	n, some := eights(len(d)), 0
	if avx512 {
		some = n &^ 15
		fromBfloat16AVX512(first(d), shorts(x), some)
	}
	fromBfloat16(first(d[some:]), shorts(x[some:]), n-some)
	return n
}

func toBfloat16sWide(d []uint16, x []float32) int {
	n, some := eights(len(d)), 0
	if avx512 {
		some = n &^ 15
		toBfloat16AVX512(shorts(d), first(x), some)
	}
	toBfloat16(shorts(d[some:]), first(x[some:]), n-some)
	return n
}

func roundBfloat16sWide(d, x []float32) int {
	n, some := eights(len(d)), 0
	if avx512 {
		some = n &^ 15
		roundBfloat16AVX512(first(d), first(x), some)
	}
	roundBfloat16(first(d[some:]), first(x[some:]), n-some)
	return n
}

func fromBytesWide(d []float32, x []uint8) int {
	n := eights(len(d))
	fromByte(first(d), unsafe.SliceData(x), n)
	return n
}

func fromInt32sWide(d []float32, x []int32) int {
	n := eights(len(d))
	fromInt32(first(d), unsafe.SliceData(x), n)
	return n
}
