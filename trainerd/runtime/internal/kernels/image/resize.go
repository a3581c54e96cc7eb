package image

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var resizeOps = exec.OpTable{
	"ResizeNearestNeighbor":     {Types: exec.RealTypes, Build: buildResizeNearest},
	"ResizeNearestNeighborGrad": {Types: exec.Floats, Build: buildResizeNearestGrad},
	"ResizeBilinear":            {Types: exec.RealTypes, Build: buildResizeBilinear},
	"ResizeBilinearGrad":        {Types: exec.Floats, Build: buildResizeBilinearGrad},
}

// resizing says how positions in a resized image correspond to those in the
// original one.
type resizing struct{ align, half bool }

func newResizing(b *exec.OpConstruction) resizing {
	r := resizing{b.Bool("align_corners"), b.Bool("half_pixel_centers")}
	if r.align && r.half {
		b.Fail("If half_pixel_centers is True, align_corners must be False.")
	}
	return r
}

// scale returns the distance of neighbours of the new image in the old one.
func (r resizing) scale(in, out int) float32 {
	if r.align && out > 1 {
		return float32(in-1) / float32(out-1)
	}
	return float32(in) / float32(out)
}

// nearest returns the old position whose pixel the new position o shows.
func (r resizing) nearest(o, in int, scale float32) int {
	var at float64
	switch {
	case r.half:
		at = math.Floor(float64((float32(o) + 0.5) * scale))
	case r.align:
		at = math.Round(float64(float32(o) * scale))
	default:
		at = math.Floor(float64(float32(o) * scale))
	}
	return max(0, min(int(at), in-1))
}

// between is a position between two pixels.
type between struct {
	lo, hi int
	weight float32 // of hi
}

func (r resizing) between(o, in int, scale float32) between {
	at := float32(o) * scale
	if r.half {
		at = float32((float32(o)+0.5)*scale) - 0.5 // not fused, as in TensorFlow
	}
	floor := float32(math.Floor(float64(at)))
	return between{max(0, min(int(floor), in-1)), min(int(math.Ceil(float64(at))), in-1), at - floor}
}

// table computes between for every new position.
func (r resizing) table(in, out int) []between {
	list := make([]between, out)
	scale := r.scale(in, out)
	for o := range list {
		list[o] = r.between(o, in, scale)
	}
	return list
}

// resized reads the new size from input 1 and checks the images of input 0.
func resized(c *exec.KernelContext) (h, w int, err error) {
	x, size := c.In(0), c.IntsOf(1, c.In(1))
	if len(x.Shape) != 4 || len(size) != 2 || size[0] < 1 || size[1] < 1 || exec.NumElements(x.Shape[1:3]) == 0 {
		return 0, 0, c.Invalid("images %s cannot have the size %s", x.Describe(), exec.ShapeString(size))
	}
	return size[0], size[1], nil
}

func buildResizeNearest(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResizing(b)
	return func(c *exec.KernelContext) error {
		h, w, err := resized(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		ch := x.Shape[3]
		d := c.Out(0, x.DType, x.Shape[0], h, w, ch)
		sy, sx := r.scale(x.Shape[1], h), r.scale(x.Shape[2], w)
		for n := range x.Shape[0] {
			for i := range h {
				row := n*x.Shape[1] + r.nearest(i, x.Shape[1], sy)
				for j := range w {
					exec.CopyElems(d, ((n*h+i)*w+j)*ch, x, (row*x.Shape[2]+r.nearest(j, x.Shape[2], sx))*ch, ch)
				}
			}
		}
		return nil
	}, nil
}

func buildResizeNearestGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResizing(b)
	return exec.ByFloat(b.DType("T"), resizeNearestGrad[float32](r), resizeNearestGrad[float64](r))
}

func resizeNearestGrad[T exec.Float](r resizing) exec.Kernel {
	return func(c *exec.KernelContext) error {
		h, w, err := resized(c)
		if err != nil {
			return err
		}
		g := c.In(0)
		gh, gw, ch := g.Shape[1], g.Shape[2], g.Shape[3]
		d := c.Out(0, g.DType, g.Shape[0], h, w, ch)
		elem.Zero(d)
		gs, ds := exec.Elems[T](g), exec.Elems[T](d)
		sy, sx := r.scale(h, gh), r.scale(w, gw)
		for n := range g.Shape[0] {
			for i := range gh {
				row := n*h + r.nearest(i, h, sy)
				for j := range gw {
					to := (row*w + r.nearest(j, w, sx)) * ch
					from := ((n*gh+i)*gw + j) * ch
					elem.AddTo(ds[to:to+ch], gs[from:from+ch])
				}
			}
		}
		return nil
	}
}

func buildResizeBilinear(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResizing(b)
	return func(c *exec.KernelContext) error {
		h, w, err := resized(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		d := c.Out(0, exec.Float32, x.Shape[0], h, w, x.Shape[3])
		bilinear(exec.Elems[float32](d), x, r.table(x.Shape[1], h), r.table(x.Shape[2], w))
		return nil
	}, nil
}

// resizedGrad returns the gradient of resized images, the images, and where
// their gradient is added up: zeros.
func resizedGrad(c *exec.KernelContext) (g, x, d *exec.Tensor, err error) {
	g, x = c.In(0), c.In(1)
	if len(g.Shape) != 4 || len(x.Shape) != 4 || g.Shape[0] != x.Shape[0] || g.Shape[3] != x.Shape[3] || exec.NumElements(g.Shape[1:3]) == 0 || exec.NumElements(x.Shape[1:3]) == 0 {
		return nil, nil, nil, c.Invalid("the gradient %s is not one of images %s", g.Describe(), x.Describe())
	}
	d = c.OutLike(0, x.DType, x)
	elem.Zero(d)
	return g, x, d, nil
}

func buildResizeBilinearGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	r := newResizing(b)
	return exec.ByFloat(b.DType("T"), resizeBilinearGrad[float32](r), resizeBilinearGrad[float64](r))
}

func resizeBilinearGrad[T exec.Float](r resizing) exec.Kernel {
	return func(c *exec.KernelContext) error {
		g, x, d, err := resizedGrad(c)
		if err != nil {
			return err
		}
		b := bilinearGrads[T]{wide: x.Shape[2], channels: x.Shape[3], rows: r.table(x.Shape[1], g.Shape[1]), cols: r.table(x.Shape[2], g.Shape[2])}
		gs, ds := exec.Elems[float32](g), exec.Elems[T](d)
		image, grads := x.Shape[1]*b.wide*b.channels, len(b.rows)*len(b.cols)*b.channels
		inSpans(g.Shape[0], len(gs), func(from, to int) {
			for n := from; n < to; n++ {
				b.add(ds[n*image:(n+1)*image], gs[n*grads:(n+1)*grads])
			}
		})
		return nil
	}
}
