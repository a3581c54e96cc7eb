//go:build !amd64 || noasm

package vec

func addWindowWide[T Float](_, _ []T, _ int, _ []T, _ *Window) int { return 0 }
