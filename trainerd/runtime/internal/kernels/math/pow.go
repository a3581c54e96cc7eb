package math

import (
	"math"
	"unsafe"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildPow(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), chained(b, powers[float32]()), elem.SliceCombine(powers[float64]()), intPow[int32](), intPow[int64]())
}

// pow uses the logarithm where its error in double precision is too small to show in the
// result: that takes three quarters of the time.
func pow[T exec.Float](x, y T) T {
	wide, by := float64(x), float64(y)
	if unsafe.Sizeof(x) == 4 && x > 0 && wide <= math.MaxFloat32 && math.Abs(by) <= math.MaxFloat32 {
		return T(math.Exp(by * math.Log(wide)))
	}
	return T(math.Pow(wide, by))
}

func powers[T exec.Float]() *elem.Loops[T, T] {
	general := elem.LoopsOf(pow[T])
	return &elem.Loops[T, T]{Vv: general.Vv, Sv: general.Sv, Vs: scalarPower[T]}
}

// scalarPower raises to one power. Those that programs use are products and
// roots, which are within two units in the last place of the exact power, as
// TensorFlow's is.
func scalarPower[T exec.Float](d, x []T, y T) {
	switch y {
	case 1:
		copy(d, x)
	case 2:
		vec.Square(d, x)
	case 3:
		var squares [powerBlock]T // d may be x
		inBlocks(d, x, func(d, x []T) {
			vec.Square(squares[:len(d)], x)
			vec.Mul(d, squares[:], x)
		})
	case 4:
		inBlocks(d, x, func(d, x []T) {
			vec.Square(d, x)
			vec.Square(d, d)
		})
	case -1:
		vec.ScalarDiv(d, x, 1)
	case -2:
		inBlocks(d, x, func(d, x []T) {
			vec.ScalarDiv(d, x, 1)
			vec.Square(d, d)
		})
	case .5:
		eachPower(d, x, root[T])
	case -.5:
		eachPower(d, x, func(v T) T { return 1 / root(v) })
	default:
		eachPower(d, x, func(v T) T { return pow(v, y) })
	}
}

// root is the square root, of minus infinity infinity and of minus zero zero, as powers
// are.
func root[T exec.Float](x T) T {
	if x == T(math.Inf(-1)) {
		return T(math.Inf(1))
	}
	return elem.Sqrt(x + 0)
}

// powerBlock is a number of elements that stay in the first cache.
const powerBlock = 1024

// inBlocks calls f with blocks of d and x.
func inBlocks[T exec.Float](d, x []T, f func(d, x []T)) {
	for at := 0; at < len(d); at += powerBlock {
		end := min(at+powerBlock, len(d))
		f(d[at:end], x[at:end])
	}
}

func eachPower[T exec.Float](d, x []T, f func(T) T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = f(x[i])
	}
}

func intPow[T int32 | int64]() exec.Kernel {
	k := elem.Combine(elem.LoopsOf(func(x, y T) T {
		r := T(1)
		for ; y > 0; y >>= 1 {
			if y&1 != 0 {
				r *= x
			}
			x *= x
		}
		return r
	}))
	return func(c *exec.KernelContext) error {
		for _, v := range exec.Elems[T](c.In(1)) {
			if v < 0 {
				return c.Invalid("integers to negative integer powers are not allowed")
			}
		}
		return k(c)
	}
}
