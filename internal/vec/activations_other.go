//go:build !(amd64 || arm64) || noasm

package vec

func absWide[T Float](d, x []T, none T) int                                     { return 0 }
func squareWide[T Float](d, x []T) int                                          { return 0 }
func sqrtWide[T Float](d, x []T) int                                            { return 0 }
func rsqrtWide[T Float](d, x []T) int                                           { return 0 }
func scalarSubWide[T Float](d, x []T, s T) int                                  { return 0 }
func scalarDivWide[T Float](d, x []T, s T) int                                  { return 0 }
func squaredDifferenceWide[T Float](d, x, y []T) int                            { return 0 }
func tanhGradWide[T Float](d, y, g []T) int                                     { return 0 }
func sigmoidGradWide[T Float](d, y, g []T) int                                  { return 0 }
func leakyReluWide[T Float](d, x []T, slope T) int                              { return 0 }
func leakyReluGradWide[T Float](d, g, x []T, slope T) int                       { return 0 }
func normalizeWide[T Float](d, x, mean, factor, offset []T) int                 { return 0 }
func normalizeGradWide[T Float](d, g, x, mean, factor, shift, slope []T) int    { return 0 }
func momentsWide[T Float](sums, squares, x, shift []T) int                      { return 0 }
func gradMomentsWide[T Float](sums, dots, g, x, mean []T) int                   { return 0 }
func floorWide[T Float](d, x []T) int                                           { return 0 }
func addScaledWide[T Float](d, x []T, s T) int                                  { return 0 }
func addProductWide[T Float](d, x, y []T) int                                   { return 0 }
func clippedReluWide[T Float](d, x []T, top T) int                              { return 0 }
func clippedReluGradWide[T Float](d, g, x []T, top, one T) int                  { return 0 }
func maximumWide[T Float](d, x, y []T) int                                      { return 0 }
func minimumWide[T Float](d, x, y []T) int                                      { return 0 }
func expm1Wide[T Float](d, x, u, l []T, one, minus T) int                       { return 0 }
func log1pWide[T Float](d, x, u, l []T, one T) int                              { return 0 }
func eluWide[T Float](d, x, e []T, above, below T) int                          { return 0 }
func eluGradWide[T Float](d, g, y []T, above, below, none T) int                { return 0 }
func signWide[T Float](d, x []T, one, minus, none T) int                        { return 0 }
func rotateWide[T Float](x, y []T, c, s T) int                                  { return 0 }
func subScaledWide[T Float](d, x, y []T, s, t T) int                            { return 0 }
func quantizeWide[T Float](d, x []T, q *Quantizer[T]) int                       { return 0 }
func raiseWide[T Float](d, x []T) int                                           { return 0 }
func lowerWide[T Float](d, x []T) int                                           { return 0 }
func quantizeGradWide[T Float](d, lower, higher, g, x []T, q *Quantizer[T]) int { return 0 }
