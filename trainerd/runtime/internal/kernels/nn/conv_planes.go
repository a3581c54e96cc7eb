package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

// A plane of a convolution of volumes is the sum of convolutions of the planes that the kernel
// covers, one for each of its positions along the depth. What computes images computes it:
// planes are images, which have several sources.

// stack is how planes see those of volumes along the depth; images, its zero value, see
// themselves.
type stack struct {
	extent
	turned bool // from the input to the output
}

// positions is how many planes the kernel has.
func (s *stack) positions() int { return max(1, s.kernel) }

// source returns the plane that plane k sees at a position of the kernel, or -1.
func (s *stack) source(k, position int) int {
	if s.kernel == 0 {
		return k
	}
	if s.turned {
		at := k%s.in + s.before - position*s.dilation
		if at < 0 || at%s.stride != 0 || at/s.stride >= s.out {
			return -1
		}
		return k/s.in*s.out + at/s.stride
	}
	at := k%s.out*s.stride - s.before + position*s.dilation
	if at < 0 || at >= s.in {
		return -1
	}
	return k/s.out*s.in + at
}

// tiled reports whether the planes of volumes follow each other as the lines of tiles of an
// image do, so that the factors of one serve all positions of the kernel.
func (s *stack) tiled() bool { return s.kernel == 0 || s.stride == 1 && s.dilation == 1 }

// planes returns the convolution of the planes of volumes, and whether it can be computed as one
// of images.
func (g *grid) planes(cin int) (p geometry, ok bool) {
	d, h, w := g.e[0], g.e[1], g.e[2]
	p = geometry{h: h, w: w, batch: g.batch * d.out, cin: cin, imageIn: h.in * w.in * cin, rows: h.out * w.out, column: h.kernel * w.kernel * cin}
	if d.kernel > 1 || d.stride > 1 || d.in != d.out {
		p.d = stack{extent: d}
	}
	return p, p.rows > 0 && p.batch > 0 && d.in > 0
}

// volumeConv computes a convolution of volumes by that of planes, and reports whether it can.
func volumeConv[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], v *grid, xs, fs, d []T, cin, cout int) bool {
	g, ok := v.planes(cin)
	switch {
	case !ok:
		return false
	case g.d.kernel == 0:
		convolve(c, mul, g, xs, fs, d, cout)
	case winograd[T](&g, cout):
		winogradConv(c, &g, xs, fs, d, cout)
	case g.direct(len(fs)):
		directConv(c, &g, xs, fs, d, cout)
	default:
		return false
	}
	return true
}

// volumeInputGrad computes the gradient of volumes, or reports that it cannot.
func volumeInputGrad[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], v *grid, gs, fs, d []T, cin, cout int) bool {
	g, ok := v.planes(cin)
	if !ok {
		return false
	}
	if g.d.kernel == 0 {
		convolveInput(c, mul, g, gs, fs, d, cout)
		return true
	}
	if winograd[T](&g, cout) {
		winogradInputGrad(c, &g, gs, fs, d, cout)
		return true
	}
	if !g.direct(len(fs)) {
		return false
	}
	g.batch, g.d.turned = g.batch/g.d.out*g.d.in, true
	directInputGrad(c, &g, gs, fs, d, cout)
	return true
}

// volumeFilterGrad computes the gradient of a filter of volumes, or reports that it cannot.
func volumeFilterGrad[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], v *grid, xs, gs, d []T, cin, cout int) bool {
	g, ok := v.planes(cin)
	switch {
	case !ok:
		return false
	case g.d.kernel == 0:
		convolveFilter(c, mul, g, xs, gs, d, cout)
	case winograd[T](&g, cout) && g.filters()*cin*cout <= largestSums:
		winogradFilterGrad(c, &g, xs, gs, d, cout)
	case g.direct(len(d)):
		size := g.column * cout
		for position := range g.d.kernel {
			directFilterGrad(c, &g, position, xs, gs, d[position*size:(position+1)*size], cout)
		}
	default:
		return false
	}
	return true
}
