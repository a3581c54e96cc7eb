//go:build amd64 && !noasm

package blas

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// The engines of this processor; nil means gonum.
var single, double = engines(cpu.X86.HasAVX2 && cpu.X86.HasFMA, cpu.X86.HasAVX512F)

func engines(avx2, avx512 bool) (*engine[float32], *engine[float64]) {
	switch {
	case avx2 && avx512:
		return &engine[float32]{rows: 12, cols: 32, kc: 320, mc: 240, nc: 4096, gather: gather[float32], columns: columns32,
				tiles: []tile[float32]{sgemmTile1AVX512, sgemmTile2AVX512, sgemmTile3AVX512, sgemmTile4AVX512, sgemmTile5AVX512, sgemmTile6AVX512,
					sgemmTile7AVX512, sgemmTile8AVX512, sgemmTile9AVX512, sgemmTile10AVX512, sgemmTile11AVX512, sgemmTile12AVX512},
				narrow: []tile[float32]{sgemmNarrow1AVX512, sgemmNarrow2AVX512, sgemmNarrow3AVX512, sgemmNarrow4AVX512, sgemmNarrow5AVX512, sgemmNarrow6AVX512, sgemmNarrow7AVX512, sgemmNarrow8AVX512,
					sgemmNarrow9AVX512, sgemmNarrow10AVX512, sgemmNarrow11AVX512, sgemmNarrow12AVX512, sgemmNarrow13AVX512, sgemmNarrow14AVX512, sgemmNarrow15AVX512, sgemmNarrow16AVX512}},
			&engine[float64]{rows: 12, cols: 16, kc: 320, mc: 120, nc: 2048, gather: gather[float64], columns: columns64,
				tiles: []tile[float64]{dgemmTile1AVX512, dgemmTile2AVX512, dgemmTile3AVX512, dgemmTile4AVX512, dgemmTile5AVX512, dgemmTile6AVX512,
					dgemmTile7AVX512, dgemmTile8AVX512, dgemmTile9AVX512, dgemmTile10AVX512, dgemmTile11AVX512, dgemmTile12AVX512}}
	case avx2:
		return &engine[float32]{rows: 6, cols: 16, kc: 320, mc: 144, nc: 4096, gather: gather[float32], columns: columns32,
				tiles: []tile[float32]{sgemmTile1AVX2, sgemmTile2AVX2, sgemmTile3AVX2, sgemmTile4AVX2, sgemmTile5AVX2, sgemmTile6AVX2}},
			&engine[float64]{rows: 6, cols: 8, kc: 320, mc: 72, nc: 2048, gather: gather[float64], columns: columns64,
				tiles: []tile[float64]{dgemmTile1AVX2, dgemmTile2AVX2, dgemmTile3AVX2, dgemmTile4AVX2, dgemmTile5AVX2, dgemmTile6AVX2}}
	}
	return nil, nil
}

// gather copies the first width elements, a width that an engine has, of k
// rows.
func gather[T float32 | float64](width int, dst, src *T, ld, k int) {
	size := int(unsafe.Sizeof(*dst))
	to, from := (*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(src))
	switch width * size {
	case 24:
		gather24(to, from, ld*size, k)
	case 48:
		gather48(to, from, ld*size, k)
	case 64:
		gather64(to, from, ld*size, k)
	case 96:
		gather96(to, from, ld*size, k)
	case 128:
		gather128(to, from, ld*size, k)
	}
}

// transpose8 transposes rows, eight at a time, while there are eight, and returns
// how many it did; k is a multiple of 4.
func transpose8(width, step int, dst, src []float32, ld, k int) int {
	rows, eights := width&^7, k&^7
	if rows == 0 {
		return 0
	}
	block := eights
	if step >= farRows {
		block = 16
	}
	for l := 0; l < eights; l += block {
		for r := 0; r < rows; r += 8 {
			sTranspose8AVX2(&dst[l*step+r], &src[r*ld+l], 4*ld, 4*step, min(block, eights-l))
		}
	}
	for r := 0; eights < k && r < rows; r += 4 {
		sTranspose4(&dst[eights*step+r], &src[r*ld+eights], 4*ld, 4*step, k-eights)
	}
	return rows
}

// farRows is how many elements rows of the result are apart that cannot all keep their cache
// lines until the next eight elements come: then a few rows are filled at a time.
const farRows = 512
