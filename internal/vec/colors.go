package vec

import "math"

// Changes of hue and saturation, in TensorFlow's arithmetic: single precision, one division.
// Red, green and blue are in slices of their own.

// TurnHue turns the hue of colours by parts of the circle.
func TurnHue(r, g, b []float32, by float32) {
	g, b = g[:len(r)], b[:len(r)]
	shift, i := float32(by*6), 0
	if shift >= -6 && shift <= 6 {
		i = turnHueWide(r, g, b, shift)
	}
	for ; i < len(r); i++ {
		p := turned(shift, rgb{r[i], g[i], b[i]})
		r[i], g[i], b[i] = p[0], p[1], p[2]
	}
}

// Saturate scales the saturation of colours.
func Saturate(r, g, b []float32, by float32) {
	g, b = g[:len(r)], b[:len(r)]
	for i := saturateWide(r, g, b, by); i < len(r); i++ {
		p := saturated(by, rgb{r[i], g[i], b[i]})
		r[i], g[i], b[i] = p[0], p[1], p[2]
	}
}

// rgb is red, green and blue.
type rgb [3]float32

// hue is a colour as a place on the circle of six sextants, between the least and the greatest of
// its parts.
type hue struct{ at, least, greatest float32 }

// sextants says which part is the greatest, the one between, and the least, in each sextant.
var sextants = [6][3]int{{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}}

func sextantOf(r, g, b float32) int {
	switch {
	case r < g && b < r:
		return 1
	case r < g && b > g:
		return 3
	case r < g:
		return 2
	case b < g:
		return 0
	case b > r:
		return 4
	}
	return 5
}

func hueOf(p rgb) hue {
	n := sextantOf(p[0], p[1], p[2])
	order := &sextants[n]
	h := hue{least: p[order[2]], greatest: p[order[0]]}
	if h.least == h.greatest {
		return h
	}
	part := (p[order[1]] - h.least) / (h.greatest - h.least)
	if n%2 == 1 {
		part = 1 - part
	}
	h.at = float32(n) + part
	return h
}

func (h hue) rgb() (p rgb) {
	n := int(h.at)
	part := h.at - float32(n)
	if n%2 == 1 {
		part = 1 - part
	}
	order := &sextants[min(max(n, 0), 5)]
	p[order[0]], p[order[1]], p[order[2]] = h.greatest, h.least+float32(part*(h.greatest-h.least)), h.least
	return p
}

// turned turns the hue by so many sextants.
func turned(shift float32, p rgb) rgb {
	h := hueOf(p)
	h.at = onCircle(h.at + shift)
	return h.rgb()
}

// onCircle returns a place from 0 to 6: 0 for numbers so large that 6 is lost in rounding.
func onCircle(at float32) float32 {
	if !(at > -1e6 && at < 1e6) {
		return 0
	}
	for at < 0 {
		at += 6
	}
	for at >= 6 {
		at -= 6
	}
	return at
}

// saturated scales the saturation.
func saturated(by float32, p rgb) rgb {
	r, g, b := p[0], p[1], p[2]
	value, least := r, r
	if g > value {
		value = g
	} else if g < least {
		least = g
	}
	if b > value {
		value = b
	} else if b < least {
		least = b
	}
	if sum := r + g + b; sum != sum { // comparisons with NaN are false
		value, least = max(r, g, b), min(r, g, b)
	}
	span := value - least
	var s float32
	if value > 0 {
		s = span / value
	}
	return fromHSV(6*hueOfSpan(r, g, b, value, span), min(max(s*by, 0), 1), value)
}

// hueOfSpan returns the hue as a part of the circle.
func hueOfSpan(r, g, b, value, span float32) float32 {
	if span < 0x1p-126 { // its inverse may have no end; TensorFlow takes such numbers for 0
		return 0
	}
	norm := 1 / (6 * span)
	var h float32
	switch value {
	case r:
		h = norm * (g - b)
	case g:
		h = float32(float64(float32(norm*(b-r))) + 2./6)
	default:
		h = float32(float64(float32(norm*(r-g))) + 4./6)
	}
	if h < 0 {
		h++
	}
	return h
}

// fromHSV returns a colour by its sextant and the place in it, saturation and value.
func fromHSV(at, s, v float32) rgb {
	chroma := s * v
	rest := v - chroma
	half := float32(math.Floor(float64(at * .5)))
	place := at - (half + half)
	middle := chroma * (1 - float32(math.Abs(float64(place-1))))
	var r, g, b float32
	switch int(at) {
	case 0:
		r, g = chroma, middle
	case 1:
		r, g = middle, chroma
	case 2:
		g, b = chroma, middle
	case 3:
		g, b = middle, chroma
	case 4:
		r, b = middle, chroma
	case 5:
		r, b = chroma, middle
	}
	return rgb{r + rest, g + rest, b + rest}
}
