package image

import "math"

// sampling weighs pixels by their distance from where an image is looked at.
type sampling struct {
	radius float32 // pixels farther away than that have no weight
	weight func(x float32) float32
}

var samplings = map[string]sampling{
	"lanczos1":      {1, func(x float32) float32 { return lanczos(x, 1) }},
	"lanczos3":      {3, func(x float32) float32 { return lanczos(x, 3) }},
	"lanczos5":      {5, func(x float32) float32 { return lanczos(x, 5) }},
	"gaussian":      {1.5, gaussian},
	"box":           {1, box},
	"triangle":      {1, triangle},
	"keyscubic":     {2, keys},
	"mitchellcubic": {2, mitchell},
}

func lanczos(x, radius float32) float32 {
	switch {
	case x > radius:
		return 0
	case x <= 1e-3:
		return 1
	}
	const pi = float32(math.Pi)
	sin := func(v float32) float32 { return float32(math.Sin(float64(v))) }
	return radius * sin(pi*x) * sin(pi*x/radius) / (pi * pi * x * x)
}

// gaussian has the standard deviation 0.5.
func gaussian(x float32) float32 {
	if x >= 1.5 {
		return 0
	}
	return float32(math.Exp(float64(-x*x) / (2.0 * 0.5 * 0.5)))
}

func box(x float32) float32 {
	switch {
	case x < 0.5:
		return 1
	case x == 0.5:
		return 0.5
	}
	return 0
}

func triangle(x float32) float32 { return max(1-x, 0) }

func keys(x float32) float32 {
	switch {
	case x >= 2:
		return 0
	case x >= 1:
		return polynomial(x, -0.5, 2.5, -4, 2)
	}
	return polynomial(x, 1.5, -2.5, 0, 1)
}

func mitchell(x float32) float32 {
	switch {
	case x >= 2:
		return 0
	case x >= 1:
		return polynomial(x, -7.0/18, 2, -10.0/3, 16.0/9)
	}
	return polynomial(x, 7.0/6, -2, 0, 8.0/9)
}

// polynomial rounds each product and each sum, as TensorFlow does.
func polynomial(x, a, b, c, d float32) float32 {
	y := float32(a*x) + b
	y = float32(y*x) + c
	return float32(y*x) + d
}
