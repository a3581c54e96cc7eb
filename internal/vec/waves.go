package vec

import "math"

// Sin sets d to the sines of x.
func Sin[T Float](d, x []T) { waves(d, x, sinWide[T], math.Sin) }

// Cos sets d to the cosines of x.
func Cos[T Float](d, x []T) { waves(d, x, cosWide[T], math.Cos) }

// The assembly takes numbers up to widestWave, some elements at a time.
const (
	widestWave = 1e5
	waveBlock  = 256
)

func waves[T Float](d, x []T, wide func(d, x []T) int, f func(float64) float64) {
	for x = x[:len(d)]; len(d) > 0; {
		n := min(waveBlock, len(d))
		// None is larger than the root of the sum of the squares.
		if !(SumSquares(x[:n]) <= widestWave*widestWave) || wide(d[:n], x[:n]) < n {
			eachWave(d[:n], x, wide, f)
		}
		d, x = d[n:], x[n:]
	}
}

// eachWave looks at each element of a block. What d was may be x, so x is kept.
func eachWave[T Float](d, x []T, wide func(d, x []T) int, f func(float64) float64) {
	var kept [waveBlock]T
	n := copy(kept[:], x[:len(d)])
	done := wide(d, x[:n])
	for i, v := range kept[:n] {
		if i >= done || !(v >= -widestWave && v <= widestWave) {
			d[i] = T(f(float64(v)))
		}
	}
}
