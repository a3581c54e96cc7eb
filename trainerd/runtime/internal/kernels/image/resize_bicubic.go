package image

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Images resized by cubic convolution, and by the mean of areas.
var resizeBicubicOps = exec.OpTable{
	"ResizeBicubic":     {Types: exec.RealTypes, Build: buildBicubic},
	"ResizeBicubicGrad": {Types: exec.Floats, Build: buildBicubicGrad},
	"ResizeArea":        {Types: exec.RealTypes, Build: buildResizeArea},
}

// cubicSteps is the number of places between two pixels that are distinguished.
const cubicSteps = 1 << 10

// cubic are the weights of pixels by their distance, in 1/cubicSteps, for the
// next pixel at even places and the one after it at odd ones.
type cubic [2*cubicSteps + 2]float32

// newCubic returns the weights for the slope a of the cubic at distance one.
func newCubic(a float64) *cubic {
	t := &cubic{}
	for i := range cubicSteps + 1 {
		x := float64(i) / cubicSteps
		t[2*i] = float32(((a+2)*x-(a+3))*x*x + 1)
		x++
		t[2*i+1] = float32(((a*x-5*a)*x+8*a)*x - 4*a)
	}
	return t
}

var legacyCubic, keysCubic = newCubic(-0.75), newCubic(-0.5)

// four are the pixels that a new one is made of, with their weights.
type four struct {
	at     [4]int
	weight [4]float32
}

// four returns where new position o comes from. Weights of pixels outside of
// the image go to the others if positions are the middles of pixels, else to
// the pixel at the border.
func (r resizing) four(o, in int, scale float32) (f four) {
	loc, t := float32(o)*scale, legacyCubic
	if r.half {
		loc, t = float32((float32(o)+0.5)*scale)-0.5, keysCubic // not fused, as in TensorFlow
	}
	floor := int(math.Floor(float64(loc)))
	step := int(math.RoundToEven(float64((loc - float32(floor)) * cubicSteps)))
	f.weight = [4]float32{t[2*step+1], t[2*step], t[2*(cubicSteps-step)], t[2*(cubicSteps-step)+1]}
	var sum float32
	for i := range f.at {
		at := floor - 1 + i
		f.at[i] = max(0, min(at, in-1))
		if r.half && f.at[i] != at {
			f.weight[i] = 0
		}
		sum += f.weight[i]
	}
	if r.half && math.Abs(float64(sum)) >= 1000*0x1p-126 {
		for i := range f.weight {
			f.weight[i] *= 1 / sum
		}
	}
	return f
}

func (r resizing) fours(in, out int) []four {
	list := make([]four, out)
	scale := r.scale(in, out)
	for o := range list {
		list[o] = r.four(o, in, scale)
	}
	return list
}

func buildBicubic(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResizing(b)
	return func(c *exec.KernelContext) error {
		h, w, err := resized(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		k := bicubic{x: float32sOf(c, x), high: x.Shape[1], wide: x.Shape[2], channels: x.Shape[3], rows: r.fours(x.Shape[1], h), cols: r.fours(x.Shape[2], w)}
		k.d = exec.Elems[float32](c.Out(0, exec.Float32, x.Shape[0], h, w, k.channels))
		inSpans(x.Shape[0]*h, len(k.d), k.lines)
		return nil
	}, nil
}

// bicubic is images on the way from x to d.
type bicubic struct {
	x, d                 []float32
	high, wide, channels int
	rows, cols           []four
}

// lines computes some of all new lines: each from one that four old lines make.
func (b *bicubic) lines(from, to int) {
	wide := b.wide * b.channels
	line := make([]float32, wide)
	for o := from; o < to; o++ {
		first, y := o/len(b.rows)*b.high, &b.rows[o%len(b.rows)]
		clear(line)
		for i, row := range y.at {
			vec.AddScaled(line, b.x[(first+row)*wide:][:wide], y.weight[i])
		}
		b.across(b.d[o*len(b.cols)*b.channels:], line)
	}
}

func (b *bicubic) across(d, line []float32) {
	for i := range b.cols {
		p := &b.cols[i]
		for k := range b.channels {
			var sum float32
			for j, col := range p.at {
				sum += float32(line[col*b.channels+k] * p.weight[j])
			}
			d[i*b.channels+k] = sum
		}
	}
}

func buildBicubicGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResizing(b)
	return exec.ByFloat(b.DType("T"), bicubicGrad[float32](r), bicubicGrad[float64](r))
}

