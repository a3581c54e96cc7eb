package vec

// AddScaledRows is the product of a sparse and a dense matrix: for each e it
// adds row index[2*e+1-side] of y, times s[e], to row index[2*e+side] of d, one
// entry after the other. Rows have n elements; only those from from to
// to are computed. The caller has checked that all rows exist.
func AddScaledRows[T Float](d, y, s []T, index []int64, side, n, from, to int) {
	if len(s) == 0 || from >= to {
		return
	}
	_ = index[2*len(s)-1]
	if addScaledRowsWide(d, y, s, index, side, n, from, to) {
		return
	}
	for e, v := range s {
		add := y[int(index[2*e+1-side])*n:][:n]
		row := d[int(index[2*e+side])*n:][:n]
		for j := from; j < to; j++ {
			row[j] += T(add[j] * v)
		}
	}
}
