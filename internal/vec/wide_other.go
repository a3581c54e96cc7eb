//go:build !(amd64 || arm64) || noasm

package vec

// Without assembly nothing is done here, and the portable loops do all.

func addWide[T Float](d, x, y []T) int                                            { return 0 }
func subWide[T Float](d, x, y []T) int                                            { return 0 }
func mulWide[T Float](d, x, y []T) int                                            { return 0 }
func divWide[T Float](d, x, y []T) int                                            { return 0 }
func addScalarWide[T Float](d, x []T, s T) int                                    { return 0 }
func mulScalarWide[T Float](d, x []T, s T) int                                    { return 0 }
func divScalarWide[T Float](d, x []T, s T) int                                    { return 0 }
func reluWide[T Float](d, x []T) int                                              { return 0 }
func largerWide[T Float](best, place, x []T, at T) int                            { return 0 }
func reluGradWide[T Float](d, g, x []T, one T) int                                { return 0 }
func descendWide[T Float](w, g []T, lr T) int                                     { return 0 }
func momentumWide[T Float](w, acc, g []T, lr, m T) int                            { return 0 }
func nesterovWide[T Float](w, acc, g []T, lr, m T) int                            { return 0 }
func adagradWide[T Float](w, acc, g []T, lr, eps T) int                           { return 0 }
func adamWide[T Float](w, m, v, g []T, alpha, c1, c2, eps T) int                  { return 0 }
func rmsPropWide[T Float](w, ms, mom, g []T, lr, c, m, eps T) int                 { return 0 }
func largestWide[T Float](d, x []T) int                                           { return 0 }
func addEqualWide[T Float](d, x, place []T, at T) int                             { return 0 }
func centeredRMSPropWide[T Float](w, mg, ms, mom, g []T, lr, c, m, eps T) int     { return 0 }
func adadeltaWide[T Float](w, acc, update, g []T, lr, rho, c, eps T) int          { return 0 }
func ftrlWide[T Float](w, acc, linear, g []T, lr, l1, minus, l2, shrinkage T) int { return 0 }
