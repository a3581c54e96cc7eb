package image

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
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
		ih, iw, ch := x.Shape[1], x.Shape[2], x.Shape[3]
		d := exec.Elems[float32](c.Out(0, exec.Float32, x.Shape[0], h, w, ch))
		rows, cols := r.fours(ih, h), r.fours(iw, w)
		o := 0
		for n := range x.Shape[0] {
			for _, y := range rows {
				for _, p := range cols {
					for k := range ch {
						var sum float32
						for j, col := range p.at {
							var v float32
							for i, row := range y.at {
								v += float32(float32(elem.RealAt(x, ((n*ih+row)*iw+col)*ch+k)) * y.weight[i])
							}
							sum += float32(v * p.weight[j])
						}
						d[o] = sum
						o++
					}
				}
			}
		}
		return nil
	}, nil
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
		o := 0
		for n := range g.Shape[0] {
			for _, y := range rows {
				for _, p := range cols {
					for i, row := range y.at {
						for j, col := range p.at {
							to := ((n*ih+row)*iw + col) * ch
							for k := range ch {
								ds[to+k] += T(T(gs[o+k]) * T(y.weight[i]) * T(p.weight[j]))
							}
						}
					}
					o += ch
				}
			}
		}
		return nil
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
		ih, iw, ch := x.Shape[1], x.Shape[2], x.Shape[3]
		d := exec.Elems[float32](c.Out(0, exec.Float32, x.Shape[0], h, w, ch))
		clear(d)
		rows, cols := r.areas(ih, h), r.areas(iw, w)
		whole := 1 / (r.scale(ih, h) * r.scale(iw, w))
		o := 0
		for n := range x.Shape[0] {
			for _, y := range rows {
				for _, p := range cols {
					for i, wy := range y.weight {
						row := n*ih + min(y.from+i, ih-1)
						for j, wx := range p.weight {
							from := (row*iw + min(p.from+j, iw-1)) * ch
							for k := range ch {
								d[o+k] += float32(elem.RealAt(x, from+k)) * wy * wx * whole
							}
						}
					}
					o += ch
				}
			}
		}
		return nil
	}, nil
}
