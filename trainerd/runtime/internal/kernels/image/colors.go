package image

import (
	"math"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Colours: what the augmentation of images changes.
var colorsOps = exec.OpTable{
	"RGBToHSV":         {Types: exec.Floats, Build: buildColors(rgbToHSV)},
	"HSVToRGB":         {Types: exec.Floats, Build: buildColors(hsvToRGB)},
	"AdjustHue":        {Types: exec.SetOf(exec.Float32), Build: buildAdjust(turned)},
	"AdjustSaturation": {Types: exec.SetOf(exec.Float32), Build: buildAdjust(saturated)},
	"AdjustContrastv2": {Types: exec.SetOf(exec.Float32), Build: exec.WithoutAttrs(adjustContrast)},
}

// pixel is red, green and blue, or hue, saturation and value.
type pixel [3]float64

func rgbToHSV(p pixel) pixel {
	r, g, b := p[0], p[1], p[2]
	v := max(r, g, b)
	span := v - min(r, g, b)
	var h, s float64
	if v > 0 {
		s = span / v
	}
	switch {
	case !(span > 0):
	case r == v:
		h = (g - b) / (6 * span)
	case g == v:
		h = (b-r)/(6*span) + 2./6
	default:
		h = (r-g)/(6*span) + 4./6
	}
	if h < 0 {
		h++
	}
	return pixel{h, s, v}
}

func hsvToRGB(p pixel) pixel {
	h, s, v := p[0]*6, p[1], p[2]
	unit := func(x float64) float64 { return min(max(x, 0), 1) }
	r, g, b := unit(math.Abs(h-3)-1), unit(2-math.Abs(h-2)), unit(2-math.Abs(h-4))
	return pixel{(1 - s + s*r) * v, (1 - s + s*g) * v, (1 - s + s*b) * v}
}

func buildColors(f func(pixel) pixel) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), colors[float32](f), colors[float64](f))
	}
}

// colors is the kernel of a function of pixels in double precision.
func colors[T float32 | float64](f func(pixel) pixel) exec.Kernel {
	return func(c *exec.KernelContext) error {
		return eachPixel(c, 0, func(_ T, p rgb[T]) rgb[T] {
			q := f(pixel{float64(p[0]), float64(p[1]), float64(p[2])})
			return rgb[T]{T(q[0]), T(q[1]), T(q[2])}
		})
	}
}

// buildAdjust changes each pixel by the scalar in input 1.
func buildAdjust(change func(by float32, p rgb[float32]) rgb[float32]) func(*exec.OpConstruction) (exec.Kernel, error) {
	return exec.WithoutAttrs(func(c *exec.KernelContext) error {
		if by := c.In(1); by.NumElements() != 1 || by.DType != exec.Float32 {
			return c.Invalid("the change must be a float32, not %s", by.Describe())
		}
		return eachPixel(c, exec.Elems[float32](c.In(1))[0], change)
	})
}

// rgb is red, green and blue.
type rgb[T float32 | float64] [3]T

// pixelwise applies a function to each pixel, on several processors when they are many.
type pixelwise[T float32 | float64] struct {
	f    func(by T, p rgb[T]) rgb[T]
	by   T
	d, x []T
}

// partPixels is how many pixels are worth a hand-off to another processor.
const partPixels = 512

// Part implements [parallel.Job].
func (w *pixelwise[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.d)/3, partPixels, i, n)
	d, x := w.d[3*from:3*to], w.x[3*from:3*to]
	for i := 0; i+3 <= len(d); i += 3 {
		p := w.f(w.by, rgb[T]{x[i], x[i+1], x[i+2]})
		d[i], d[i+1], d[i+2] = p[0], p[1], p[2]
	}
}

func eachPixel[T float32 | float64](c *exec.KernelContext, by T, f func(by T, p rgb[T]) rgb[T]) error {
	x := c.In(0)
	if r := len(x.Shape); r == 0 || x.Shape[r-1] != 3 {
		return c.Invalid("%s has not three colours", x.Describe())
	}
	w := exec.InFrame[pixelwise[T]](c)
	*w = pixelwise[T]{f, by, exec.Elems[T](c.OutLike(0, x.DType, x)), exec.Elems[T](x)}
	if parts := min(len(w.d)/3/partPixels, exec.MaxParts); parts > 1 {
		parallel.Run(parts, w)
	} else {
		w.Part(0, 1)
	}
	*w = pixelwise[T]{}
	return nil
}

// adjustContrast scales the distance of each pixel from the mean of its
// channel in its image.
func adjustContrast(c *exec.KernelContext) error {
	x, by := c.In(0), c.In(1)
	r := len(x.Shape)
	if r < 3 || by.NumElements() != 1 {
		return c.Invalid("images and a scalar are wanted, not %s and %s", x.Describe(), by.Describe())
	}
	factor := by.FloatAt(0)
	channels := x.Shape[r-1]
	size := x.Shape[r-3] * x.Shape[r-2] * channels
	xs, d := exec.Elems[float32](x), exec.Elems[float32](c.OutLike(0, x.DType, x))
	if size == 0 {
		return nil
	}
	inSpans(len(xs)/size, len(xs), func(from, to int) {
		means := make([]float64, channels)
		for n := from; n < to; n++ {
			changeContrast(d[n*size:(n+1)*size], xs[n*size:(n+1)*size], means, factor)
		}
	})
	return nil
}

// changeContrast changes one image, which has so many channels as there are places for means.
func changeContrast(d, x []float32, means []float64, factor float64) {
	n := len(means)
	clear(means)
	for at := 0; at < len(x); at += n {
		for k, v := range x[at:][:n] {
			means[k] += float64(v)
		}
	}
	for k := range means {
		means[k] /= float64(len(x) / n)
	}
	for at := 0; at < len(x); at += n {
		for k, v := range x[at:][:n] {
			d[at+k] = float32((float64(v)-means[k])*factor + means[k])
		}
	}
}
