//go:build !(amd64 || arm64) || noasm

package vec

// winogradLanes is the fewest channels that are transformed at once.
const winogradLanes = 1

func transformWide[T Float](d []T, to Matrices, x []T, from Matrices, channels, count int, w winograd) int {
	return 0
}
