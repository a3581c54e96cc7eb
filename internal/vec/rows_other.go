//go:build !(amd64 || arm64) || noasm

package vec

func addScaledRowsWide[T Float](d, y, s []T, index []int64, side, n, from, to int) bool {
	return false
}
