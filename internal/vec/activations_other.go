//go:build !(amd64 || arm64) || noasm

package vec

func squareWide[T Float](d, x []T) int                                       { return 0 }
func sqrtWide[T Float](d, x []T) int                                         { return 0 }
func rsqrtWide[T Float](d, x []T) int                                        { return 0 }
func scalarSubWide[T Float](d, x []T, s T) int                               { return 0 }
func scalarDivWide[T Float](d, x []T, s T) int                               { return 0 }
func squaredDifferenceWide[T Float](d, x, y []T) int                         { return 0 }
func tanhGradWide[T Float](d, y, g []T) int                                  { return 0 }
func sigmoidGradWide[T Float](d, y, g []T) int                               { return 0 }
func leakyReluWide[T Float](d, x []T, slope T) int                           { return 0 }
func leakyReluGradWide[T Float](d, g, x []T, slope T) int                    { return 0 }
func normalizeWide[T Float](d, x, mean, factor, offset []T) int              { return 0 }
func normalizeGradWide[T Float](d, g, x, mean, factor, shift, slope []T) int { return 0 }
func momentsWide[T Float](sums, squares, x, shift []T) int                   { return 0 }
func gradMomentsWide[T Float](sums, dots, g, x, mean []T) int                { return 0 }
func floorWide[T Float](d, x []T) int                                        { return 0 }
func addScaledWide[T Float](d, x []T, s T) int                               { return 0 }
func addProductWide[T Float](d, x, y []T) int                                { return 0 }
func clippedReluWide[T Float](d, x []T, top T) int                           { return 0 }
func clippedReluGradWide[T Float](d, g, x []T, top, one T) int               { return 0 }
