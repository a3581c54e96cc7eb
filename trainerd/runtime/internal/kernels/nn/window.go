package nn

import (
	"fmt"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// window is the geometry of convolutions and poolings over NHWC images: how an
// output position maps to input positions, along height and width.
type window struct {
	sh, sw, dh, dw int // strides and dilations
	padding        string
	explicit       []int // top, bottom, left, right
}

// newWindow parses the attributes that all windowed ops share.
func newWindow(b *exec.OpConstruction) window {
	w := window{sh: 1, sw: 1, dh: 1, dw: 1, padding: b.String("padding")}
	if f := b.StringOr("data_format", "NHWC"); f != "NHWC" {
		b.Fail("no kernel for data_format=%s", f)
	}
	w.sh, w.sw = spatial(b, "strides", 1)
	w.dh, w.dw = spatial(b, "dilations", 1)
	switch w.padding {
	case "SAME", "VALID":
	case "EXPLICIT":
		p := b.Ints("explicit_paddings")
		if len(p) != 8 || p[0] != 0 || p[1] != 0 || p[6] != 0 || p[7] != 0 {
			b.Fail("attribute explicit_paddings is %v", p)
			return w
		}
		w.explicit = p[2:6]
		for _, v := range w.explicit {
			if v < 0 {
				b.Fail("attribute explicit_paddings is %v", p)
			}
		}
	default:
		b.Fail("attribute padding is %q", w.padding)
	}
	return w
}

// spatial returns the height and width entries of a list by dimension, whose
// others must be 1.
func spatial(b *exec.OpConstruction, name string, def int) (h, w int) {
	list := b.Ints(name)
	if list == nil {
		return def, def
	}
	if len(list) != 4 || list[0] != 1 || list[3] != 1 || list[1] < 1 || list[2] < 1 {
		b.Fail("no kernel for %s=%v", name, list)
		return def, def
	}
	return list[1], list[2]
}

// extent is the geometry along one dimension.
type extent struct{ in, out, kernel, stride, dilation, before int }

// extent computes the output size of one dimension.
func (w *window) extent(in, kernel, stride, dilation, side int) (extent, error) {
	e := extent{in: in, kernel: kernel, stride: stride, dilation: dilation}
	if kernel < 1 || in > 1<<40 || kernel > 1<<40 || stride > 1<<40 || dilation > 1<<40 {
		return e, fmt.Errorf("a window of %d over %d elements", kernel, in)
	}
	if kernel == 1 {
		e.dilation = 1
	}
	reach := (kernel-1)*dilation + 1
	after := 0
	switch w.padding {
	case "SAME":
		e.out = (in + stride - 1) / stride
		need := max(0, (e.out-1)*stride+reach-in)
		e.before, after = need/2, need-need/2
	case "EXPLICIT":
		e.before, after = w.explicit[2*side], w.explicit[2*side+1]
	}
	if w.padding != "SAME" {
		e.out = max(0, (e.before+in+after-reach)/stride+1)
		if e.before+in+after < reach {
			return e, fmt.Errorf("a window reaching over %d elements does not fit into %d with padding %s", reach, e.before+in+after, w.padding)
		}
	}
	return e, nil
}

// span returns the range of kernel positions that fall into the input at an
// output position, and the input position of kernel position 0.
func (e *extent) span(o int) (lo, hi, base int) {
	base = o*e.stride - e.before
	if base < 0 {
		lo = (-base + e.dilation - 1) / e.dilation
	}
	hi = e.kernel
	if left := e.in - base; left < (e.kernel-1)*e.dilation+1 {
		hi = max(lo, (left+e.dilation-1)/e.dilation)
	}
	return lo, hi, base
}

// geometry is a window applied to a batch of images.
type geometry struct {
	d            stack // of volumes
	h, w         extent
	batch, cin   int
	imageIn      int // elements of one input image
	rows, column int // rows and row length of the column matrix of one image
}

// geometry resolves the window for images of shape x and a kernel of kh by kw.
func (w *window) geometry(c *exec.KernelContext, x []int, kh, kw int) (g geometry, err error) {
	if len(x) != 4 {
		return g, c.Invalid("images must have the shape [n,height,width,channels], not %s", exec.ShapeString(x))
	}
	if g.h, err = w.extent(x[1], kh, w.sh, w.dh, 0); err != nil {
		return g, c.Invalid("height: %v", err)
	}
	if g.w, err = w.extent(x[2], kw, w.sw, w.dw, 1); err != nil {
		return g, c.Invalid("width: %v", err)
	}
	g.batch, g.cin = x[0], x[3]
	g.imageIn = x[1] * x[2] * x[3]
	g.rows, g.column = g.h.out*g.w.out, kh*kw*g.cin
	return g, nil
}

// columns lays the patches of one image out as rows of a matrix, so that a
// convolution is a matrix product.
func columns[T exec.Float](g *geometry, image, cols []T) {
	at := 0
	row := g.w.kernel * g.cin
	for oh := range g.h.out {
		hlo, hhi, hbase := g.h.span(oh)
		for ow := range g.w.out {
			wlo, whi, wbase := g.w.span(ow)
			clear(cols[at : at+hlo*row])
			for kh := hlo; kh < hhi; kh++ {
				line := cols[at+kh*row : at+(kh+1)*row]
				from := ((hbase+kh*g.h.dilation)*g.w.in + wbase) * g.cin
				clear(line[:wlo*g.cin])
				if g.w.dilation == 1 && wlo < whi {
					copy(line[wlo*g.cin:whi*g.cin], image[from+wlo*g.cin:from+whi*g.cin])
				} else { // or no pixel, where from may be outside
					for kw := wlo; kw < whi; kw++ {
						p := from + kw*g.w.dilation*g.cin
						copy(line[kw*g.cin:(kw+1)*g.cin], image[p:p+g.cin])
					}
				}
				clear(line[whi*g.cin:])
			}
			clear(cols[at+hhi*row : at+g.column])
			at += g.column
		}
	}
}

// uncolumns adds the rows of a column matrix back to the patches of an image; the
// rows are those of some lines of the output.
func uncolumns[T exec.Float](g *geometry, image, cols []T, from, to int) {
	at := 0
	row := g.w.kernel * g.cin
	for oh := from; oh < to; oh++ {
		hlo, hhi, hbase := g.h.span(oh)
		for ow := range g.w.out {
			wlo, whi, wbase := g.w.span(ow)
			for kh := hlo; kh < hhi; kh++ {
				if g.w.dilation == 1 && wlo < whi {
					p, q := ((hbase+kh*g.h.dilation)*g.w.in+wbase)*g.cin, at+kh*row
					elem.AddTo(image[p+wlo*g.cin:p+whi*g.cin], cols[q+wlo*g.cin:q+whi*g.cin])
					continue
				}
				for kw := wlo; kw < whi; kw++ {
					p := ((hbase+kh*g.h.dilation)*g.w.in + wbase + kw*g.w.dilation) * g.cin
					q := at + kh*row + kw*g.cin
					elem.AddTo(image[p:p+g.cin], cols[q:q+g.cin])
				}
			}
			at += g.column
		}
	}
}
