package philox

import "math"

// Distributions that need an unknown number of words for a result. Each result
// has its own part of the stream, of reserved blocks.

// pairs hands out doubles that come two at a time, the second first, as
// TensorFlow's kernels take them.
type pairs struct {
	two  [2]float64
	left int
}

func (p *pairs) next(fill func(out []float64)) float64 {
	if p.left == 0 {
		fill(p.two[:])
		p.left = len(p.two)
	}
	p.left--
	return p.two[p.left]
}

// At returns the stream for the i-th of the results that g was reserved for.
func (g *Generator) At(i int) Generator {
	own := *g
	own.Skip(uint64(i) * reserved)
	return own
}

// Gamma returns a variate of the gamma distribution with a shape alpha and rate
// 1, by the method of Marsaglia and Tsang (2000): a normal variate is
// transformed, and rejected now and then. For alpha below 1 one is drawn for
// alpha+1 and scaled by a power of a uniform variate.
func (g *Generator) Gamma(alpha float64) float64 {
	var uniforms, normals pairs
	if alpha == 1 { // the exponential distribution
		return -math.Log1p(-uniforms.next(g.Uniform64))
	}
	d := alpha - 1./3
	if alpha < 1 {
		d = alpha + 2./3
	}
	c := 1. / 3 / math.Sqrt(d)
	for {
		x := normals.next(g.Normal64)
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := uniforms.next(g.Uniform64)
		// The first bound spares the logarithms most of the time, and lets an
		// alpha without a distribution end as no number.
		if !(u < 1-.0331*(x*x)*(x*x) || math.Log(u) < .5*x*x+d*(1-v+math.Log(v))) {
			continue
		}
		if alpha < 1 {
			return d * v * math.Pow(uniforms.next(g.Uniform64), 1/alpha)
		}
		return d * v
	}
}

// fewEvents is the rate from which on events are not drawn one by one.
const fewEvents = 10

// Poisson returns a variate of the Poisson distribution, of at most highest. The
// rate is a number of at most that, too.
func (g *Generator) Poisson(rate, highest float64) float64 {
	if rate < fewEvents {
		return g.poissonByEvents(rate)
	}
	return g.poissonByRejection(rate, highest)
}

// poissonByEvents counts events as long as their times, exponential variates,
// add up to less than 1 (Knuth).
func (g *Generator) poissonByEvents(rate float64) float64 {
	var uniforms pairs
	end := math.Exp(-rate)
	product := 1.0
	for n := 0.0; ; n++ {
		if product *= uniforms.next(g.Uniform64); product <= end {
			return n
		}
	}
}

// poissonByRejection is Hörmann's transformed rejection (PTRS, 1993): a uniform
// variate goes through nearly the inverse of the distribution function. The
// constants are those of the paper.
func (g *Generator) poissonByRejection(rate, highest float64) float64 {
	var uniforms pairs
	logRate := math.Log(rate)
	b := .931 + 2.53*math.Sqrt(rate)
	a := -.059 + .02483*b
	inverse := 1.1239 + 1.1328/(b-3.4) // of the share that is accepted
	for {
		u := uniforms.next(g.Uniform64) - .5
		v := uniforms.next(g.Uniform64)
		edge := .5 - math.Abs(u)
		k := math.Floor((2*a/edge+b)*u + rate + .43)
		switch {
		case k > highest:
			continue
		case edge >= .07 && v <= .9277-3.6224/(b-2):
			return k
		case k < 0 || edge < .013 && v > edge:
			continue
		}
		lgamma, _ := math.Lgamma(k + 1)
		if math.Log(v*inverse/(a/(edge*edge)+b)) <= -rate+k*logRate-lgamma {
			return k
		}
	}
}
