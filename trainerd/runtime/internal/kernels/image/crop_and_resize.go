package image

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Parts of images, resized to one size.
var cropAndResizeOps = exec.OpTable{
	"CropAndResize":          {Types: exec.RealTypes, Build: buildCrop(cropAndResize)},
	"CropAndResizeGradImage": {Types: exec.Floats, Build: buildCrop(cropGradImage)},
	"CropAndResizeGradBoxes": {Types: exec.RealTypes, Build: buildCrop(cropGradBoxes)},
}

// cropping says how pixels between those of the image are found.
type cropping struct {
	nearest bool
	outside float32
	dtype   tfpb.DataType
}

func buildCrop(f func(c *exec.KernelContext, p *cropping) error) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		p := &cropping{outside: float32(b.Float("extrapolation_value")), dtype: b.DType("T")}
		switch method := b.String("method"); method {
		case "bilinear":
		case "nearest":
			p.nearest = true
		default:
			b.Fail("attribute method is %q", method)
		}
		return func(c *exec.KernelContext) error { return f(c, p) }, nil
	}
}

// boxes are parts of a batch of images, in parts of their size.
type boxes struct {
	at    []float32 // y1, x1, y2, x2 of each
	image []int32
	in    [4]int // the shape of the images
	h, w  int    // of the results
}

// boxesOf checks inputs first and first+1: corners, and numbers of images.
func boxesOf(c *exec.KernelContext, first int, images []int, h, w int) (boxes, error) {
	at, image := c.In(first), c.In(first+1)
	if len(images) != 4 || images[1] < 1 || images[2] < 1 {
		return boxes{}, c.Invalid("images of the shape %s cannot be cropped", exec.ShapeString(images))
	}
	if len(at.Shape) != 2 || at.Shape[1] != 4 || len(image.Shape) != 1 || image.Shape[0] != at.Shape[0] {
		return boxes{}, c.Invalid("%s are not boxes in the images that %s says", at.Describe(), image.Describe())
	}
	b := boxes{at: exec.Elems[float32](at), image: exec.Elems[int32](image), in: [4]int(images), h: h, w: w}
	for i, n := range b.image {
		if n < 0 || int(n) >= images[0] {
			return b, c.Errorf(tfpb.Code_OUT_OF_RANGE, "box %d is in image %d of %d", i, n, images[0])
		}
	}
	return b, nil
}

// place is where a row or column of a result is in the image.
type place struct {
	between
	part   float32 // of the way between the corners
	inside bool
}

// along returns the place of position o of n between corners lo and hi of a
// dimension of size.
func along(lo, hi float32, o, n, size int) place {
	p := place{part: 0.5}
	last := float32(size - 1)
	at := 0.5 * (lo + hi) * last
	if n > 1 {
		p.part = float32(o) / float32(n-1)
		// Each product is rounded, as TensorFlow rounds it: fused, the last place
		// might be outside.
		at = float32(lo*last) + float32(float32(o)*((hi-lo)*last/float32(n-1)))
	}
	if p.inside = at >= 0 && at <= last; p.inside {
		low := math.Floor(float64(at))
		p.between = between{int(low), int(math.Ceil(float64(at))), at - float32(low)}
	}
	return p
}

// closest is the pixel nearest to the place.
func (p place) closest() int {
	if p.weight >= 0.5 {
		return p.hi
	}
	return p.lo
}

// eachIn calls f with every pixel of the results of some boxes, its number, and its place.
func (b *boxes) eachIn(from, to int, f func(box, out int, y, x place)) {
	for i := from; i < to; i++ {
		corners := b.at[4*i : 4*i+4]
		for oy := range b.h {
			y := along(corners[0], corners[2], oy, b.h, b.in[1])
			for ox := range b.w {
				f(i, (i*b.h+oy)*b.w+ox, y, along(corners[1], corners[3], ox, b.w, b.in[2]))
			}
		}
	}
}

// pixel is the number of the first channel of a pixel.
func (b *boxes) pixel(box, y, x int) int {
	return ((int(b.image[box])*b.in[1]+y)*b.in[2] + x) * b.in[3]
}

func cropAndResize(c *exec.KernelContext, p *cropping) error {
	x, size := c.In(0), c.IntsOf(0, c.In(3))
	if len(size) != 2 || size[0] < 1 || size[1] < 1 {
		return c.Invalid("the size of the crops is %s", exec.ShapeString(size))
	}
	b, err := boxesOf(c, 1, x.Shape, size[0], size[1])
	if err != nil {
		return err
	}
	xs, d := float32sOf(c, x), exec.Elems[float32](c.Out(0, exec.Float32, len(b.image), b.h, b.w, b.in[3]))
	inSpans(len(b.image), len(d), func(from, to int) { b.crop(p, d, xs, from, to) })
	return nil
}

// crop computes the results of some boxes.
func (b *boxes) crop(p *cropping, d, x []float32, from, to int) {
	ch := b.in[3]
	b.eachIn(from, to, func(box, out int, py, px place) {
		pixel := d[out*ch : (out+1)*ch]
		switch {
		case !py.inside || !px.inside:
			for k := range pixel {
				pixel[k] = p.outside
			}
		case p.nearest:
			copy(pixel, x[b.pixel(box, py.closest(), px.closest()):])
		default:
			b.around(x, box, py, px).mix(pixel, py.weight, px.weight)
		}
	})
}

