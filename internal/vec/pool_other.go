//go:build !amd64 || noasm

package vec

func toLargestWide[T Float](_, _, _ []T, _ []int, _, _, _ int) bool { return false }
