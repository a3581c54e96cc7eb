package math

import "github.com/trainerd/trainerd/internal/vec"

// Functions whose results near zero need more than exp and log give: log(1+x),
// exp(x)-1, and activations made of them. They take the vectors' exp and log and
// correct what adding one has lost, as W. Kahan found.

// nearZero is memory for some elements, so few that they stay in the first cache.
type nearZero struct{ u, v, w [512]float32 }

// block returns how many of n elements are next.
func (m *nearZero) block(n int) int { return min(n, len(m.u)) }

// log1p sets d to log(1+x).
func (m *nearZero) log1p(d, x []float32) {
	u, l := m.u[:len(x)], m.v[:len(x)]
	vec.AddScalar(u, x, 1)
	vec.Log(l, u)
	vec.Log1p(d, x, u, l)
}

// expm1 sets d to exp(x)-1.
func (m *nearZero) expm1(d, x []float32) {
	u, l := m.u[:len(x)], m.v[:len(x)]
	vec.Exp(u, x)
	vec.Log(l, u)
	vec.Expm1(d, x, u, l)
}

func logs1p(d, x []float32) {
	var m nearZero
	for len(x) > 0 {
		n := m.block(len(x))
		m.log1p(d[:n], x[:n])
		d, x = d[n:], x[n:]
	}
}

func exps1m(d, x []float32) {
	var m nearZero
	for len(x) > 0 {
		n := m.block(len(x))
		m.expm1(d[:n], x[:n])
		d, x = d[n:], x[n:]
	}
}

// elus sets d to x, and to exp(x)-1 where x is below zero.
func elus(d, x []float32) { scaledElus(d, x, 1, 1) }

// selus is elus, with the scales of the self-normalising activation.
func selus(d, x []float32) { scaledElus(d, x, seluScale, seluAlpha) }

func scaledElus(d, x []float32, above, below float32) {
	var m nearZero
	for len(x) > 0 {
		n := m.block(len(x))
		e := m.w[:n]
		m.expm1(e, x[:n])
		vec.Elu(d[:n], x, e, above, below)
		d, x = d[n:], x[n:]
	}
}

// softplusTop is where log(1+exp(x)) is x to a float32.
const softplusTop = 30

func softpluses(d, x []float32) {
	var m nearZero
	for len(x) > 0 {
		n := m.block(len(x))
		e := m.w[:n]
		vec.Exp(e, x[:n])
		m.log1p(e, e)
		for i, x := range x[:n] {
			if x <= softplusTop {
				x = e[i]
			}
			d[i] = x
		}
		d, x = d[n:], x[n:]
	}
}

// softplusGrads sets d to g/(exp(-x)+1).
func softplusGrads(d, g, x []float32) {
	var m nearZero
	for len(d) > 0 {
		n := m.block(len(d))
		e := m.u[:n]
		vec.MulScalar(e, x[:n], -1)
		vec.Exp(e, e)
		vec.AddScalar(e, e, 1)
		vec.Div(d[:n], g[:n], e)
		d, g, x = d[n:], g[n:], x[n:]
	}
}

func eluGrads(d, g, y []float32) { vec.EluGrad(d, g, y, 1, 1) }

func seluGrads(d, g, y []float32) { vec.EluGrad(d, g, y, seluScale, seluAlpha) }
