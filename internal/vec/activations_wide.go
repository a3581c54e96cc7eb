//go:build (amd64 || arm64) && !noasm

package vec

func absWide[T Float](d, x []T, none T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAbs(f32(d), f32(x), float32(none), n)
	} else {
		dAbs(f64(d), f64(x), float64(none), n)
	}
	return n
}

func squareWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSquare(f32(d), f32(x), n)
	} else {
		dSquare(f64(d), f64(x), n)
	}
	return n
}

func sqrtWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSqrt(f32(d), f32(x), n)
	} else {
		dSqrt(f64(d), f64(x), n)
	}
	return n
}

func rsqrtWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sRsqrt(f32(d), f32(x), 1, n)
	} else {
		dRsqrt(f64(d), f64(x), 1, n)
	}
	return n
}

func scalarSubWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sScalarSub(f32(d), f32(x), float32(s), n)
	} else {
		dScalarSub(f64(d), f64(x), float64(s), n)
	}
	return n
}

func scalarDivWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sScalarDiv(f32(d), f32(x), float32(s), n)
	} else {
		dScalarDiv(f64(d), f64(x), float64(s), n)
	}
	return n
}

func squaredDifferenceWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSquaredDifference(f32(d), f32(x), f32(y), n)
	} else {
		dSquaredDifference(f64(d), f64(x), f64(y), n)
	}
	return n
}

func tanhGradWide[T Float](d, y, g []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sTanhGrad(f32(d), f32(y), f32(g), 1, n)
	} else {
		dTanhGrad(f64(d), f64(y), f64(g), 1, n)
	}
	return n
}

func sigmoidGradWide[T Float](d, y, g []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSigmoidGrad(f32(d), f32(y), f32(g), 1, n)
	} else {
		dSigmoidGrad(f64(d), f64(y), f64(g), 1, n)
	}
	return n
}

func leakyReluWide[T Float](d, x []T, slope T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLeakyRelu(f32(d), f32(x), float32(slope), n)
	} else {
		dLeakyRelu(f64(d), f64(x), float64(slope), n)
	}
	return n
}

func leakyReluGradWide[T Float](d, g, x []T, slope T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLeakyReluGrad(f32(d), f32(g), f32(x), float32(slope), n)
	} else {
		dLeakyReluGrad(f64(d), f64(g), f64(x), float64(slope), n)
	}
	return n
}

func normalizeWide[T Float](d, x, mean, factor, offset []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sNormalize(f32(d), f32(x), f32(mean), f32(factor), f32(offset), n)
	} else {
		dNormalize(f64(d), f64(x), f64(mean), f64(factor), f64(offset), n)
	}
	return n
}

func normalizeGradWide[T Float](d, g, x, mean, factor, shift, slope []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sNormalizeGrad(f32(d), f32(g), f32(x), f32(mean), f32(factor), f32(shift), f32(slope), n)
	} else {
		dNormalizeGrad(f64(d), f64(g), f64(x), f64(mean), f64(factor), f64(shift), f64(slope), n)
	}
	return n
}

func momentsWide[T Float](sums, squares, x, shift []T) int {
	n := wide[T](len(sums))
	if single[T]() {
		sMoments(f32(sums), f32(squares), f32(x), f32(shift), n)
	} else {
		dMoments(f64(sums), f64(squares), f64(x), f64(shift), n)
	}
	return n
}

func gradMomentsWide[T Float](sums, dots, g, x, mean []T) int {
	n := wide[T](len(sums))
	if single[T]() {
		sGradMoments(f32(sums), f32(dots), f32(g), f32(x), f32(mean), n)
	} else {
		dGradMoments(f64(sums), f64(dots), f64(g), f64(x), f64(mean), n)
	}
	return n
}

func floorWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sFloor(f32(d), f32(x), n)
	} else {
		dFloor(f64(d), f64(x), n)
	}
	return n
}

func addScaledWide[T Float](d, x []T, s T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddScaled(f32(d), f32(x), float32(s), n)
	} else {
		dAddScaled(f64(d), f64(x), float64(s), n)
	}
	return n
}

func addProductWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sAddProduct(f32(d), f32(x), f32(y), n)
	} else {
		dAddProduct(f64(d), f64(x), f64(y), n)
	}
	return n
}

func clippedReluWide[T Float](d, x []T, top T) int {
	n := wide[T](len(d))
	if single[T]() {
		sClippedRelu(f32(d), f32(x), float32(top), n)
	} else {
		dClippedRelu(f64(d), f64(x), float64(top), n)
	}
	return n
}