func bicubicGrad[T exec.Float](r resizing) exec.Kernel {
	return func(c *exec.KernelContext) error {
		g, x, d, err := resizedGrad(c)
		if err != nil {
			return err
		}
		ih, iw, ch := x.Shape[1], x.Shape[2], x.Shape[3]
		gs, ds := exec.Elems[float32](g), exec.Elems[T](d)
		rows, cols := r.fours(ih, g.Shape[1]), r.fours(iw, g.Shape[2])
		image, grads := ih*iw*ch, g.Shape[1]*g.Shape[2]*ch
		inSpans(g.Shape[0], len(gs), func(from, to int) {
			for n := from; n < to; n++ {
				addFours(ds[n*image:(n+1)*image], gs[n*grads:(n+1)*grads], rows, cols, iw, ch)
			}
		})
		return nil
	}
}

// addFours adds the gradient of one image to the pixels that each pixel was made of.
func addFours[T exec.Float](d []T, g []float32, rows, cols []four, wide, channels int) {
	for a := range rows {
		y := &rows[a]
		for b := range cols {
			p := &cols[b]
			for i, row := range y.at {
				for j, col := range p.at {
					to := d[(row*wide+col)*channels:][:channels]
					wy, wx := T(y.weight[i]), T(p.weight[j])
					for k := range to {
						to[k] += T(T(g[k]) * wy * wx)
					}
				}
			}
			g = g[channels:]
		}
	}
}

// area is what a new row or column covers of the old ones.
type area struct {
	from   int
	weight []float32
}

func (r resizing) areas(in, out int) []area {
	list := make([]area, out)
	scale := r.scale(in, out)
	for o := range list {
		lo, hi := float32(o)*scale, float32(o+1)*scale
		a := area{from: int(math.Floor(float64(lo)))}
		for i := a.from; i < int(math.Ceil(float64(hi))); i++ {
			begin, end := max(lo, float32(i)), min(hi, float32(i+1))
			a.weight = append(a.weight, end-begin)
		}
		list[o] = a
	}
	return list
}

func buildResizeArea(b *exec.OpConstruction) (exec.Kernel, error) {
	r := resizing{align: b.Bool("align_corners")}
	return func(c *exec.KernelContext) error {
		h, w, err := resized(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		a := areas{x: float32sOf(c, x), high: x.Shape[1], wide: x.Shape[2], channels: x.Shape[3], rows: r.areas(x.Shape[1], h), cols: r.areas(x.Shape[2], w)}
		a.whole = 1 / (r.scale(a.high, h) * r.scale(a.wide, w))
		a.d = exec.Elems[float32](c.Out(0, exec.Float32, x.Shape[0], h, w, a.channels))
		inSpans(x.Shape[0]*h, len(a.x), a.lines)
		return nil
	}, nil
}

// areas is images on the way from x to d.
type areas struct {
	x, d                 []float32
	high, wide, channels int
	rows, cols           []area
	whole                float32 // one by the size of an area
}

// lines computes some of all new lines.
func (a *areas) lines(from, to int) {
	for o := from; o < to; o++ {
		first, y := o/len(a.rows)*a.high, &a.rows[o%len(a.rows)]
		for i := range a.cols {
			d := a.d[(o*len(a.cols)+i)*a.channels:][:a.channels]
			clear(d)
			for k, weight := range y.weight {
				a.add(d, first+min(y.from+k, a.high-1), weight, &a.cols[i])
			}
		}
	}
}

// add adds what an area covers of an old row.
func (a *areas) add(d []float32, row int, wy float32, p *area) {
	for j, wx := range p.weight {
		x := a.x[(row*a.wide+min(p.from+j, a.wide-1))*a.channels:][:len(d)]
		for k := range d {
			d[k] += float32(x[k] * wy * wx * a.whole)
		}
	}
}
