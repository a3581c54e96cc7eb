//go:build !(amd64 || arm64) || noasm

package vec

func butterflyWide[T Float](sum, rest, a, b *Complex[T], wRe, wIm T) int { return 0 }
func mirrorWide[T Float](d, e, a, b *Complex[T], wRe, wIm T) int         { return 0 }
