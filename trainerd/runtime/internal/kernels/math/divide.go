package math

import (
	"math"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Quotients and remainders.
var divideOps = exec.OpTable{
	"RealDiv":     alsoComplex(exec.OpSpec{Types: exec.Floats, Build: buildFloatDiv}, elem.Combine(elem.LoopsOf(divOf[complex64])), elem.Combine(elem.LoopsOf(divOf[complex128]))),
	"Div":         {Types: exec.Numbers, Build: buildDiv(truncDiv[int32], truncDiv[int64], nil)},
	"TruncateDiv": {Types: exec.Numbers, Build: buildDiv(truncDiv[int32], truncDiv[int64], math.Trunc)},
	"FloorDiv":    {Types: exec.Numbers, Build: buildDiv(floorDiv[int32], floorDiv[int64], math.Floor)},
	"FloorMod":    {Types: exec.Numbers, Build: buildMod(floorMod[int32], floorMod[int64], floorModFloat)},
	"Mod":         {Types: exec.Numbers, Build: buildMod(truncMod[int32], truncMod[int64], math.Mod)},
	"TruncateMod": {Types: exec.Numbers, Build: buildMod(truncMod[int32], truncMod[int64], math.Mod)},
	"DivNoNan":    alsoComplex(exec.OpSpec{Types: exec.Floats, Build: buildDivNoNan}, elem.Combine(elem.LoopsOf(divNoNanOf[complex64])), elem.Combine(elem.LoopsOf(divNoNanOf[complex128]))),
	"Xdivy":       floatBinary(func(x, y float64) float64 { return unlessZero(x, x/y) }),
}

func buildFloatDiv(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), chained(b, divFloats[float32]()), elem.SliceCombine(divFloats[float64]()))
}

func buildDivNoNan(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), elem.Combine(divNoNanLoops[float32]()), elem.Combine(divNoNanLoops[float64]()))
}

func divNoNanLoops[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				v := T(0)
				if y[i] != 0 {
					v = x[i] / y[i]
				}
				d[i] = v
			}
		},
		Vs: func(d, x []T, y T) {
			if y == 0 {
				clear(d)
				return
			}
			for i := range d {
				d[i] = x[i] / y
			}
		},
		Sv: func(d []T, x T, y []T) {
			for i := range d {
				v := T(0)
				if y[i] != 0 {
					v = x / y[i]
				}
				d[i] = v
			}
		},
	}
}

func truncDiv[T exec.Integer](x, y T) T { return x / y }

func floorDiv[T exec.Integer](x, y T) T {
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func truncMod[T exec.Integer](x, y T) T { return x % y }

func floorMod[T exec.Integer](x, y T) T {
	r := x % y
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func floorModFloat(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// nonZero guards an integer division.
func nonZero[T exec.Integer](k exec.Kernel) exec.Kernel {
	return func(c *exec.KernelContext) error {
		if slices.Contains(exec.Elems[T](c.In(1)), 0) {
			return c.Invalid("integer division by zero")
		}
		return k(c)
	}
}

// buildDiv builds a division; round, when not nil, is applied to quotients of
// floats.
func buildDiv(i32 func(x, y int32) int32, i64 func(x, y int64) int64, round func(float64) float64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		f32, f64 := chained(b, divFloats[float32]()), elem.SliceCombine(divFloats[float64]())
		if round != nil {
			f32 = elem.Combine(elem.LoopsOf(func(x, y float32) float32 { return float32(round(float64(x / y))) }))
			f64 = elem.Combine(elem.LoopsOf(func(x, y float64) float64 { return round(x / y) }))
		}
		return exec.ByType(b.DType("T"), f32, f64, nonZero[int32](elem.Combine(elem.LoopsOf(i32))), nonZero[int64](elem.Combine(elem.LoopsOf(i64))))
	}
}

func buildMod(i32 func(x, y int32) int32, i64 func(x, y int64) int64, f func(x, y float64) float64) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByType(b.DType("T"), elem.Combine(elem.LoopsOf(func(x, y float32) float32 { return float32(f(float64(x), float64(y))) })), elem.Combine(elem.LoopsOf(f)),
			nonZero[int32](elem.Combine(elem.LoopsOf(i32))), nonZero[int64](elem.Combine(elem.LoopsOf(i64))))
	}
}
