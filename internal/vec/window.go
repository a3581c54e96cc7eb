package vec

// Window is where the factors of a sum of products are: rows of taps, at steps of so many
// elements in each of two slices.
type Window struct {
	Rows, Taps             int
	XRow, XTap, WRow, WTap int
}

// AddWindow adds to each element i of d the products of x[at+i+r*XRow+t*XTap] and
// w[i+r*WRow+t*WTap], for each row r and tap t, one after the other in their order.
func AddWindow[T Float](d, x []T, at int, w []T, f *Window) {
	if len(d) == 0 || f.Rows <= 0 || f.Taps <= 0 {
		return
	}
	f.check(len(d), len(x), at, len(w))
	for i := addWindowWide(d, x, at, w, f); i < len(d); i++ {
		d[i] = sumOver(f, d[i], x, at+i, w, i)
	}
}

// check panics where a factor is outside its slice.
func (f *Window) check(n, x, at, w int) {
	for _, r := range [...]int{0, f.Rows - 1} {
		for _, t := range [...]int{0, f.Taps - 1} {
			from, by := at+r*f.XRow+t*f.XTap, r*f.WRow+t*f.WTap
			if from < 0 || by < 0 || from+n > x || by+n > w {
				panic("vec: a window reaches beyond its factors")
			}
		}
	}
}

// sumOver adds the products of one element to a sum.
func sumOver[T Float](f *Window, sum T, x []T, at int, w []T, by int) T {
	for range f.Rows {
		from, to := at, by
		for range f.Taps {
			sum += T(x[from] * w[to])
			from, to = from+f.XTap, to+f.WTap
		}
		at, by = at+f.XRow, by+f.WRow
	}
	return sum
}
