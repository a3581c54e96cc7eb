//go:build amd64 && !noasm

package vec

func squareWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSquareAVX2(f32(d), f32(x), n)
	} else {
		dSquareAVX2(f64(d), f64(x), n)
	}
	return n
}

func sqrtWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSqrtAVX2(f32(d), f32(x), n)
	} else {
		dSqrtAVX2(f64(d), f64(x), n)
	}
	return n
}

func rsqrtWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sRsqrtAVX2(f32(d), f32(x), 1, n)
	} else {
		dRsqrtAVX2(f64(d), f64(x), 1, n)
	}
	return n
}

func scalarSubWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sScalarSubAVX2(f32(d), f32(x), float32(s), n)
	} else {
		dScalarSubAVX2(f64(d), f64(x), float64(s), n)
	}
	return n
}

func scalarDivWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sScalarDivAVX2(f32(d), f32(x), float32(s), n)
	} else {
		dScalarDivAVX2(f64(d), f64(x), float64(s), n)
	}
	return n
}

func squaredDifferenceWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSquaredDifferenceAVX2(f32(d), f32(x), f32(y), n)
	} else {
		dSquaredDifferenceAVX2(f64(d), f64(x), f64(y), n)
	}
	return n
}

func tanhGradWide[T Float](d, y, g []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sTanhGradAVX2(f32(d), f32(y), f32(g), 1, n)
	} else {
		dTanhGradAVX2(f64(d), f64(y), f64(g), 1, n)
	}
	return n
}

func sigmoidGradWide[T Float](d, y, g []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSigmoidGradAVX2(f32(d), f32(y), f32(g), 1, n)
	} else {
		dSigmoidGradAVX2(f64(d), f64(y), f64(g), 1, n)
	}
	return n
}

func leakyReluWide[T Float](d, x []T, slope T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLeakyReluAVX2(f32(d), f32(x), float32(slope), n)
	} else {
		dLeakyReluAVX2(f64(d), f64(x), float64(slope), n)
	}
	return n
}

func leakyReluGradWide[T Float](d, g, x []T, slope T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLeakyReluGradAVX2(f32(d), f32(g), f32(x), float32(slope), n)
	} else {
		dLeakyReluGradAVX2(f64(d), f64(g), f64(x), float64(slope), n)
	}
	return n
}

func normalizeWide[T Float](d, x, mean, factor, offset []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sNormalizeAVX2(f32(d), f32(x), f32(mean), f32(factor), f32(offset), n)
	} else {
		dNormalizeAVX2(f64(d), f64(x), f64(mean), f64(factor), f64(offset), n)
	}
	return n
}

func normalizeGradWide[T Float](d, g, x, mean, factor, shift, slope []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sNormalizeGradAVX2(f32(d), f32(g), f32(x), f32(mean), f32(factor), f32(shift), f32(slope), n)
	} else {
		dNormalizeGradAVX2(f64(d), f64(g), f64(x), f64(mean), f64(factor), f64(shift), f64(slope), n)
	}
	return n
}

func momentsWide[T Float](sums, squares, x, shift []T) int {
	n := wide[T](len(sums))
	if single[T]() {
		sMomentsAVX2(f32(sums), f32(squares), f32(x), f32(shift), n)
	} else {
		dMomentsAVX2(f64(sums), f64(squares), f64(x), f64(shift), n)
	}
	return n
}

func gradMomentsWide[T Float](sums, dots, g, x, mean []T) int {
	n := wide[T](len(sums))
	if single[T]() {
		sGradMomentsAVX2(f32(sums), f32(dots), f32(g), f32(x), f32(mean), n)
	} else {
		dGradMomentsAVX2(f64(sums), f64(dots), f64(g), f64(x), f64(mean), n)
	}
	return n
}

func floorWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sFloorAVX2(f32(d), f32(x), n)
	} else {
		dFloorAVX2(f64(d), f64(x), n)
	}
	return n
}

func addScaledWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddScaledAVX2(f32(d), f32(x), float32(s), n)
	} else {
		dAddScaledAVX2(f64(d), f64(x), float64(s), n)
	}
	return n
}
