// Package vec is element-wise arithmetic on slices of floats, with AVX2 where
// the processor has it, and with NEON on arm64 (unless the build tag noasm is
// set).
//
// In every function the first slice gives the length, and the others must not
// be shorter. Where one slice is written, others may be the same, but must not
// overlap it otherwise; where several are, all must be different memory.
//
// # Bits
//
// Results are bit for bit those of the loops in Go, whatever the processor: no
// operation is fused or reordered, and sums have a fixed number of lanes. The
// exceptions are the approximations for float32, [Exp], [Log], [Tanh], [Erf], [Erfc],
// [Sigmoid], [Sin] and [Cos]: AVX2 and NEON compute the same polynomials in the same order,
// with fused multiplications, and so have the same bits; the loops in Go use package
// math. Which of several not-a-numbers comes out, and the sign of a zero that is
// the largest element, depend on the processor.
//
// The assembly is written by tools/asmgen.
package vec

import "math"

//go:generate go -C ../../tools run ./asmgen ..

// Float is a type of elements.
type Float interface{ ~float32 | ~float64 }

func sqrt[T Float](x T) T { return T(math.Sqrt(float64(x))) }

// Add sets d to x + y.
func Add[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := addWide(d, x, y); i < len(d); i++ {
		d[i] = x[i] + y[i]
	}
}

// Sub sets d to x - y.
func Sub[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := subWide(d, x, y); i < len(d); i++ {
		d[i] = x[i] - y[i]
	}
}

// Mul sets d to x * y.
func Mul[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := mulWide(d, x, y); i < len(d); i++ {
		d[i] = x[i] * y[i]
	}
}

// Div sets d to x / y.
func Div[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := divWide(d, x, y); i < len(d); i++ {
		d[i] = x[i] / y[i]
	}
}

// AddScalar sets d to x + s.
func AddScalar[T Float](d, x []T, s T) {
	x = x[:len(d)]
	for i := addScalarWide(d, x, s); i < len(d); i++ {
		d[i] = x[i] + s
	}
}

// MulScalar sets d to x * s.
func MulScalar[T Float](d, x []T, s T) {
	x = x[:len(d)]
	for i := mulScalarWide(d, x, s); i < len(d); i++ {
		d[i] = x[i] * s
	}
}

// DivScalar sets d to x / s.
func DivScalar[T Float](d, x []T, s T) {
	x = x[:len(d)]
	for i := divScalarWide(d, x, s); i < len(d); i++ {
		d[i] = x[i] / s
	}
}

// Relu sets d to x, and to zero where x is below it.
func Relu[T Float](d, x []T) {
	x = x[:len(d)]
	for i := reluWide(d, x); i < len(d); i++ {
		d[i] = x[i]
		if x[i] < 0 {
			d[i] = 0
		}
	}
}

// ReluGrad sets d to g where x is above zero, else to zero times g: a gradient
// that is NaN or infinite stays visible.
func ReluGrad[T Float](d, g, x []T) {
	g, x = g[:len(d)], x[:len(d)]
	for i := reluGradWide(d, g, x, 1); i < len(d); i++ {
		v := g[i]
		if !(x[i] > 0) {
			v *= 0
		}
		d[i] = v
	}
}

// Larger sets best to x, and place to at, where x is above best.
func Larger[T Float](best, place, x []T, at T) {
	place, x = place[:len(best)], x[:len(best)]
	for i := largerWide(best, place, x, at); i < len(best); i++ {
		if x[i] > best[i] {
			best[i], place[i] = x[i], at
		}
	}
}

// Largest sets d to x where x is above it or no number.
func Largest[T Float](d, x []T) {
	x = x[:len(d)]
	for i := largestWide(d, x); i < len(d); i++ {
		if x[i] > d[i] || x[i] != x[i] {
			d[i] = x[i]
		}
	}
}

// AddEqual adds x to d where place is at.
func AddEqual[T Float](d, x, place []T, at T) {
	x, place = x[:len(d)], place[:len(d)]
	for i := addEqualWide(d, x, place, at); i < len(d); i++ {
		v := T(0)
		if place[i] == at {
			v = x[i]
		}
		d[i] += v
	}
}

// Descend subtracts lr*g from w.
func Descend[T Float](w, g []T, lr T) {
	g = g[:len(w)]
	for i := descendWide(w, g, lr); i < len(w); i++ {
		w[i] -= T(g[i] * lr)
	}
}

// Momentum is a step of the momentum optimizer.
func Momentum[T Float](w, acc, g []T, lr, m T) {
	acc, g = acc[:len(w)], g[:len(w)]
	for i := momentumWide(w, acc, g, lr, m); i < len(w); i++ {
		acc[i] = T(acc[i]*m) + g[i]
		w[i] -= T(acc[i] * lr)
	}
}

