//go:build (amd64 || arm64) && !noasm

package vec

import "unsafe"

// wide returns how many of n elements fill whole registers; the functions
// below do those and return their number.
func wide[T Float](n int) int {
	if !assembly {
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
		sAdd(f32(d), f32(x), f32(y), n)
	} else {
		dAdd(f64(d), f64(x), f64(y), n)
	}
	return n
}

func subWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSub(f32(d), f32(x), f32(y), n)
	} else {
		dSub(f64(d), f64(x), f64(y), n)
	}
	return n
}

func mulWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sMul(f32(d), f32(x), f32(y), n)
	} else {
		dMul(f64(d), f64(x), f64(y), n)
	}
	return n
}

func divWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sDiv(f32(d), f32(x), f32(y), n)
	} else {
		dDiv(f64(d), f64(x), f64(y), n)
	}
	return n
}

func addScalarWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddScalar(f32(d), f32(x), float32(s), n)
	} else {
		dAddScalar(f64(d), f64(x), float64(s), n)
	}
	return n
}

func mulScalarWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sMulScalar(f32(d), f32(x), float32(s), n)
	} else {
		dMulScalar(f64(d), f64(x), float64(s), n)
	}
	return n
}

func divScalarWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sDivScalar(f32(d), f32(x), float32(s), n)
	} else {
		dDivScalar(f64(d), f64(x), float64(s), n)
	}
	return n
}

func reluWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sRelu(f32(d), f32(x), n)
	} else {
		dRelu(f64(d), f64(x), n)
	}
	return n
}

func largerWide[T Float](best, place, x []T, at T) int {
	n := wide[T](len(best))
	if single[T]() {
		sLarger(f32(best), f32(place), f32(x), float32(at), n)
	} else {
		dLarger(f64(best), f64(place), f64(x), float64(at), n)
	}
	return n
}

func reluGradWide[T Float](d, g, x []T, one T) int {
	n := wide[T](len(d))
	if single[T]() {
		sReluGrad(f32(d), f32(g), f32(x), float32(one), n)
	} else {
		dReluGrad(f64(d), f64(g), f64(x), float64(one), n)
	}
	return n
}

func descendWide[T Float](w, g []T, lr T) int {
	n := wide[T](len(w))
	if single[T]() {
		sDescend(f32(w), f32(g), float32(lr), n)
	} else {
		dDescend(f64(w), f64(g), float64(lr), n)
	}
	return n
}

func momentumWide[T Float](w, acc, g []T, lr, m T) int {
	n := wide[T](len(w))
	if single[T]() {
		sMomentum(f32(w), f32(acc), f32(g), float32(lr), float32(m), n)
	} else {
		dMomentum(f64(w), f64(acc), f64(g), float64(lr), float64(m), n)
	}
	return n
}

func nesterovWide[T Float](w, acc, g []T, lr, m T) int {
	n := wide[T](len(w))
	if single[T]() {
		sNesterov(f32(w), f32(acc), f32(g), float32(lr), float32(m), n)
	} else {
		dNesterov(f64(w), f64(acc), f64(g), float64(lr), float64(m), n)
	}
	return n
}

func adagradWide[T Float](w, acc, g []T, lr, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sAdagrad(f32(w), f32(acc), f32(g), float32(lr), float32(eps), n)
	} else {
		dAdagrad(f64(w), f64(acc), f64(g), float64(lr), float64(eps), n)
	}
	return n
}

func adamWide[T Float](w, m, v, g []T, alpha, c1, c2, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sAdam(f32(w), f32(m), f32(v), f32(g), float32(alpha), float32(c1), float32(c2), float32(eps), n)
	} else {
		dAdam(f64(w), f64(m), f64(v), f64(g), float64(alpha), float64(c1), float64(c2), float64(eps), n)
	}
	return n
}

func rmsPropWide[T Float](w, ms, mom, g []T, lr, c, m, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sRmsProp(f32(w), f32(ms), f32(mom), f32(g), float32(lr), float32(c), float32(m), float32(eps), n)
	} else {
		dRmsProp(f64(w), f64(ms), f64(mom), f64(g), float64(lr), float64(c), float64(m), float64(eps), n)
	}
	return n
}

func largestWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLargest(f32(d), f32(x), n)
	} else {
		dLargest(f64(d), f64(x), n)
	}
	return n
}

func addEqualWide[T Float](d, x, place []T, at T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddEqual(f32(d), f32(x), f32(place), float32(at), n)
	} else {
		dAddEqual(f64(d), f64(x), f64(place), float64(at), n)
	}
	return n
}

func centeredRMSPropWide[T Float](w, mg, ms, mom, g []T, lr, c, m, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sCenteredRMSProp(f32(w), f32(mg), f32(ms), f32(mom), f32(g), float32(lr), float32(c), float32(m), float32(eps), n)
	} else {
		dCenteredRMSProp(f64(w), f64(mg), f64(ms), f64(mom), f64(g), float64(lr), float64(c), float64(m), float64(eps), n)
	}
	return n
}

func adadeltaWide[T Float](w, acc, update, g []T, lr, rho, c, eps T) int {
	n := wide[T](len(w))
	if single[T]() {
		sAdadelta(f32(w), f32(acc), f32(update), f32(g), float32(lr), float32(rho), float32(c), float32(eps), n)
	} else {
		dAdadelta(f64(w), f64(acc), f64(update), f64(g), float64(lr), float64(rho), float64(c), float64(eps), n)
	}
	return n
}

func ftrlWide[T Float](w, acc, linear, g []T, lr, l1, minus, l2, shrinkage T) int {
	n := wide[T](len(w))
	if single[T]() {
		sFtrl(f32(w), f32(acc), f32(linear), f32(g), float32(lr), float32(l1), float32(minus), float32(l2), float32(shrinkage), n)
	} else {
		dFtrl(f64(w), f64(acc), f64(linear), f64(g), float64(lr), float64(l1), float64(minus), float64(l2), float64(shrinkage), n)
	}
	return n
}
