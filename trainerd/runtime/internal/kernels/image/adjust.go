package image

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// buildAdjust changes colours by the scalar in input 1. change takes red, green and blue
// apart.
func buildAdjust(change func(r, g, b []float32, by float32)) func(*exec.OpConstruction) (exec.Kernel, error) {
	return exec.WithoutAttrs(func(c *exec.KernelContext) error {
		x, by := c.In(0), c.In(1)
		if by.NumElements() != 1 || by.DType != exec.Float32 {
			return c.Invalid("the change must be a float32, not %s", by.Describe())
		}
		if err := checkPixels(c, x); err != nil {
			return err
		}
		parts := min(runtime.GOMAXPROCS(0), exec.MaxParts)
		w := exec.InFrame[adjusting](c)
		*w = adjusting{change: change, by: exec.Elems[float32](by)[0], x: exec.Elems[float32](x), memory: exec.Scratch[float32](c, exec.ScratchA, 3*partPixels*parts)}
		w.d = exec.Elems[float32](c.OutLike(0, x.DType, x))
		parallel.Run(min(parts, len(w.d)/3/partPixels+1), w)
		*w = adjusting{}
		return nil
	})
}

// adjusting changes pixels, some at a time.
type adjusting struct {
	change func(r, g, b []float32, by float32)
	by     float32
	d, x   []float32
	memory []float32
}

// Part implements [parallel.Job].
func (w *adjusting) Part(i, n int) {
	memory := w.memory[3*partPixels*i:][:3*partPixels]
	from, to := parallel.Span(len(w.d)/3, partPixels, i, n)
	for from < to {
		m := min(partPixels, to-from)
		r, g, b := memory[:m], memory[partPixels:][:m], memory[2*partPixels:][:m]
		x, d := w.x[3*from:][:3*m], w.d[3*from:][:3*m]
		for i := range r {
			r[i], g[i], b[i] = x[3*i], x[3*i+1], x[3*i+2]
		}
		w.change(r, g, b, w.by)
		for i := range r {
			d[3*i], d[3*i+1], d[3*i+2] = r[i], g[i], b[i]
		}
		from += m
	}
}
