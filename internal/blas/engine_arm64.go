//go:build arm64 && !noasm

package blas

import "unsafe"

// The engines of arm64; every arm64 processor has NEON. Blocks of the inner dimension
// are as long as those of amd64, so that sums have the same bits.
var (
	single = &engine[float32]{rows: 6, cols: 16, kc: 320, mc: 144, nc: 4096, gather: gather[float32], columns: columns32,
		tiles: []tile[float32]{sgemmTile1NEON, sgemmTile2NEON, sgemmTile3NEON, sgemmTile4NEON, sgemmTile5NEON, sgemmTile6NEON},
		narrow: []tile[float32]{sgemmNarrow1NEON, sgemmNarrow2NEON, sgemmNarrow3NEON, sgemmNarrow4NEON, sgemmNarrow5NEON, sgemmNarrow6NEON,
			sgemmNarrow7NEON, sgemmNarrow8NEON, sgemmNarrow9NEON, sgemmNarrow10NEON, sgemmNarrow11NEON, sgemmNarrow12NEON}}
	double = &engine[float64]{rows: 6, cols: 8, kc: 320, mc: 72, nc: 2048, gather: gather[float64], columns: columns64,
		tiles: []tile[float64]{dgemmTile1NEON, dgemmTile2NEON, dgemmTile3NEON, dgemmTile4NEON, dgemmTile5NEON, dgemmTile6NEON}}
)

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
	}
}

// transpose8 leaves all rows to the others.
func transpose8(width, step int, dst, src []float32, ld, k int) int { return 0 }
