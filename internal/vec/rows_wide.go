//go:build (amd64 || arm64) && !noasm

package vec

// addRows[n-1] adds n columns of scaled rows.
var addRows = [...]func(d, y, s *float32, to, from *int64, ld, count int){
	sAddRows1, sAddRows2, sAddRows3, sAddRows4, sAddRows5, sAddRows6, sAddRows7, sAddRows8,
	sAddRows9, sAddRows10, sAddRows11, sAddRows12, sAddRows13, sAddRows14, sAddRows15, sAddRows16,
}

// addScaledRowsWide reports whether it has done the product.
func addScaledRowsWide[T Float](d, y, s []T, index []int64, side, n, from, to int) bool {
	if !assembly || !single[T]() {
		return false
	}
	for from < to {
		columns := min(to-from, len(addRows))
		addRows[columns-1](f32(d[from:]), f32(y[from:]), f32(s), &index[side], &index[1-side], 4*n, len(s))
		from += columns
	}
	return true
}
