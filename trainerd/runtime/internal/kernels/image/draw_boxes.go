package image

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var drawBoxesOps = exec.OpTable{
	"DrawBoundingBoxes":   {Types: exec.SetOf(exec.Float32), Build: exec.WithoutAttrs(drawBoxes)},
	"DrawBoundingBoxesV2": {Types: exec.SetOf(exec.Float32), Build: exec.WithoutAttrs(drawBoxes)},
}

// boxColors are the colours of boxes where none are given: yellow, blue, red, lime,
// purple, olive, maroon, navy, aqua, fuchsia.
var boxColors = []float32{
	1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0.5, 0, 0.5, 1,
	0.5, 0.5, 0, 1, 0.5, 0, 0, 1, 0, 0, 0.5, 1, 0, 1, 1, 1, 1, 0, 1, 1,
}

// drawBoxes copies the images of input 0 and draws the boxes of input 1 on them, in
// the colours of input 2.
func drawBoxes(c *exec.KernelContext) error {
	in, boxes := c.In(0), c.In(1)
	if len(in.Shape) != 4 || in.Shape[3] != 1 && in.Shape[3] != 3 && in.Shape[3] != 4 {
		return c.Invalid("images have shape %s; want [batch, height, width, 1, 3 or 4]", exec.ShapeString(in.Shape))
	}
	if len(boxes.Shape) != 3 || boxes.Shape[0] != in.Shape[0] || boxes.Shape[2] != 4 {
		return c.Invalid("boxes have shape %s; want [%d, n, 4]", exec.ShapeString(boxes.Shape), in.Shape[0])
	}
	colors, columns, err := colorsOf(c, in.Shape[3])
	if err != nil {
		return err
	}
	d := c.Out(0, exec.Float32, in.Shape...)
	copy(d.Data, in.Data)
	b := canvas{height: in.Shape[1], width: in.Shape[2], depth: in.Shape[3]}
	size, corners := b.height*b.width*b.depth, exec.Elems[float32](boxes)
	for i := range in.Shape[0] {
		b.pixels = exec.Elems[float32](d)[i*size : (i+1)*size]
		for k := range boxes.Shape[1] {
			at := k % (len(colors) / columns) * columns
			b.color = colors[at : at+b.depth]
			b.box(corners[(i*boxes.Shape[1]+k)*4:][:4])
		}
	}
	return nil
}

// colorsOf returns the table of colours, and how many numbers each has.
func colorsOf(c *exec.KernelContext, depth int) ([]float32, int, error) {
	if c.NumInputs() == 3 && len(c.In(2).Shape) == 2 && c.In(2).NumElements() > 0 {
		t := c.In(2)
		if t.Shape[1] < depth {
			return nil, 0, c.Invalid("colors have shape %s; want [n, %d] or more columns", exec.ShapeString(t.Shape), depth)
		}
		return exec.Elems[float32](t), t.Shape[1], nil
	}
	if depth > 1 {
		return boxColors, 4, nil
	}
	white := slices.Clone(boxColors)
	for i := 0; i < len(white); i += 4 {
		white[i] = 1
	}
	return white, 4, nil
}

// canvas is an image that is drawn on.
type canvas struct {
	height, width, depth int
	pixels, color        []float32
}

// box draws the lines of a box that are within the image. Its corners are fractions
// of height and width.
func (b *canvas) box(corners []float32) {
	top, left := int(corners[0]*float32(b.height-1)), int(corners[1]*float32(b.width-1))
	bottom, right := int(corners[2]*float32(b.height-1)), int(corners[3]*float32(b.width-1))
	if top > bottom || left > right || top >= b.height || bottom < 0 || left >= b.width || right < 0 {
		return
	}
	for x := max(left, 0); x <= min(right, b.width-1); x++ {
		b.set(top, x)
		b.set(bottom, x)
	}
	for y := max(top, 0); y <= min(bottom, b.height-1); y++ {
		b.set(y, left)
		b.set(y, right)
	}
}

// set colours a pixel if it is within the image.
func (b *canvas) set(y, x int) {
	if y >= 0 && y < b.height && x >= 0 && x < b.width {
		copy(b.pixels[(y*b.width+x)*b.depth:], b.color)
	}
}
