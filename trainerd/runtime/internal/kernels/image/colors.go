package image

import (
	"math"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Colours: what the augmentation of images changes.
var colorsOps = exec.OpTable{
	"RGBToHSV":         {Types: exec.Floats, Build: buildColors(rgbToHSV)},
	"HSVToRGB":         {Types: exec.Floats, Build: buildColors(hsvToRGB)},
	"AdjustHue":        {Types: exec.SetOf(exec.Float32), Build: buildAdjust(vec.TurnHue)},
	"AdjustSaturation": {Types: exec.SetOf(exec.Float32), Build: buildAdjust(vec.Saturate)},
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
		x := c.In(0)
		if err := checkPixels(c, x); err != nil {
			return err
		}
		w := exec.InFrame[pixelwise[T]](c)
		*w = pixelwise[T]{f, exec.Elems[T](c.OutLike(0, x.DType, x)), exec.Elems[T](x)}
		if parts := min(len(w.d)/3/partPixels, exec.MaxParts); parts > 1 {
			parallel.Run(parts, w)
		} else {
			w.Part(0, 1)
		}
		*w = pixelwise[T]{}
		return nil
	}
}

// pixelwise applies a function to each pixel, on several processors when they are many.
type pixelwise[T float32 | float64] struct {
	f    func(pixel) pixel
	d, x []T
}

// partPixels is how many pixels are worth a hand-off to another processor.
const partPixels = 512

// Part implements [parallel.Job].
func (w *pixelwise[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.d)/3, partPixels, i, n)
	d, x := w.d[3*from:3*to], w.x[3*from:3*to]
	for i := 0; i+3 <= len(d); i += 3 {
		p := w.f(pixel{float64(x[i]), float64(x[i+1]), float64(x[i+2])})
		d[i], d[i+1], d[i+2] = T(p[0]), T(p[1]), T(p[2])
	}
}

// checkPixels checks that the last dimension is three colours.
func checkPixels(c *exec.KernelContext, x *exec.Tensor) error {
	if r := len(x.Shape); r == 0 || x.Shape[r-1] != 3 {
		return c.Invalid("%s has not three colours", x.Describe())
	}
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
		var w contrast
		w.start(channels)
		for n := from; n < to; n++ {
			w.change(d[n*size:(n+1)*size], xs[n*size:(n+1)*size], float32(factor))
		}
	})
	return nil
}

// contrast changes images of some channels. Pixels are worked on some at a time, as rows of
// as many numbers, with the means in a row like them.
type contrast struct {
	means []float64
	row   []float32
}

const contrastRow = 256 // numbers, about

func (w *contrast) start(channels int) {
	w.means = make([]float64, channels)
	w.row = make([]float32, max(1, contrastRow/channels)*channels)
}

// change changes one image.
func (w *contrast) change(d, x []float32, factor float32) {
	n := len(w.means)
	channelSums(w.means, x)
	for i := range w.row {
		w.row[i] = float32(w.means[i%n] / float64(len(x)/n))
	}
	for len(d) > 0 {
		k := min(len(w.row), len(d))
		to, means := d[:k], w.row[:k]
		vec.Sub(to, x[:k], means)
		vec.MulScalar(to, to, factor)
		vec.Add(to, to, means)
		d, x = d[k:], x[k:]
	}
}

// channelSums sets sums to those of the channels.
func channelSums(sums []float64, x []float32) {
	clear(sums)
	if len(sums) == 3 {
		var r, g, b float64
		for ; len(x) >= 3; x = x[3:] {
			r, g, b = r+float64(x[0]), g+float64(x[1]), b+float64(x[2])
		}
		sums[0], sums[1], sums[2] = r, g, b
		return
	}
	for at := 0; at < len(x); at += len(sums) {
		for k, v := range x[at:][:len(sums)] {
			sums[k] += float64(v)
		}
	}
}
