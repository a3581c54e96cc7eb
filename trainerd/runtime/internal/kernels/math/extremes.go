package math

import (
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// largerLoops and smallerLoops are those of elem.Larger and elem.Smaller, by vectors.
// Of a zero and minus zero, the second one is the result.

func largerLoops[T exec.Float]() *elem.Loops[T, T] { return extremeLoops(vec.Maximum[T]) }

func smallerLoops[T exec.Float]() *elem.Loops[T, T] { return extremeLoops(vec.Minimum[T]) }

// extremeLoops are the loops of f, which sees a scalar as a slice of equal elements.
func extremeLoops[T exec.Float](f func(d, x, y []T)) *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: f,
		Vs: func(d, x []T, y T) {
			var same equals[T]
			for y := same.fill(y, len(d)); len(d) > 0; {
				n := min(len(y), len(d))
				f(d[:n], x[:n], y[:n])
				d, x = d[n:], x[n:]
			}
		},
		Sv: func(d []T, x T, y []T) {
			var same equals[T]
			for x := same.fill(x, len(d)); len(d) > 0; {
				n := min(len(x), len(d))
				f(d[:n], x[:n], y[:n])
				d, y = d[n:], y[n:]
			}
		},
	}
}

// equals is memory for equal elements, so few that they stay in the first cache.
type equals[T exec.Float] [256]T

// fill returns at most n elements that are v.
func (e *equals[T]) fill(v T, n int) []T {
	s := e[:min(n, len(e))]
	for i := range s {
		s[i] = v
	}
	return s
}
