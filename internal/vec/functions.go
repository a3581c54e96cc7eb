package vec

import "math"

// Functions whose float32 form is an approximation, within four units in the
// last place of the exact value (erf and erfc: within six). The portable form is exact to one. An element's
// result does not depend on its place.

// Exp sets d to the exponentials of x, within two units in the last place. It
// is faster than [math.Exp] for float32.
func Exp[T Float](d, x []T) {
	x = x[:len(d)]
	for i := expWide(d, x); i < len(d); i++ {
		d[i] = T(math.Exp(float64(x[i])))
	}
}

// Log sets d to the natural logarithms of x.
func Log[T Float](d, x []T) {
	x = x[:len(d)]
	for i := logWide(d, x); i < len(d); i++ {
		d[i] = T(math.Log(float64(x[i])))
	}
}

// Tanh sets d to the hyperbolic tangents of x.
func Tanh[T Float](d, x []T) {
	x = x[:len(d)]
	for i := tanhWide(d, x); i < len(d); i++ {
		d[i] = T(math.Tanh(float64(x[i])))
	}
}

// Erf sets d to the error functions of x.
func Erf[T Float](d, x []T) {
	x = x[:len(d)]
	for i := erfWide(d, x); i < len(d); i++ {
		d[i] = T(math.Erf(float64(x[i])))
	}
}

// Erfc sets d to one minus the error functions of x, also where that is near zero.
func Erfc[T Float](d, x []T) {
	x = x[:len(d)]
	for i := erfcWide(d, x); i < len(d); i++ {
		d[i] = T(math.Erfc(float64(x[i])))
	}
}

// Sigmoid sets d to the logistic functions of x.
func Sigmoid[T Float](d, x []T) {
	x = x[:len(d)]
	for i := sigmoidWide(d, x); i < len(d); i++ {
		d[i] = T(logistic(float64(x[i])))
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
