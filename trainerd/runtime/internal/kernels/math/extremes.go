package math

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// largerLoops and smallerLoops are those of elem.Larger and elem.Smaller, without a
// call for each element, and without a branch that depends on which is larger. Of
// a zero and minus zero, the second one is the result.

func larger[T exec.Float](x, y T) T {
	if x == y {
		return y
	}
	return max(x, y)
}

func smaller[T exec.Float](x, y T) T {
	if x == y {
		return y
	}
	return min(x, y)
}

func largerLoops[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = larger(x[i], y[i])
			}
		},
		Vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = larger(x[i], y)
			}
		},
		Sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = larger(x, y[i])
			}
		},
	}
}

func smallerLoops[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = smaller(x[i], y[i])
			}
		},
		Vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = smaller(x[i], y)
			}
		},
		Sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = smaller(x, y[i])
			}
		},
	}
}
