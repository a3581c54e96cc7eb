//go:build amd64 && !noasm

package vec

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

var avx2 = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// register is the bytes of a register.
const register = 32

// wide returns how many of n elements fill whole registers; the functions
// below do those and return their number.
func wide[T Float](n int) int {
	if !avx2 {
		return 0
	}
	var zero T
	return n &^ (register/int(unsafe.Sizeof(zero)) - 1)
}

// single reports whether T is float32.
func single[T Float]() bool {
	var zero T
	return unsafe.Sizeof(zero) == 4
}

func f32[T Float](s []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(s))) }
func f64[T Float](s []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(s))) }

func addWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddAVX2(f32(d), f32(x), f32(y), n)
	} else {
		dAddAVX2(f64(d), f64(x), f64(y), n)
	}
	return n
}

func subWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSubAVX2(f32(d), f32(x), f32(y), n)
	} else {
		dSubAVX2(f64(d), f64(x), f64(y), n)
	}
	return n
}

func mulWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sMulAVX2(f32(d), f32(x), f32(y), n)
	} else {
		dMulAVX2(f64(d), f64(x), f64(y), n)
	}
	return n
}

func divWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sDivAVX2(f32(d), f32(x), f32(y), n)
	} else {
		dDivAVX2(f64(d), f64(x), f64(y), n)
	}
	return n
}

func addScalarWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddScalarAVX2(f32(d), f32(x), float32(s), n)
	} else {
		dAddScalarAVX2(f64(d), f64(x), float64(s), n)
	}
	return n
}

func mulScalarWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sMulScalarAVX2(f32(d), f32(x), float32(s), n)
	} else {
		dMulScalarAVX2(f64(d), f64(x), float64(s), n)
	}
	return n
}

func divScalarWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sDivScalarAVX2(f32(d), f32(x), float32(s), n)
	} else {
		dDivScalarAVX2(f64(d), f64(x), float64(s), n)
	}
	return n
}

func reluWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sReluAVX2(f32(d), f32(x), n)
	} else {
		dReluAVX2(f64(d), f64(x), n)
	}
	return n
}

func reluGradWide[T Float](d, g, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sReluGradAVX2(f32(d), f32(g), f32(x), n)
	} else {
		dReluGradAVX2(f64(d), f64(g), f64(x), n)
	}
	return n
}

func descendWide[T Float](w, g []T, lr T) int {
	n := wide[T](len(w))
	if single[T]() {
		sDescendAVX2(f32(w), f32(g), float32(lr), n)
	} else {
		dDescendAVX2(f64(w), f64(g), float64(lr), n)
	}
	return n
}

func momentumWide[T Float](w, acc, g []T, lr, m T) int {
	n := wide[T](len(w))
	if single[T]() {
		sMomentumAVX2(f32(w), f32(acc), f32(g), float32(lr), float32(m), n)
	} else {
		dMomentumAVX2(f64(w), f64(acc), f64(g), float64(lr), float64(m), n)
	}
	return n
}

func nesterovWide[T Float](w, acc, g []T, lr, m T) int {
	n := wide[T](len(w))
	if single[T]() {
		sNesterovAVX2(f32(w), f32(acc), f32(g), float32(lr), float32(m), n)
	} else {
		dNesterovAVX2(f64(w), f64(acc), f64(g), float64(lr), float64(m), n)
	}
	return n
}

func adagradWide[T Float](w, acc, g []T, lr T) int {
	n := wide[T](len(w))
	if single[T]() {
		sAdagradAVX2(f32(w), f32(acc), f32(g), float32(lr), n)
	} else {
		dAdagradAVX2(f64(w), f64(acc), f64(g), float64(lr), n)
	}
	return n
}

func adamWide[T Float](w, m, v, g []T, alpha, c1, c2, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sAdamAVX2(f32(w), f32(m), f32(v), f32(g), float32(alpha), float32(c1), float32(c2), float32(eps), n)
	} else {
		dAdamAVX2(f64(w), f64(m), f64(v), f64(g), float64(alpha), float64(c1), float64(c2), float64(eps), n)
	}
	return n
}

func rmsPropWide[T Float](w, ms, mom, g []T, lr, c, m, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sRmsPropAVX2(f32(w), f32(ms), f32(mom), f32(g), float32(lr), float32(c), float32(m), float32(eps), n)
	} else {
		dRmsPropAVX2(f64(w), f64(ms), f64(mom), f64(g), float64(lr), float64(c), float64(m), float64(eps), n)
	}
	return n
}
