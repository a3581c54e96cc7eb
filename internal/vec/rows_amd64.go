//go:build amd64 && !noasm

package vec

// addRows[n-1] adds n columns of scaled rows.
var addRows = [...]func(d, y, s *float32, to, from *int64, ld, count int){
	sAddRows1AVX2, sAddRows2AVX2, sAddRows3AVX2, sAddRows4AVX2, sAddRows5AVX2, sAddRows6AVX2, sAddRows7AVX2, sAddRows8AVX2,
	sAddRows9AVX2, sAddRows10AVX2, sAddRows11AVX2, sAddRows12AVX2, sAddRows13AVX2, sAddRows14AVX2, sAddRows15AVX2, sAddRows16AVX2,
}

// addScaledRowsWide reports whether it has done the product.
func addScaledRowsWide[T Float](d, y, s []T, index []int64, side, n, from, to int) bool {
	if !avx2 || !single[T]() {
		return false
	}
	for from < to {
		columns := min(to-from, len(addRows))
		addRows[columns-1](f32(d[from:]), f32(y[from:]), f32(s), &index[side], &index[1-side], 4*n, len(s))
		from += columns
	}
	return true
}
