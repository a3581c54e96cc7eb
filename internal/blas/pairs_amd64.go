//go:build amd64 && !noasm

package blas

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// paired multiplies pairs of bfloat16s; nil if this processor cannot.
var paired = pairEngine(single != nil && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BF16)

func pairEngine(has bool) *engine[float32] {
	if !has {
		return nil
	}
	return &engine[float32]{rows: 12, cols: 32, kc: 320, mc: 240, nc: 4096, gather: gather[float32], columns: columns32,
		tiles: []tile[float32]{bgemmTile1AVX512, bgemmTile2AVX512, bgemmTile3AVX512, bgemmTile4AVX512, bgemmTile5AVX512, bgemmTile6AVX512,
			bgemmTile7AVX512, bgemmTile8AVX512, bgemmTile9AVX512, bgemmTile10AVX512, bgemmTile11AVX512, bgemmTile12AVX512},
		narrow: []tile[float32]{bgemmNarrow1AVX512, bgemmNarrow2AVX512, bgemmNarrow3AVX512, bgemmNarrow4AVX512, bgemmNarrow5AVX512, bgemmNarrow6AVX512, bgemmNarrow7AVX512, bgemmNarrow8AVX512,
			bgemmNarrow9AVX512, bgemmNarrow10AVX512, bgemmNarrow11AVX512, bgemmNarrow12AVX512, bgemmNarrow13AVX512, bgemmNarrow14AVX512, bgemmNarrow15AVX512, bgemmNarrow16AVX512}}
}

// pairRowsWide does as many elements as fill whole registers, and returns their number.
func pairRowsWide(d []float32, x, y []uint16) int {
	n := len(d) &^ 15
	pairRowsAVX2(unsafe.SliceData(d), unsafe.SliceData(x), unsafe.SliceData(y), n)
	return n
}
