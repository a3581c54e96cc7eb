package array

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// mirrorEdge returns 1 when the border element is not repeated.
func mirrorEdge(b *exec.OpConstruction) int {
	switch m := b.String("mode"); m {
	case "REFLECT":
		return 1
	case "SYMMETRIC":
	default:
		b.Fail("attribute mode is %q", m)
	}
	return 0
}

func mirrorPads(c *exec.KernelContext, x *exec.Tensor, edge int, inner func(i int) int) ([]int, error) {
	pads, err := paddings(c, x)
	if err != nil {
		return nil, err
	}
	for i := range x.Shape {
		if n := inner(i); pads[2*i] > n-edge || pads[2*i+1] > n-edge {
			return nil, c.Invalid("paddings of dimension %d exceed its %d elements", i, n)
		}
	}
	return pads, nil
}

// mirroring walks over a padded tensor. Its dimensions after the last one that is padded are
// runs of elements.
type mirroring struct {
	rank          int // of the dimensions up to the last that is padded, at least 1
	run, edge     int
	before, inner [exec.MaxRank]int // of each of them: the first padding, and the elements
	padded        [exec.MaxRank]int // the elements with paddings
	out, in       [exec.MaxRank]int // the elements of the padded and the inner tensor that one step is
	move          func(o, at, n int)
}

// mirrorOf returns the walk, whose move gets runs of elements of the padded tensor and of those
// that they mirror.
func mirrorOf(inner, pads []int, edge int, move func(o, at, n int)) *mirroring {
	m := &mirroring{rank: len(inner), run: 1, edge: edge, move: move}
	for m.rank > 1 && pads[2*m.rank-2] == 0 && pads[2*m.rank-1] == 0 {
		m.rank--
		m.run *= inner[m.rank]
	}
	if m.rank == 0 {
		m.rank, m.inner[0], m.padded[0], m.out[0], m.in[0] = 1, 1, 1, 1, 1
		return m
	}
	out, in := m.run, m.run
	for i := m.rank - 1; i >= 0; i-- {
		m.before[i], m.inner[i], m.padded[i] = pads[2*i], inner[i], pads[2*i]+inner[i]+pads[2*i+1]
		m.out[i], m.in[i] = out, in
		out, in = out*m.padded[i], in*inner[i]
	}
	return m
}

// mirror maps a position of a padded dimension to one of its elements.
func (m *mirroring) mirror(dim, i int) int {
	n := m.inner[dim]
	i -= m.before[dim]
	if i < 0 {
		return -i - 1 + m.edge
	}
	if i >= n {
		return 2*n - 1 - i - m.edge
	}
	return i
}

// Part implements [parallel.Job], for positions of the first dimension.
func (m *mirroring) Part(i, n int) {
	from, to := parallel.Span(m.padded[0], 1, i, n)
	m.walk(0, 0, 0, from, to)
}

// walk moves what has positions from one to another of a dimension, in their order.
func (m *mirroring) walk(dim, o, at, from, to int) {
	last := dim == m.rank-1
	for i := from; i < to; i++ {
		k := m.mirror(dim, i)
		switch {
		case !last:
			m.walk(dim+1, o+i*m.out[dim], at+k*m.in[dim], 0, m.padded[dim+1])
		case k == i-m.before[dim]: // up to the padding they follow each other in both
			n := min(m.inner[dim]-k, to-i)
			m.move(o+i*m.run, at+k*m.run, n*m.run)
			i += n - 1
		default:
			m.move(o+i*m.run, at+k*m.run, m.run)
		}
	}
}

// share does the walk on several processors, if so many elements are worth it.
func (m *mirroring) share(elements int) {
	if elements < elem.ParallelElements {
		m.Part(0, 1)
		return
	}
	parallel.Run(min(m.padded[0], exec.MaxParts), m)
}

func buildMirrorPad(b *exec.OpConstruction) (exec.Kernel, error) {
	edge := mirrorEdge(b)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		pads, err := mirrorPads(c, x, edge, func(i int) int { return x.Shape[i] })
		if err != nil {
			return err
		}
		shape := c.ScratchInts(0, len(x.Shape))
		for i, n := range x.Shape {
			shape[i] = pads[2*i] + n + pads[2*i+1]
		}
		d := c.Out(0, x.DType, shape...)
		mirrorOf(x.Shape, pads, edge, func(o, at, n int) { exec.CopyElems(d, o, x, at, n) }).share(d.NumElements())
		return nil
	}, nil
}

func buildMirrorPadGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	edge := mirrorEdge(b)
	return exec.ByFloat(b.DType("T"), mirrorPadGrad[float32](edge), mirrorPadGrad[float64](edge))
}

func mirrorPadGrad[T exec.Float](edge int) exec.Kernel {
	return func(c *exec.KernelContext) error {
		g := c.In(0)
		pads, err := mirrorPads(c, g, edge, func(i int) int { p := c.In(1); return g.Shape[i] - p.IntAt(2*i) - p.IntAt(2*i+1) })
		if err != nil {
			return err
		}
		shape := c.ScratchInts(0, len(g.Shape))
		for i, n := range g.Shape {
			shape[i] = n - pads[2*i] - pads[2*i+1]
		}
		d := c.Out(0, g.DType, shape...)
		elem.Zero(d)
		gs, ds := exec.Elems[T](g), exec.Elems[T](d)
		m := mirrorOf(d.Shape, pads, edge, func(o, at, n int) { elem.AddTo(ds[at:at+n], gs[o:o+n]) })
		if m.padded[0] != m.inner[0] { // several positions are added to one
			m.Part(0, 1)
			return nil
		}
		m.share(len(gs))
		return nil
	}
}
