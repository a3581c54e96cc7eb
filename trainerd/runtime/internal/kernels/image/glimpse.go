package image

import (
	"math"
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Windows of images around points, such as a recurrent model of attention looks at.
var glimpseOps = exec.OpTable{
	"ExtractGlimpse":   {Flags: exec.Stateful | exec.WritesState, Build: buildGlimpse},
	"ExtractGlimpseV2": {Flags: exec.Stateful | exec.WritesState, Build: buildGlimpse},
}

// glimpse says where windows are, and what is in them outside the image.
type glimpse struct {
	first                bool // the op's first form, with its rules of centring
	centered, normalized bool
	noise                string
	stream               *exec.RandomStream
}

func buildGlimpse(b *exec.OpConstruction) (exec.Kernel, error) {
	g := &glimpse{first: b.Op() == "ExtractGlimpse", centered: b.Bool("centered"), normalized: b.Bool("normalized"), noise: b.String("noise"), stream: b.UnseededStream()}
	uniform := b.Bool("uniform_noise")
	switch {
	case !slices.Contains([]string{"uniform", "gaussian", "zero"}, g.noise):
		b.Fail("attribute noise is %q", g.noise)
	case uniform && g.noise != "uniform":
		b.Fail("the noise is %q, and uniform_noise is set", g.noise)
	}
	return g.run, nil
}

func (g *glimpse) run(c *exec.KernelContext) error {
	x, size, offsets := c.In(0), c.In(1), c.In(2)
	if len(x.Shape) != 4 || x.DType != exec.Float32 || size.NumElements() != 2 || !exec.SameShape(offsets.Shape, []int{x.Shape[0], 2}) {
		return c.Invalid("windows of %s at %s in %s", size.Describe(), offsets.Describe(), x.Describe())
	}
	h, w := size.IntAt(0), size.IntAt(1)
	if h < 1 || w < 1 {
		return c.Invalid("windows of %d by %d pixels", h, w)
	}
	d := c.Out(0, exec.Float32, x.Shape[0], h, w, x.Shape[3])
	at := exec.Elems[float32](offsets)
	for i := range x.Shape[0] {
		v := view{image: imageAt(x, i), window: imageAt(d, i)}
		v.top, v.left = g.start(at[2*i], v.image.h, h), g.start(at[2*i+1], v.image.w, w)
		if !v.inside() {
			g.fill(c, v)
		}
		v.copy()
	}
	return nil
}

// start returns the first row, or column, of a window of n of an image that has size.
func (g *glimpse) start(at float32, size, n int) int {
	if g.normalized {
		at *= float32(size)
	}
	switch {
	case !g.centered:
	case g.first || g.normalized:
		at = at/2 + float32(size)/2
	default:
		at += float32(size) / 2
	}
	if g.first || g.normalized && g.centered {
		at -= float32(n) / 2
	}
	if !(at > -farOutside && at < farOutside) {
		return farOutside
	}
	return int(at)
}

// farOutside is where no pixel of an image is.
const farOutside = 1 << 30

// pixels are those of one image.
type pixels struct {
	h, w, channels int
	at             []float32
}

func imageAt(t *exec.Tensor, i int) pixels {
	p := pixels{h: t.Shape[1], w: t.Shape[2], channels: t.Shape[3]}
	n := p.h * p.w * p.channels
	p.at = exec.Elems[float32](t)[i*n : (i+1)*n]
	return p
}

func (p *pixels) row(y, from, to int) []float32 {
	return p.at[(y*p.w+from)*p.channels : (y*p.w+to)*p.channels]
}

// view is a window and the image that is seen through it.
type view struct {
	image, window pixels
	top, left     int
}

// inside reports whether no pixel of the window is outside the image. TensorFlow also takes
// one that reaches the image's end for a window outside.
func (v *view) inside() bool {
	return v.top >= 0 && v.left >= 0 && v.top+v.window.h <= v.image.h && v.left+v.window.w <= v.image.w
}

// copy copies what is in the image.
func (v *view) copy() {
	from, to := max(0, -v.left), min(v.window.w, v.image.w-v.left)
	if from >= to {
		return
	}
	for y := max(0, -v.top); y < min(v.window.h, v.image.h-v.top); y++ {
		copy(v.window.row(y, from, to), v.image.row(y+v.top, v.left+from, v.left+to))
	}
}

// fill fills a window with noise, between the least and the greatest number of the image.
func (g *glimpse) fill(c *exec.KernelContext, v view) {
	d := v.window.at
	switch {
	case g.noise == "zero" || len(v.image.at) == 0:
		clear(d)
	case g.noise == "uniform":
		least, greatest := slices.Min(v.image.at), slices.Max(v.image.at)
		c.Draw(g.stream).Uniform32(d)
		for i := range d {
			d[i] = least + d[i]*(greatest-least)
		}
	default:
		c.Draw(g.stream).Normal32(d)
		for k := range v.image.channels {
			v.likeChannel(k)
		}
	}
}

// likeChannel gives noise the mean and the deviation that a channel of the image has.
func (v *view) likeChannel(k int) {
	x, n := v.image.at, v.image.channels
	var sum, squares float64
	least, greatest := x[k], x[k]
	for i := k; i < len(x); i += n {
		sum += float64(x[i])
		least, greatest = elem.Smaller(least, x[i]), elem.Larger(greatest, x[i])
	}
	mean := sum / float64(len(x)/n)
	for i := k; i < len(x); i += n {
		squares += (float64(x[i]) - mean) * (float64(x[i]) - mean)
	}
	deviation := math.Sqrt(squares / float64(len(x)/n))
	for i := k; i < len(v.window.at); i += n {
		value := float32(float64(v.window.at[i])*deviation + mean)
		v.window.at[i] = min(max(value, least), greatest)
	}
}
