package vec

import "math"

// Sin sets d to the sines of x.
func Sin[T Float](d, x []T) { waves(d, x, sinWide[T], math.Sin) }

// Cos sets d to the cosines of x.
func Cos[T Float](d, x []T) { waves(d, x, cosWide[T], math.Cos) }

// The assembly takes numbers up to widestWave, and what d was may be x: so x is kept, some
// elements at a time.
const (
	widestWave = 1e5
	waveBlock  = 256
)

func waves[T Float](d, x []T, wide func(d, x []T) int, f func(float64) float64) {
	var kept [waveBlock]T
	for x = x[:len(d)]; len(d) > 0; {
		n := copy(kept[:], x)
		done := wide(d[:n], x[:n])
		for i, v := range kept[:n] {
			if i >= done || !(v >= -widestWave && v <= widestWave) {
				d[i] = T(f(float64(v)))
			}
		}
		d, x = d[n:], x[n:]
	}
}
