//go:build amd64 && !noasm

package vec

// sumWide returns the sum of as many float32s as fill all lanes.
func sumWide[T Float](x []T) (float64, bool) {
	if foldable(x) == 0 {
		return 0, false
	}
	return sSumLanes(f32(x), len(x)), true
}