// corners are the four pixels around a place.
type corners struct{ topLeft, topRight, bottomLeft, bottomRight []float32 }

func (b *boxes) around(x []float32, box int, py, px place) corners {
	at := func(y, x0 int) []float32 { return x[b.pixel(box, y, x0):][:b.in[3]] }
	return corners{at(py.lo, px.lo), at(py.lo, px.hi), at(py.hi, px.lo), at(py.hi, px.hi)}
}

// mix fills d with what lies between the pixels.
func (c corners) mix(d []float32, down, across float32) {
	tl, tr, bl, br := c.topLeft[:len(d)], c.topRight[:len(d)], c.bottomLeft[:len(d)], c.bottomRight[:len(d)]
	for k := range d {
		top := tl[k] + float32((tr[k]-tl[k])*across)
		bottom := bl[k] + float32((br[k]-bl[k])*across)
		d[k] = top + float32((bottom-top)*down)
	}
}

// cropGradient checks the gradient of the crops against their boxes.
func cropGradient(c *exec.KernelContext, b *boxes) error {
	g := c.In(0)
	if g.Shape[0] != len(b.image) || g.Shape[3] != b.in[3] {
		return c.Invalid("%s is not the gradient of %d crops of %d channels", g.Describe(), len(b.image), b.in[3])
	}
	return nil
}

func cropGradImage(c *exec.KernelContext, p *cropping) error {
	g, shape := c.In(0), c.IntsOf(0, c.In(3))
	if _, ok := exec.CheckedNumElements(shape); !ok || len(g.Shape) != 4 || g.Shape[1] < 1 || g.Shape[2] < 1 {
		return c.Invalid("%s is not a gradient of images of shape %s", g.Describe(), exec.ShapeString(shape))
	}
	b, err := boxesOf(c, 1, shape, g.Shape[1], g.Shape[2])
	if err != nil {
		return err
	}
	if err := cropGradient(c, &b); err != nil {
		return err
	}
	d := c.Out(0, p.dtype, shape...)
	elem.Zero(d)
	if p.dtype == exec.Float32 {
		addCrops(&b, p, exec.Elems[float32](g), exec.Elems[float32](d))
	} else {
		addCrops(&b, p, exec.Elems[float32](g), exec.Elems[float64](d))
	}
	return nil
}

// addCrops adds the gradients of crops to the pixels that they were made of.
func addCrops[T exec.Float](b *boxes, p *cropping, gs []float32, ds []T) {
	ch := b.in[3]
	b.eachIn(0, len(b.image), func(box, out int, y, x place) {
		if !y.inside || !x.inside {
			return
		}
		grad := gs[out*ch : (out+1)*ch]
		at := func(y, x int) []T { return ds[b.pixel(box, y, x):][:ch] }
		if p.nearest {
			to := at(y.closest(), x.closest())
			for k, g := range grad {
				to[k] += T(g)
			}
			return
		}
		topLeft, topRight, bottomLeft, bottomRight := at(y.lo, x.lo), at(y.lo, x.hi), at(y.hi, x.lo), at(y.hi, x.hi)
		for k, g := range grad {
			top, bottom := (1-y.weight)*g, y.weight*g
			topLeft[k] += T((1 - x.weight) * top)
			topRight[k] += T(x.weight * top)
			bottomLeft[k] += T((1 - x.weight) * bottom)
			bottomRight[k] += T(x.weight * bottom)
		}
	})
}

func cropGradBoxes(c *exec.KernelContext, p *cropping) error {
	g, image := c.In(0), c.In(1)
	if p.nearest || len(g.Shape) != 4 || g.Shape[1] < 1 || g.Shape[2] < 1 {
		return c.Invalid("%s has no gradient for boxes, or the method is not bilinear", g.Describe())
	}
	b, err := boxesOf(c, 2, image.Shape, g.Shape[1], g.Shape[2])
	if err != nil {
		return err
	}
	if err := cropGradient(c, &b); err != nil {
		return err
	}
	d := c.Out(0, exec.Float32, len(b.image), 4)
	elem.Zero(d)
	gs, ds, pixels := exec.Elems[float32](g), exec.Elems[float32](d), float32sOf(c, image)
	inSpans(len(b.image), len(gs), func(from, to int) { b.boxGradients(ds, gs, pixels, from, to) })
	return nil
}

// boxGradients adds up those of some boxes.
func (b *boxes) boxGradients(ds, gs, pixels []float32, from, to int) {
	ch := b.in[3]
	b.eachIn(from, to, func(box, out int, y, x place) {
		if !y.inside || !x.inside {
			return
		}
		to, at := ds[4*box:4*box+4], b.around(pixels, box, y, x)
		for k, g := range gs[out*ch : (out+1)*ch] {
			tl, tr, bl, br := at.topLeft[k], at.topRight[k], at.bottomLeft[k], at.bottomRight[k]
			dy := (float32((1-x.weight)*(bl-tl)) + float32(x.weight*(br-tr))) * g * float32(b.in[1]-1)
			dx := (float32((1-y.weight)*(tr-tl)) + float32(y.weight*(br-bl))) * g * float32(b.in[2]-1)
			y1, x1 := 1-y.part, 1-x.part
			to[0] += float32(dy * y1)
			to[1] += float32(dx * x1)
			to[2] += float32(dy * y.part)
			to[3] += float32(dx * x.part)
		}
	})
}