// Nesterov is Momentum with Nesterov's look ahead.
func Nesterov[T Float](w, acc, g []T, lr, m T) {
	acc, g = acc[:len(w)], g[:len(w)]
	for i := nesterovWide(w, acc, g, lr, m); i < len(w); i++ {
		acc[i] = T(acc[i]*m) + g[i]
		w[i] -= T(g[i]*lr) + T(T(acc[i]*m)*lr)
	}
}

// Adagrad is a step of the Adagrad optimizer.
func Adagrad[T Float](w, acc, g []T, lr, eps T) {
	acc, g = acc[:len(w)], g[:len(w)]
	for i := adagradWide(w, acc, g, lr, eps); i < len(w); i++ {
		acc[i] += T(g[i] * g[i])
		w[i] -= T(g[i]*lr) / (sqrt(acc[i]) + eps)
	}
}

// Adam is a step of the Adam optimizer: m and v are the moments, c1 and c2 one
// less their decays, and alpha is the corrected learning rate.
func Adam[T Float](w, m, v, g []T, alpha, c1, c2, eps T) {
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	for i := adamWide(w, m, v, g, alpha, c1, c2, eps); i < len(w); i++ {
		m[i] += T((g[i] - m[i]) * c1)
		v[i] += T((T(g[i]*g[i]) - v[i]) * c2)
		w[i] -= T(m[i]*alpha) / (sqrt(v[i]) + eps)
	}
}

// RMSProp is a step of the RMSProp optimizer: ms is the mean square, c one
// less its decay, mom the momentum and m its factor.
func RMSProp[T Float](w, ms, mom, g []T, lr, c, m, eps T) {
	ms, mom, g = ms[:len(w)], mom[:len(w)], g[:len(w)]
	for i := rmsPropWide(w, ms, mom, g, lr, c, m, eps); i < len(w); i++ {
		ms[i] += T((T(g[i]*g[i]) - ms[i]) * c)
		mom[i] = T(mom[i]*m) + T(g[i]*lr)/sqrt(ms[i]+eps)
		w[i] -= mom[i]
	}
}

// CenteredRMSProp is RMSProp with the mean gradient, mg.
func CenteredRMSProp[T Float](w, mg, ms, mom, g []T, lr, c, m, eps T) {
	mg, ms, mom, g = mg[:len(w)], ms[:len(w)], mom[:len(w)], g[:len(w)]
	for i := centeredRMSPropWide(w, mg, ms, mom, g, lr, c, m, eps); i < len(w); i++ {
		ms[i] += T((T(g[i]*g[i]) - ms[i]) * c)
		mg[i] += T((g[i] - mg[i]) * c)
		mom[i] = T(mom[i]*m) + T(g[i]*lr)/sqrt(ms[i]-T(mg[i]*mg[i])+eps)
		w[i] -= mom[i]
	}
}

// Adadelta is a step of the Adadelta optimizer: acc and update are the mean squares
// of the gradient and of the updates, and c is one less their decay, rho.
func Adadelta[T Float](w, acc, update, g []T, lr, rho, c, eps T) {
	acc, update, g = acc[:len(w)], update[:len(w)], g[:len(w)]
	for i := adadeltaWide(w, acc, update, g, lr, rho, c, eps); i < len(w); i++ {
		acc[i] = T(acc[i]*rho) + T(T(g[i]*g[i])*c)
		u := T(sqrt(update[i]+eps) / sqrt(acc[i]+eps) * g[i])
		w[i] -= T(u * lr)
		update[i] = T(update[i]*rho) + T(T(u*u)*c)
	}
}

// Ftrl is a step of the Ftrl optimizer whose rate falls as the square root of the
// accumulated squares: l1, l2 and shrinkage are its regularisers.
func Ftrl[T Float](w, acc, linear, g []T, lr, l1, l2, shrinkage T) {
	acc, linear, g = acc[:len(w)], linear[:len(w)], g[:len(w)]
	for i := ftrlWide(w, acc, linear, g, lr, l1, -l1, 2*l2, 2*shrinkage); i < len(w); i++ {
		next := acc[i] + T(g[i]*g[i])
		root := sqrt(next)
		change := T((root - sqrt(acc[i])) / lr * w[i])
		z := linear[i] + (g[i] + T(2*shrinkage*w[i]) - change)
		acc[i], linear[i], w[i] = next, z, 0
		if quadratic := root/lr + 2*l2; z > l1 {
			w[i] = (l1 - z) / quadratic
		} else if z < -l1 {
			w[i] = (-l1 - z) / quadratic
		}
	}
}
