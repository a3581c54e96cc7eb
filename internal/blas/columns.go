//go:build (amd64 || arm64) && !noasm

package blas

func columns32(width, step int, dst, src []float32, ld, k int) int {
	if k &^= 3; k == 0 || width < 2 {
		return 0
	}
	r := transpose8(width, step, dst, src, ld, k)
	for ; r+4 <= width; r += 4 {
		sTranspose4(&dst[r], &src[r*ld], 4*ld, 4*step, k)
	}
	if r+2 <= width {
		sTranspose2(&dst[r], &src[r*ld], 4*ld, 4*step, k)
		r += 2
	}
	if r < width {
		oneColumn(dst[r:], src[r*ld:], step, k)
	}
	return k
}

func columns64(width, step int, dst, src []float64, ld, k int) int {
	if k &^= 1; k == 0 || width < 2 {
		return 0
	}
	r := 0
	for ; r+2 <= width; r += 2 {
		dTranspose2(&dst[r], &src[r*ld], 8*ld, 8*step, k)
	}
	if r < width {
		oneColumn(dst[r:], src[r*ld:], step, k)
	}
	return k
}

func oneColumn[T float32 | float64](dst, row []T, step, k int) {
	for i, v := range row[:k] {
		dst[i*step] = v
	}
}
