//go:build (amd64 || arm64) && !noasm

package vec

func lanesWide[T Float](acc *[lanes]float64, x []T) int {
	n := foldable(x)
	if n > 0 {
		sLanes(&acc[0], f32(x), n)
	}
	return n
}

func squareLanesWide[T Float](acc *[lanes]float64, x []T) int {
	n := foldable(x)
	if n > 0 {
		sSquareLanes(&acc[0], f32(x), n)
	}
	return n
}

// maxWide returns the largest of the first n elements, and n.
func maxWide[T Float](x []T) (m T, n int) {
	m, n = lowest[T](), foldable(x)
	if n == 0 {
		return m, 0
	}
	var acc [lanes]float32
	for i := range acc {
		acc[i] = lowest[float32]()
	}
	sMaxLanes(&acc[0], f32(x), n)
	for _, v := range acc {
		if v := T(v); v > m || v != v {
			m = v
		}
	}
	return m, n
}

// foldable returns how many elements the folds of float32 take.
func foldable[T Float](x []T) int {
	if !assembly || !single[T]() {
		return 0
	}
	return len(x) &^ (lanes - 1)
}
