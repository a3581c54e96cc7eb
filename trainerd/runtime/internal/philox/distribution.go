package philox

import "math"

// reserved is the number of words that TensorFlow sets aside per result, so
// that a distribution which rejects samples has enough of them.
const reserved = 256

// Float32 maps a word to [0, 1).
func Float32(x uint32) float32 {
	return math.Float32frombits(127<<23|x&0x7fffff) - 1
}

// Float64 maps two words to [0, 1).
func Float64(x0, x1 uint32) float64 {
	return math.Float64frombits(1023<<52|uint64(x0&0xfffff)<<32|uint64(x1)) - 1
}

// Reserve returns a generator for n results and moves g after all words that
// they may use.
func (g *Generator) Reserve(n int) Generator {
	start := *g
	g.Skip(uint64(n) * reserved)
	return start
}

// ReserveWords returns a generator for n words and moves g after them.
func (g *Generator) ReserveWords(n int) Generator {
	start := *g
	g.Skip(uint64(n+3) / 4)
	return start
}

// Uniform32 fills out with floats in [0, 1).
func (g *Generator) Uniform32(out []float32) {
	for out = out[g.uniformsWide(out):]; len(out) > 0; {
		b := g.Next()
		n := min(4, len(out))
		for i := range n {
			out[i] = Float32(b[i])
		}
		out = out[n:]
	}
}

// Uniform64 fills out with doubles in [0, 1).
func (g *Generator) Uniform64(out []float64) {
	for i := 0; i < len(out); i += 2 {
		b := g.Next()
		out[i] = Float64(b[0], b[1])
		if i+1 < len(out) {
			out[i+1] = Float64(b[2], b[3])
		}
	}
}

// Int32 fills out with integers in [lo, hi). hi is above lo.
func (g *Generator) Int32(out []int32, lo, hi int32) {
	size := uint32(hi) - uint32(lo)
	for len(out) > 0 {
		b := g.Next()
		n := min(4, len(out))
		for i := range n {
			out[i] = int32(uint32(lo) + b[i]%size)
		}
		out = out[n:]
	}
}

// Int64 fills out with integers in [lo, hi). hi is above lo.
func (g *Generator) Int64(out []int64, lo, hi int64) {
	size := uint64(hi) - uint64(lo)
	for i := 0; i < len(out); i += 2 {
		b := g.Next()
		out[i] = int64(uint64(lo) + (uint64(b[0])|uint64(b[1])<<32)%size)
		if i+1 < len(out) {
			out[i+1] = int64(uint64(lo) + (uint64(b[2])|uint64(b[3])<<32)%size)
		}
	}
}

// tiny keeps the logarithm of the Box-Muller transform finite.
const tiny = 1.0e-7

// boxMuller32 turns two words into two normal variates, rounding to float32
// where TensorFlow does.
func boxMuller32(x0, x1 uint32) (float32, float32) {
	u1 := max(Float32(x0), float32(tiny))
	v1 := float32(2 * math.Pi * float64(Float32(x1)))
	u2 := float32(math.Sqrt(float64(-2 * log32(u1))))
	sin, cos := sincos32(v1)
	return sin * u2, cos * u2
}

// boxMuller64 is boxMuller32 in doubles, from four words.
func boxMuller64(x0, x1, x2, x3 uint32) (float64, float64) {
	u1 := max(Float64(x0, x1), tiny)
	v1 := 2 * math.Pi * Float64(x2, x3)
	u2 := math.Sqrt(-2 * math.Log(u1))
	sin, cos := math.Sincos(v1)
	return sin * u2, cos * u2
}

// Normal32 fills out with standard normal variates.
func (g *Generator) Normal32(out []float32) {
	var r [4]float32
	for len(out) > 0 {
		b := g.Next()
		r[0], r[1] = boxMuller32(b[0], b[1])
		r[2], r[3] = boxMuller32(b[2], b[3])
		out = out[copy(out, r[:]):]
	}
}

// Normal64 fills out with standard normal variates.
func (g *Generator) Normal64(out []float64) {
	var r [2]float64
	for len(out) > 0 {
		b := g.Next()
		r[0], r[1] = boxMuller64(b[0], b[1], b[2], b[3])
		out = out[copy(out, r[:]):]
	}
}

// cutoff bounds the truncated normal distribution, in standard deviations.
const cutoff = 2

// TruncatedNormal32 fills out with normal variates, drawn again while they
// are two or more standard deviations from the mean. Results come in groups of
// four; each group has its own part of the stream.
func (g *Generator) TruncatedNormal32(out []float32) {
	for len(out) > 0 {
		group := *g
		g.Skip(4 * reserved / 4)
		words := Words{gen: &group, used: 4}
		n := min(4, len(out))
		for i := 0; i < n; {
			x0 := words.Next()
			a, b := boxMuller32(x0, words.Next())
			if abs(a) < cutoff {
				out[i] = a
				i++
			}
			if i < n && abs(b) < cutoff {
				out[i] = b
				i++
			}
		}
		out = out[n:]
	}
}

// TruncatedNormal64 is TruncatedNormal32 in doubles, in groups of two.
func (g *Generator) TruncatedNormal64(out []float64) {
	for len(out) > 0 {
		group := *g
		g.Skip(2 * reserved / 4)
		words := Words{gen: &group, used: 4}
		n := min(2, len(out))
		for i := 0; i < n; {
			x0, x1, x2 := words.Next(), words.Next(), words.Next()
			a, b := boxMuller64(x0, x1, x2, words.Next())
			if math.Abs(a) < cutoff {
				out[i] = a
				i++
			}
			if i < n && math.Abs(b) < cutoff {
				out[i] = b
				i++
			}
		}
		out = out[n:]
	}
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
