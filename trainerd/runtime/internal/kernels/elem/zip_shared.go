package elem

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// zipping is a loop nest at work on several processors, which share the runs of its
// outermost loop. It is kept in the frame, so that a step does not allocate it.
type zipping[T, R exec.Element] struct {
	b    Broadcast
	d    []R
	x, y []T
	f    *Loops[T, R]
}

// zipShared is [Zip], on several processors when there are many elements.
func zipShared[T, R exec.Element](c *exec.KernelContext, b *Broadcast, d []R, x, y []T, f *Loops[T, R]) {
	if len(d) < ParallelElements || b.loops < 2 || b.dim[0] < 2 {
		Zip(b, d, x, y, f)
		return
	}
	w := exec.InFrame[zipping[T, R]](c)
	*w = zipping[T, R]{*b, d, x, y, f}
	parallel.Run(min(b.dim[0], exec.MaxParts), w)
	*w = zipping[T, R]{}
}

// Part implements [parallel.Job].
func (w *zipping[T, R]) Part(i, n int) {
	from, to := parallel.Span(w.b.dim[0], 1, i, n)
	part, run := w.b, len(w.d)/w.b.dim[0]
	part.dim[0] = to - from
	Zip(&part, w.d[from*run:to*run], w.x[from*w.b.sa[0]:], w.y[from*w.b.sb[0]:], w.f)
}