func clippedReluGradWide[T Float](d, g, x []T, top, one T) int {
	n := wide[T](len(d))
	if single[T]() {
		sClippedReluGrad(f32(d), f32(g), f32(x), float32(top), float32(one), n)
	} else {
		dClippedReluGrad(f64(d), f64(g), f64(x), float64(top), float64(one), n)
	}
	return n
}

func maximumWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sMaximum(f32(d), f32(x), f32(y), n)
	} else {
		dMaximum(f64(d), f64(x), f64(y), n)
	}
	return n
}

func minimumWide[T Float](d, x, y []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sMinimum(f32(d), f32(x), f32(y), n)
	} else {
		dMinimum(f64(d), f64(x), f64(y), n)
	}
	return n
}

func expm1Wide[T Float](d, x, u, l []T, one, minus T) int {
	n := wide[T](len(d))
	if single[T]() {
		sExpm1(f32(d), f32(x), f32(u), f32(l), float32(one), float32(minus), n)
	} else {
		dExpm1(f64(d), f64(x), f64(u), f64(l), float64(one), float64(minus), n)
	}
	return n
}

func log1pWide[T Float](d, x, u, l []T, one T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLog1p(f32(d), f32(x), f32(u), f32(l), float32(one), n)
	} else {
		dLog1p(f64(d), f64(x), f64(u), f64(l), float64(one), n)
	}
	return n
}

func eluWide[T Float](d, x, e []T, above, below T) int {
	n := wide[T](len(d))
	if single[T]() {
		sElu(f32(d), f32(x), f32(e), float32(above), float32(below), n)
	} else {
		dElu(f64(d), f64(x), f64(e), float64(above), float64(below), n)
	}
	return n
}

func eluGradWide[T Float](d, g, y []T, above, below, none T) int {
	n := wide[T](len(d))
	if single[T]() {
		sEluGrad(f32(d), f32(g), f32(y), float32(above), float32(below), float32(none), n)
	} else {
		dEluGrad(f64(d), f64(g), f64(y), float64(above), float64(below), float64(none), n)
	}
	return n
}

func signWide[T Float](d, x []T, one, minus, none T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSign(f32(d), f32(x), float32(one), float32(minus), float32(none), n)
	} else {
		dSign(f64(d), f64(x), float64(one), float64(minus), float64(none), n)
	}
	return n
}

func rotateWide[T Float](x, y []T, c, s T) int {
	n := wide[T](len(x))
	if single[T]() {
		sRotate(f32(x), f32(y), float32(c), float32(s), n)
	} else {
		dRotate(f64(x), f64(y), float64(c), float64(s), n)
	}
	return n
}

func subScaledWide[T Float](d, x, y []T, s, t T) int {
	n := wide[T](len(d))
	if single[T]() {
		sSubScaled(f32(d), f32(x), f32(y), float32(s), float32(t), n)
	} else {
		dSubScaled(f64(d), f64(x), f64(y), float64(s), float64(t), n)
	}
	return n
}

func quantizeWide[T Float](d, x []T, q *Quantizer[T]) int {
	n := wide[T](len(d))
	if single[T]() {
		sQuantize(f32(d), f32(x), float32(q.Low), float32(q.High), float32(q.Inverse), float32(q.Zero), .5, float32(q.Scale), n)
	} else {
		dQuantize(f64(d), f64(x), float64(q.Low), float64(q.High), float64(q.Inverse), float64(q.Zero), .5, float64(q.Scale), n)
	}
	return n
}

func raiseWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sRaise(f32(d), f32(x), n)
	} else {
		dRaise(f64(d), f64(x), n)
	}
	return n
}

func lowerWide[T Float](d, x []T) int {
	n := wide[T](len(d))
	if single[T]() {
		sLower(f32(d), f32(x), n)
	} else {
		dLower(f64(d), f64(x), n)
	}
	return n
}

func quantizeGradWide[T Float](d, lower, higher, g, x []T, q *Quantizer[T]) int {
	n := wide[T](len(d))
	if single[T]() {
		sQuantizeGrad(f32(d), f32(lower), f32(higher), f32(g), f32(x), float32(q.Low), float32(q.High), 1, 0, n)
	} else {
		dQuantizeGrad(f64(d), f64(lower), f64(higher), f64(g), f64(x), float64(q.Low), float64(q.High), 1, 0, n)
	}
	return n
}
