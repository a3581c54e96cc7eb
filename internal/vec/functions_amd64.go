//go:build amd64 && !noasm

package vec

// whole runs a function of float32 on all elements, and returns their number,
// or 0 for float64.
func whole[T Float](d, x []T, f func(d, x *float32, n int)) int {
	if !avx2 || !single[T]() {
		return 0
	}
	n := wide[T](len(d))
	f(f32(d), f32(x), n)
	if n == len(d) {
		return n
	}
	// The rest goes the same way, so that an element's result does not
	// depend on its place.
	var rest [register / 4]T
	copy(rest[:], x[n:])
	f(f32(rest[:]), f32(rest[:]), len(rest))
	copy(d[n:], rest[:])
	return len(d)
}

func expWide[T Float](d, x []T) int     { return whole(d, x, sExpAVX2) }
func logWide[T Float](d, x []T) int     { return whole(d, x, sLogAVX2) }
func tanhWide[T Float](d, x []T) int    { return whole(d, x, sTanhAVX2) }
func erfWide[T Float](d, x []T) int     { return whole(d, x, sErfAVX2) }
func sigmoidWide[T Float](d, x []T) int { return whole(d, x, sSigmoidAVX2) }
