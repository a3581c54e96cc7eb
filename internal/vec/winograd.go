package vec

import "slices"

// The transformations of Winograd's convolution F(2x2,3x3), which computes 2 by
// 2 pixels with 16 multiplications of channels instead of 36. Each is Y = L X L',
// of matrices of at most 4 by 4 whose elements are vectors of channels:
//
//	WinogradInput       4 by 4 pixels            to 4 by 4 factors
//	WinogradFilter      3 by 3 positions         to 4 by 4 factors
//	WinogradOutput      4 by 4 products          to 2 by 2 pixels
//	WinogradOutputGrad  2 by 2 pixels            to 4 by 4 factors
//	WinogradFilterGrad  4 by 4 sums of products  to 3 by 3 positions
//
// The last two make the gradient of the filter.

// Matrices says where the vectors of some matrices are, in elements: from row
// to row, from column to column, and from one matrix to the next.
type Matrices struct{ Row, Col, Next int }

// reach is the number of elements up to the end of the last vector.
func (m Matrices) reach(size, channels, count int) int {
	return (size-1)*(m.Row+m.Col) + (count-1)*m.Next + channels
}

// sandwich is the matrix L, in halves, in rows.
type sandwich struct {
	l          [4][4]int8
	rows, cols int
}

// The same tables are in tools/asmgen.
var (
	inputSandwich      = sandwich{[4][4]int8{{2, 0, -2, 0}, {0, 2, 2, 0}, {0, -2, 2, 0}, {0, 2, 0, -2}}, 4, 4}
	filterSandwich     = sandwich{[4][4]int8{{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}}, 4, 3}
	outputSandwich     = sandwich{[4][4]int8{{2, 2, 2, 0}, {0, 2, -2, -2}}, 2, 4}
	outputGradSandwich = sandwich{[4][4]int8{{2, 0}, {2, 2}, {2, -2}, {0, -2}}, 4, 2}
	filterGradSandwich = sandwich{[4][4]int8{{2, 1, 1, 0}, {0, 1, -1, 0}, {0, 1, 1, 2}}, 3, 4}
)

// WinogradInput transforms the pixels that make 2 by 2 of the output. The results
// of this and of the other transformations do not overlap what they are made of.
func WinogradInput[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int) {
	transform(d, to, x, from, channels, count, &inputSandwich, winogradInput)
}

// WinogradFilter transforms a filter.
func WinogradFilter[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int) {
	transform(d, to, x, from, channels, count, &filterSandwich, winogradFilter)
}

// WinogradOutput makes products the output's pixels.
func WinogradOutput[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int) {
	transform(d, to, x, from, channels, count, &outputSandwich, winogradOutput)
}

// WinogradOutputGrad transforms the gradient of the output's pixels.
func WinogradOutputGrad[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int) {
	transform(d, to, x, from, channels, count, &outputGradSandwich, winogradOutputGrad)
}

// WinogradFilterGrad makes sums of products the gradient of the filter.
func WinogradFilterGrad[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int) {
	transform(d, to, x, from, channels, count, &filterGradSandwich, winogradFilterGrad)
}

// winograd is one of the transformations.
type winograd int

const (
	winogradInput winograd = iota
	winogradFilter
	winogradOutput
	winogradOutputGrad
	winogradFilterGrad
)

func transform[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int, s *sandwich, w winograd) {
	if channels == 0 || count == 0 {
		return
	}
	_, _ = d[to.reach(s.rows, channels, count)-1], x[from.reach(s.cols, channels, count)-1]
	done := transformWide(d, to, x, from, channels, count, w)
	if rest := channels - done; rest > 0 && done > 0 {
		// The last vector begins before the end of the one before it.
		at := channels - winogradLanes
		done += min(rest, transformWide(d[at:], to, x[at:], from, winogradLanes, count, w))
	}
	if done == channels {
		return
	}
	for k := range count {
		for c := done; c < channels; c++ {
			spread(s, d[k*to.Next+c:], to, x[k*from.Next+c:], from)
		}
	}
}

// spread transforms one channel of one matrix.
func spread[T Float](s *sandwich, d []T, to Matrices, x []T, from Matrices) {
	for i := range s.rows {
		var t, row [4]T
		for j := range s.cols {
			for k := range s.cols {
				row[k] = x[k*from.Row+j*from.Col]
			}
			t[j] = halves(s.l[i][:s.cols], &row)
		}
		for m := range s.rows {
			d[i*to.Row+m*to.Col] = halves(s.l[m][:s.cols], &t)
		}
	}
}

// halves returns the sum of the elements with whole factors and half of the sum
// of those with half ones. In both, the first to be added comes first.
func halves[T Float](factors []int8, x *[4]T) T {
	whole, some := signed(factors, x, 2)
	half, _ := signed(factors, x, 1)
	if slices.Contains(factors, 1) {
		half = T(half * .5) // not fused with what follows
		if some {
			half = whole + half
		}
		return half
	}
	return whole
}

// signed adds up the elements whose factor is plus or minus size, and reports
// whether there are any.
func signed[T Float](factors []int8, x *[4]T, size int8) (sum T, some bool) {
	first := -1
	for k, f := range factors {
		if f == size {
			sum, first, some = x[k], k, true
			break
		}
	}
	for k, f := range factors {
		switch {
		case k == first:
		case f == size:
			sum += x[k]
		case f == -size:
			sum, some = sum-x[k], true
		}
	}
	return sum, some
}
