//go:build !(amd64 || arm64) || noasm

package vec

func expWide[T Float](d, x []T) int     { return 0 }
func logWide[T Float](d, x []T) int     { return 0 }
func tanhWide[T Float](d, x []T) int    { return 0 }
func erfWide[T Float](d, x []T) int     { return 0 }
func erfcWide[T Float](d, x []T) int    { return 0 }
func sigmoidWide[T Float](d, x []T) int { return 0 }
func sinWide[T Float](d, x []T) int     { return 0 }
func cosWide[T Float](d, x []T) int     { return 0 }
