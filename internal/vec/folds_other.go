//go:build !(amd64 || arm64) || noasm

package vec

func lanesWide[T Float](acc *[lanes]float64, x []T) int       { return 0 }
func squareLanesWide[T Float](acc *[lanes]float64, x []T) int { return 0 }
func maxWide[T Float](x []T) (m T, n int)                     { return lowest[T](), 0 }
