package math

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// largerLoops and smallerLoops are those of elem.Larger and elem.Smaller, without a
// call for each element.

func largerLoops[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = elem.Larger(x[i], y[i])
			}
		},
		Vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = elem.Larger(x[i], y)
			}
		},
		Sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = elem.Larger(x, y[i])
			}
		},
	}
}

func smallerLoops[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = elem.Smaller(x[i], y[i])
			}
		},
		Vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = elem.Smaller(x[i], y)
			}
		},
		Sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = elem.Smaller(x, y[i])
			}
		},
	}
}
