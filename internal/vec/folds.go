package vec

import "math"

// lanes is how many sums are kept side by side; element i belongs to lane
// i%lanes. It fixes the order of additions, whatever the processor.
const lanes = 16

// Sum returns the sum of x, added in float64.
func Sum[T Float](x []T) float64 {
	if short(x) {
		s := 0.0
		for _, v := range x {
			s += float64(v)
		}
		return s
	}
	if len(x)%lanes == 0 {
		if s, ok := sumWide(x); ok {
			return s
		}
	}
	var acc [lanes]float64
	for i, n := lanesWide(&acc, x), len(x); i < n; i++ {
		acc[i%lanes] += float64(x[i])
	}
	return total(&acc)
}

// SumSquares returns the sum of the squares of x, added in float64.
func SumSquares[T Float](x []T) float64 {
	var acc [lanes]float64
	for i, n := squareLanesWide(&acc, x), len(x); i < n; i++ {
		acc[i%lanes] += float64(float64(x[i]) * float64(x[i])) // not fused
	}
	return total(&acc)
}

// short reports whether lanes do not pay.
func short[T Float](x []T) bool { return len(x) < 2*lanes }

func total(acc *[lanes]float64) float64 {
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			acc[i] += acc[i+n]
		}
	}
	return acc[0]
}

// Max returns the largest element of x, NaN if there is one, and minus infinity
// if there is none.
func Max[T Float](x []T) T {
	m, from := lowest[T](), 0
	if !short(x) {
		m, from = maxWide(x)
	}
	for _, v := range x[from:] {
		if v > m || v != v {
			m = v
		}
	}
	return m
}

func lowest[T Float]() T { return T(math.Inf(-1)) }

// Min returns the smallest element of x, NaN if there is one, and infinity if there is none.
func Min[T Float](x []T) T {
	m := -lowest[T]()
	var turned [256]T // the largest one of these is the smallest one turned
	for len(x) > 0 {
		n := min(len(x), len(turned))
		MulScalar(turned[:n], x[:n], -1)
		if v := -Max(turned[:n]); v < m || v != v {
			m = v
		}
		x = x[n:]
	}
	return m
}
