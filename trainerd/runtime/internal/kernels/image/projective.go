package image

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Images seen through a projection: rotated, sheared, moved, zoomed.
var projectiveOps = exec.OpTable{
	"ImageProjectiveTransformV2": {TypeAttr: "dtype", Types: projectedTypes, Build: exec.Widened("dtype", buildProjective)},
	"ImageProjectiveTransformV3": {TypeAttr: "dtype", Types: projectedTypes, Build: exec.Widened("dtype", buildProjective)},
}

var projectedTypes = exec.Numbers | exec.Halves | exec.SetOf(exec.Uint8)

// mapping brings a coordinate into a dimension of a size, or leaves it outside.
type mapping func(at float32, size int) float32

var mappings = map[string]mapping{
	"":         outside,
	"CONSTANT": outside,
	"NEAREST":  within,
	"REFLECT":  reflected,
	"WRAP":     wrapped,
}

func buildProjective(b *exec.OpConstruction) (exec.Kernel, error) {
	m, ok := mappings[b.String("fill_mode")]
	if !ok {
		b.Fail("attribute fill_mode is %q", b.String("fill_mode"))
	}
	nearest := b.String("interpolation") == "NEAREST"
	if !nearest && b.String("interpolation") != "BILINEAR" {
		b.Fail("attribute interpolation is %q", b.String("interpolation"))
	}
	if b.DType("dtype") == exec.Uint8 {
		return projective[uint8](m, nearest), nil
	}
	return exec.ByType(b.DType("dtype"), projective[float32](m, nearest), projective[float64](m, nearest), projective[int32](m, nearest), projective[int64](m, nearest))
}

func projective[T exec.Number](m mapping, nearest bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		h, w, err := projected(c)
		if err != nil {
			return err
		}
		x, by := c.In(0), exec.Elems[float32](c.In(1))
		s := source[T]{x: exec.Elems[T](x), h: x.Shape[1], w: x.Shape[2], channels: x.Shape[3], nearest: nearest}
		if c.NumInputs() > 3 {
			s.fill = T(exec.Elems[float32](c.In(3))[0])
		}
		d := exec.Elems[T](c.Out(0, x.DType, x.Shape[0], h, w, s.channels))
		for n := range x.Shape[0] {
			p := (*[8]float32)(by[8*n%len(by):])
			for oy := range h {
				if err := c.Interrupted(); err != nil {
					return err
				}
				for ox := range w {
					s.pixel(d[((n*h+oy)*w+ox)*s.channels:][:s.channels], n, p, m, float32(oy), float32(ox))
				}
			}
		}
		return nil
	}
}

// projected checks the inputs, and returns the size of the results.
func projected(c *exec.KernelContext) (h, w int, err error) {
	x, by := c.In(0), c.In(1)
	if len(x.Shape) != 4 {
		return 0, 0, c.Invalid("%s are not images", x.Describe())
	}
	if len(by.Shape) != 2 || by.Shape[0] != 1 && by.Shape[0] != x.Shape[0] || by.Shape[1] != 8 || by.Shape[0] == 0 {
		return 0, 0, c.Invalid("the transforms must be 8 numbers for each image or for all, not %s", by.Describe())
	}
	if c.NumInputs() > 3 && c.In(3).NumElements() != 1 {
		return 0, 0, c.Invalid("the fill value must be a scalar, not %s", c.In(3).Describe())
	}
	size := c.IntsOf(0, c.In(2))
	if len(size) != 2 || size[0] < 1 || size[1] < 1 {
		return 0, 0, c.Invalid("images cannot have the size %s", exec.ShapeString(size))
	}
	return size[0], size[1], nil
}

// source is a batch of images that is looked at.
type source[T exec.Number] struct {
	x              []T
	h, w, channels int
	fill           T
	nearest        bool
}

// pixel sets d to what projection p shows of image n. Products are rounded one by one,
// as TensorFlow rounds them.
func (s *source[T]) pixel(d []T, n int, p *[8]float32, m mapping, oy, ox float32) {
	depth := float32(p[6]*ox) + float32(p[7]*oy) + 1
	if depth == 0 {
		for i := range d {
			d[i] = s.fill
		}
		return
	}
	x := m((float32(p[0]*ox)+float32(p[1]*oy)+p[2])/depth, s.w)
	y := m((float32(p[3]*ox)+float32(p[4]*oy)+p[5])/depth, s.h)
	if s.nearest {
		y, x = float32(math.Round(float64(y))), float32(math.Round(float64(x)))
		for i := range d {
			d[i] = s.at(n, y, x, i)
		}
		return
	}
	y0, x0 := float32(math.Floor(float64(y))), float32(math.Floor(float64(x)))
	for i := range d {
		upper := float32((x0+1-x)*float32(s.at(n, y0, x0, i))) + float32((x-x0)*float32(s.at(n, y0, x0+1, i)))
		lower := float32((x0+1-x)*float32(s.at(n, y0+1, x0, i))) + float32((x-x0)*float32(s.at(n, y0+1, x0+1, i)))
		d[i] = T(float32((y0+1-y)*upper) + float32((y-y0)*lower))
	}
}

func (s *source[T]) at(n int, y, x float32, channel int) T {
	if !(y >= 0 && y < float32(s.h) && x >= 0 && x < float32(s.w)) {
		return s.fill
	}
	return s.x[((n*s.h+int(y))*s.w+int(x))*s.channels+channel]
}

func outside(at float32, _ int) float32 { return at }

func within(at float32, size int) float32 { return min(max(at, 0), float32(size-1)) }

// reflected takes the image as continued by its mirror image: dcba|abcd|dcba.
func reflected(at float32, size int) float32 {
	n, twice := float32(size), float32(2*size)
	switch {
	case size < 2:
		return 0
	case at < 0:
		at += twice * float32(math.Trunc(float64(-at/twice)))
		if at < -n {
			at += twice
		} else {
			at = -at - 1
		}
	case at > n-1:
		at -= twice * float32(math.Trunc(float64(at/twice)))
		if at >= n {
			at = twice - at - 1
		}
	}
	return within(at, size)
}

// wrapped takes the image as continued by itself: abcd|abcd|abcd.
func wrapped(at float32, size int) float32 {
	n := float32(size)
	switch {
	case size < 2:
		return 0
	case at < 0:
		at += n * float32(math.Trunc(float64(-at/(n-1)))+1)
	case at > n-1:
		at -= n * float32(math.Trunc(float64(at/(n-1))))
	}
	return within(at, size)
}
